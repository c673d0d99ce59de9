package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const before = `goos: linux
pkg: internal/verify/bench
cpu: Some CPU
BenchmarkDecide/shapes=1/nodes=1000-2  	  100000	      1000 ns/op	  9000 decisions/s	    3300 B/op	      20 allocs/op
BenchmarkRank/nodes=1000-2  	  100	      500 ns/op	      0 B/op	       0 allocs/op
BenchmarkGang-2  	  5	      500 ns/op	      2.0 ms/session	       0 allocs/op
BenchmarkGone-2  	  100	      500 ns/op
PASS
`

// TestLosses: a loss counts if the best run of a benchmark is slower, or allocates more, by over 15 %.
func TestLosses(t *testing.T) {
	line := "BenchmarkDecide/shapes=1/nodes=1000-8 100000 %ns ns/op 1 decisions/s 1 B/op %allocs allocs/op\n"
	run := func(ns, allocs string) string {
		return "pkg: internal/verify/bench\n" + strings.NewReplacer("%ns", ns, "%allocs", allocs).Replace(line)
	}
	const name = "internal/verify/bench BenchmarkDecide/shapes=1/nodes=1000"
	for what, tt := range map[string]struct {
		now  string
		want []loss
	}{
		"as fast":                    {run("1000", "20"), nil},
		"a little slower":            {run("1150", "20"), nil},
		"slower":                     {run("1200", "20"), []loss{{name, "ns/op", 1.2}}},
		"slower once":                {run("1900", "20") + run("1100", "20"), nil},
		"more allocations":           {run("900", "24"), []loss{{name, "allocs/op", 1.2}}},
		"both, and the larger ratio": {run("2000", "24"), []loss{{name, "ns/op", 2}}},
		"another package":            {strings.Replace(run("2000", "20"), "verify", "other", 1), nil},
		"a part of an operation":     {"pkg: internal/verify/bench\nBenchmarkGang-2 5 900 ns/op 3.0 ms/session 0 allocs/op\n", []loss{{"internal/verify/bench BenchmarkGang", "ms/session", 1.5}}},
		"a new benchmark":            {strings.Replace(run("2000", "20"), "Decide", "New", 1), nil},
	} {
		t.Run(what, func(t *testing.T) {
			var old, new results
			for _, err := range []error{old.read(before), new.read(tt.now)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tt.want, losses(&old, &new), cmp.AllowUnexported(loss{})); d != "" {
				t.Error(d)
			}
			if old.cpu != "Some CPU" || strings.Contains(old.text.String(), "PASS") {
				t.Errorf("cpu %q, text %q", old.cpu, old.text.String())
			}
		})
	}
	if err := new(results).read("pkg: x\nBenchmarkX-2 10 many ns/op\n"); err == nil {
		t.Error("a result without a number is accepted")
	}
}

func TestExactly(t *testing.T) {
	parts := strings.Split(exactly("BenchmarkDecide/shapes=1/nodes=100"), "/")
	for i, want := range []string{"BenchmarkDecide", "shapes=1", "nodes=100"} {
		if p := regexp.MustCompile(parts[i]); !p.MatchString(want) || p.MatchString(want+"0") {
			t.Errorf("%s does not match exactly %s", parts[i], want)
		}
	}
}
