// The same question as check-history.go, put to Porcupine (https://github.com/anishathalye/porcupine), a known checker of linearizability:
// is each read of the history linearizable with all writes of its key? Two reads need not agree about a write that is not acknowledged yet,
// so each is checked by itself. The folder that holds github.com/anishathalye/porcupine is in GOPATH.
// Usage: GO111MODULE=off GOPATH=FOLDER go run test/histories/linearize.go FILE
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

type operation struct {
	isWrite bool
	version int64
}

// A register whose versions only rise.
var model = porcupine.Model{
	Init: func() interface{} { return int64(0) },
	Step: func(state, input, output interface{}) (bool, interface{}) {
		asked, current := input.(operation), state.(int64)
		if asked.isWrite {
			return asked.version > current, asked.version
		}
		return output.(int64) == current, current
	},
}

const never = math.MaxInt64

// Whole nanoseconds. A write that ends at the moment at which a read begins is not before the read.
func moment(text string) int64 {
	if text == "-" {
		return never
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	return int64(math.Round(value * 1e6))
}

type line struct {
	text     string
	version  int64
	from, to int64
}

func main() {
	reads, writes := map[string][]line{}, map[string]map[int64]line{}
	file, err := os.Open(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		parts := strings.Fields(lines.Text())
		version, _ := strconv.ParseInt(parts[3], 10, 64)
		one := line{lines.Text(), version, moment(parts[4]), moment(parts[5])}
		key := parts[2]
		if parts[0] == "read" {
			reads[key] = append(reads[key], one)
			continue
		}
		if writes[key] == nil {
			writes[key] = map[int64]line{}
		}
		if known, isKnown := writes[key][version]; isKnown {
			if known.from < one.from {
				one.from = known.from
			}
			if known.to < one.to {
				one.to = known.to
			}
		}
		writes[key][version] = one
	}
	checked, refused := 0, 0
	for key, all := range reads {
		made := []line{}
		for _, one := range writes[key] {
			made = append(made, one)
		}
		sort.Slice(made, func(i, j int) bool { return made[i].version < made[j].version })
		for _, one := range all {
			history := []porcupine.Operation{}
			latest := int64(0)
			for _, write := range made {
				if write.to < one.from {
					latest = write.version
				}
			}
			for _, write := range made {
				// What was sent after the read was over says nothing of it, and of all that was over before it the last counts.
				if write.from <= one.to && (write.to >= one.from || write.version == latest) {
					history = append(history, porcupine.Operation{
						ClientId: len(history), Input: operation{true, write.version}, Call: write.from, Return: write.to,
					})
				}
			}
			history = append(history, porcupine.Operation{
				ClientId: len(history), Input: operation{}, Call: one.from, Output: one.version, Return: one.to,
			})
			checked++
			if !porcupine.CheckOperations(model, history) {
				refused++
				if refused <= 20 {
					fmt.Printf("not linearizable: %s\n", one.text)
				}
			}
		}
	}
	fmt.Printf("%d reads, %d not linearizable\n", checked, refused)
	if refused > 0 {
		os.Exit(1)
	}
}
