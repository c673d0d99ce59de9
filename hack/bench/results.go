package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// most is how much slower a benchmark may be, or how much more it may allocate, as a ratio.
const most = 1.15

// isCompared reports whether values of the unit are compared: times and allocations, of which less is
// better. Percentiles and the size of the heap vary too much.
func isCompared(unit string) bool {
	return unit == "ns/op" || unit == "allocs/op" || strings.HasPrefix(unit, "ms/")
}

// results are runs of benchmarks in the format of go test.
type results struct {
	text strings.Builder // all lines that were read
	cpu  string
	// best has, by unit, the least value of each benchmark over all runs: other work on the machine
	// can only make a run slower. A benchmark is named by the folder of its package and its name.
	best map[string]map[string]float64
}

// processors is the number of processors at the end of the name of a benchmark.
var processors = regexp.MustCompile(`-\d+$`)

func (r *results) readFile(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	return r.read(string(text))
}

// read adds runs. Lines that are not results are only kept in the text.
func (r *results) read(text string) error {
	folder := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "PASS" || strings.HasPrefix(line, "ok ") || strings.HasPrefix(line, "pkg: github.com/") {
			continue
		}
		fmt.Fprintln(&r.text, line)
		if s, ok := strings.CutPrefix(line, "pkg: "); ok {
			folder = s
		}
		if s, ok := strings.CutPrefix(line, "cpu: "); ok {
			r.cpu = s
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		// A benchmark that measures only a part of an operation reports this as ms/session or the
		// like, and stops the clock meanwhile. Its ns/op says nothing.
		own := slices.ContainsFunc(fields, func(f string) bool { return strings.HasPrefix(f, "ms/") })
		for i := 2; i+1 < len(fields); i += 2 {
			if fields[i+1] == "ns/op" && own {
				continue
			}
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("%q is not a result of a benchmark: %w", line, err)
			}
			r.add(folder+" "+processors.ReplaceAllString(fields[0], ""), fields[i+1], value)
		}
	}
	return nil
}

func (r *results) add(name, unit string, value float64) {
	if !isCompared(unit) {
		return
	}
	if r.best == nil {
		r.best = map[string]map[string]float64{}
	}
	if r.best[unit] == nil {
		r.best[unit] = map[string]float64{}
	}
	if least, known := r.best[unit][name]; !known || value < least {
		r.best[unit][name] = value
	}
}

// loss is a benchmark that is worse than before.
type loss struct {
	name, unit string
	ratio      float64
}

func (l loss) String() string { return fmt.Sprintf("%.2f times as many %s as before", l.ratio, l.unit) }

// losses returns the benchmarks of both results whose best run is worse by more than most, sorted by
// name. A benchmark with several losses is listed once.
func losses(old, new *results) []loss {
	var out []loss
	for unit, values := range new.best { // sorted below
		for name, value := range values {
			if before := old.best[unit][name]; before > 0 && value/before > most {
				out = append(out, loss{name, unit, value / before})
			}
		}
	}
	slices.SortFunc(out, func(a, b loss) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.unit, b.unit))
	})
	return slices.CompactFunc(out, func(a, b loss) bool { return a.name == b.name })
}
