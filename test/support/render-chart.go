// Renders a Helm chart as `helm template` does: Go's text/template with the functions of sprig and those that Helm adds.
// Usage: go run test/support/render-chart.go CHART RELEASE NAMESPACE < values.json
// Without: lookup, tpl, subcharts, merging of values (the caller hands in the complete values).
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"github.com/ghodss/yaml"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	chart, release, namespace := os.Args[1], os.Args[2], os.Args[3]
	var values map[string]interface{}
	fail(json.NewDecoder(os.Stdin).Decode(&values))
	text, err := os.ReadFile(filepath.Join(chart, "Chart.yaml"))
	fail(err)
	var facts map[string]interface{}
	fail(yaml.Unmarshal(text, &facts))
	data := map[string]interface{}{
		"Values":  values,
		"Release": map[string]interface{}{"Name": release, "Namespace": namespace, "Service": "Helm"},
		"Chart": map[string]interface{}{
			"Name": facts["name"], "Version": facts["version"], "AppVersion": facts["appVersion"],
		},
	}
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = func(value interface{}) (string, error) {
		out, err := yaml.Marshal(value)
		return strings.TrimSuffix(string(out), "\n"), err
	}
	functions["include"] = func(name string, value interface{}) (string, error) {
		var out strings.Builder
		err := all.ExecuteTemplate(&out, name, value)
		return out.String(), err
	}
	functions["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	all.Funcs(functions)
	files, err := filepath.Glob(filepath.Join(chart, "templates", "*"))
	fail(err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		fail(err)
		_, err = all.New(filepath.Base(file)).Parse(string(content))
		fail(err)
	}
	rendered := map[string]string{}
	for _, file := range files {
		name := filepath.Base(file)
		if strings.HasPrefix(name, "_") {
			continue
		}
		var out strings.Builder
		fail(all.ExecuteTemplate(&out, name, data))
		rendered[name] = out.String()
	}
	fail(json.NewEncoder(os.Stdout).Encode(rendered))
}
