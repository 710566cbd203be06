// Reads a history of reads and writes from a file, and says which reads are older than a write that was acknowledged before they
// began, and which show what nobody had written. Shares no code with the gateway and none with what judges the runs themselves.
// Usage: go run test/histories/check-history.go FILE
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
)

// A write of a version of a key. What was written twice (carried out, then acknowledged) is one of these.
type write struct {
	version  int64
	from, to float64
}

type read struct {
	line     string
	version  int64
	from, to float64
}

type register struct {
	writes map[int64]*write
	reads  []read
}

func fail(format string, given ...interface{}) {
	fmt.Fprintf(os.Stderr, format+"\n", given...)
	os.Exit(2)
}

func moment(text, line string) float64 {
	if text == "-" {
		return math.Inf(1)
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		fail("not a time: %s", line)
	}
	return value
}

// KIND WHO KEY VERSION FROM TO, with spaces between; TO is - for what was never acknowledged.
func readHistory() map[string]*register {
	if len(os.Args) != 2 {
		fail("usage: check-history FILE")
	}
	file, err := os.Open(os.Args[1])
	if err != nil {
		fail("%v", err)
	}
	registers := map[string]*register{}
	lines := bufio.NewScanner(file)
	lines.Buffer(make([]byte, 1<<16), 1<<20)
	for lines.Scan() {
		line := lines.Text()
		parts := strings.Fields(line)
		if len(parts) != 6 {
			fail("not a line of a history: %s", line)
		}
		key := parts[2]
		version, err := strconv.ParseInt(parts[3], 10, 64)
		if err != nil {
			fail("not a version: %s", line)
		}
		from, to := moment(parts[4], line), moment(parts[5], line)
		of := registers[key]
		if of == nil {
			of = &register{writes: map[int64]*write{}}
			registers[key] = of
		}
		switch parts[0] {
		case "read":
			of.reads = append(of.reads, read{line, version, from, to})
		case "write":
			known := of.writes[version]
			if known == nil {
				of.writes[version] = &write{version, from, to}
				continue
			}
			known.from = math.Min(known.from, from)
			known.to = math.Min(known.to, to)
		default:
			fail("neither a read nor a write: %s", line)
		}
	}
	if err := lines.Err(); err != nil {
		fail("%v", err)
	}
	return registers
}

// The writes by the time of their acknowledgement, each with the highest version that was acknowledged by then.
func acknowledged(writes map[int64]*write) []write {
	all := []write{}
	for _, one := range writes {
		if !math.IsInf(one.to, 1) {
			all = append(all, *one)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].to < all[j].to })
	for i := 1; i < len(all); i++ {
		if all[i].version < all[i-1].version {
			all[i].version = all[i-1].version
		}
	}
	return all
}

func main() {
	reads, writes, stale, unwritten := 0, 0, 0, 0
	tell := func(what string, one read) {
		if stale+unwritten <= 20 {
			fmt.Printf("%s: %s\n", what, one.line)
		}
	}
	for _, of := range readHistory() {
		known := acknowledged(of.writes)
		reads += len(of.reads)
		writes += len(of.writes)
		for _, one := range of.reads {
			before := sort.Search(len(known), func(i int) bool { return known[i].to >= one.from })
			if before > 0 && known[before-1].version > one.version {
				stale++
				tell(fmt.Sprintf("older than version %d, acknowledged before", known[before-1].version), one)
			}
			if one.version == 0 {
				continue
			}
			if made := of.writes[one.version]; made == nil || made.from > one.to {
				unwritten++
				tell("shows what nobody had written", one)
			}
		}
	}
	fmt.Printf("%d reads, %d writes, %d stale, %d unwritten\n", reads, writes, stale, unwritten)
	if stale+unwritten > 0 {
		os.Exit(1)
	}
}
