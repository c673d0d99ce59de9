// Command bench runs the benchmarks of docs/performance.md, prints them, and compares them with a
// recorded run or, in turn, with those of another commit. It fails if a benchmark is slower or
// allocates more by over 15 %, and still does after it was run again.
//
//	go run ./hack/bench                 # compares with the recorded run
//	go run ./hack/bench -base main      # compares with a commit
//	go run ./hack/bench -record         # records a run
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// suite is benchmarks of one package that run with one number of iterations.
type suite struct {
	folder, pattern, iterations string
}

var suites = []suite{
	{"internal/verify/bench", "Decide", "100000x"},
	{"internal/verify/bench", "IndexAgainstScan", "500x"},
	{"internal/verify/bench", "Rank", "100x"},
	{"internal/verify/bench", "Answer", "1000x"},
	{"internal/verify/bench", "Allocate|Gang|Reclaim|Impossible|Models", "5x"},
	{"internal/manifest", "Parse", "5x"},
	{"internal/live", "Why", "3x"},
}

const (
	recorded = "internal/verify/bench/recorded.txt"
	// rounds is how often a benchmark with a loss is run again. A loss that is due to other work on
	// the machine seldom repeats so often.
	rounds = 3
	// passes is how often all benchmarks run when a run is recorded. The best counts.
	passes = 3
)

func main() {
	base := flag.String("base", "", "compare with this commit instead of the recorded run")
	record := flag.Bool("record", false, "write the run to "+recorded)
	only := flag.String("only", "", "regular expression: run only the benchmarks whose names match")
	flag.Parse()
	if flag.NArg() > 0 || *record && (*base != "" || *only != "") {
		fmt.Fprintln(os.Stderr, "bench: -record takes neither -base nor -only, and there are no arguments")
		os.Exit(2)
	}
	lost, err := run(*base, *only, *record)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if lost {
		os.Exit(1)
	}
}

// run runs the benchmarks and compares them. It reports whether there is a loss.
func run(base, only string, record bool) (bool, error) {
	matches, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "berth-bench")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	now, err := build(".", filepath.Join(dir, "now"))
	if err != nil {
		return false, err
	}
	var before *version
	old := results{}
	if base != "" {
		tree := filepath.Join(dir, "tree")
		if err := command(".", os.Stderr, "git", "worktree", "add", "--quiet", "--detach", tree, base); err != nil {
			return false, err
		}
		defer command(".", io.Discard, "git", "worktree", "remove", "--force", tree)
		if before, err = build(tree, filepath.Join(dir, "before")); err != nil {
			return false, err
		}
	} else if !record {
		if err := old.readFile(recorded); err != nil {
			return false, fmt.Errorf("%w; record a run with -record, or compare with a commit with -base", err)
		}
	}
	new := results{}
	list := suites
	if record {
		list = slices.Repeat(suites, passes)
	}
	for i := range list {
		for _, v := range []*version{before, now} {
			if v == nil {
				continue
			}
			into := &new
			if v == before {
				into = &old
			}
			if err := v.run(&list[i], only, matches, into); err != nil {
				return false, err
			}
		}
	}
	if record {
		return false, os.WriteFile(recorded, []byte(new.text.String()), 0o644)
	}
	if old.cpu != new.cpu {
		fmt.Printf("\nThe recorded run is of %s, and this machine is %s, so that no loss is reported. Compare with a commit: make bench BASE=main\n", old.cpu, new.cpu)
		return false, compare(dir, &old, &new)
	}
	for round := 0; round < rounds && len(losses(&old, &new)) > 0; round++ {
		for _, l := range losses(&old, &new) {
			fmt.Printf("\n%s: %s; it is run again\n", l.name, l)
			for _, v := range []*version{before, now} {
				if v == nil {
					continue
				}
				into := &new
				if v == before {
					into = &old
				}
				if err := v.again(l.name, into); err != nil {
					return false, err
				}
			}
		}
	}
	if err := compare(dir, &old, &new); err != nil {
		return false, err
	}
	for _, l := range losses(&old, &new) {
		fmt.Printf("loss: %s: %s in each of %d runs\n", l.name, l, rounds+1)
	}
	return len(losses(&old, &new)) > 0, nil
}

// version is the test binaries of one version, by folder.
type version struct {
	root     string
	binaries map[string]string
}

// build compiles the tests of the packages in the folder root.
func build(root, out string) (*version, error) {
	v := &version{root: root, binaries: map[string]string{}}
	for _, s := range suites {
		if v.binaries[s.folder] != "" {
			continue
		}
		v.binaries[s.folder] = filepath.Join(out, strings.ReplaceAll(s.folder, "/", "-"))
		if err := command(root, os.Stderr, "go", "test", "-c", "-o", v.binaries[s.folder], "./"+s.folder); err != nil {
			return nil, fmt.Errorf("building %s: %w", s.folder, err)
		}
	}
	return v, nil
}

// run runs a suite and adds its results. If only is set, it runs only the benchmarks that match.
func (v *version) run(s *suite, only string, matches *regexp.Regexp, into *results) error {
	if only == "" {
		return v.bench(s, s.pattern, into)
	}
	var list strings.Builder
	if err := command(filepath.Join(v.root, s.folder), &list, v.binaries[s.folder], "-test.list", s.pattern); err != nil {
		return err
	}
	for name := range strings.FieldsSeq(list.String()) {
		if strings.HasPrefix(name, "Benchmark") && matches.MatchString(name) {
			if err := v.bench(s, "^"+name+"$", into); err != nil {
				return err
			}
		}
	}
	return nil
}

// bench runs the benchmarks of a suite that match the pattern.
func (v *version) bench(s *suite, pattern string, into *results) error {
	var out strings.Builder
	fmt.Fprintf(&out, "pkg: %s\n", s.folder)
	err := command(filepath.Join(v.root, s.folder), io.MultiWriter(os.Stdout, &out), v.binaries[s.folder],
		"-test.run", "^$", "-test.bench", pattern, "-test.benchtime", s.iterations, "-test.benchmem", "-test.timeout", "30m")
	if err != nil {
		return fmt.Errorf("%s: %s: %w", s.folder, pattern, err)
	}
	return into.read(out.String())
}

// again runs one benchmark again.
func (v *version) again(name string, into *results) error {
	folder, benchmark, _ := strings.Cut(name, " ")
	for i := range suites {
		s := &suites[i]
		if s.folder == folder && regexp.MustCompile(s.pattern).MatchString(benchmark) {
			return v.bench(s, exactly(benchmark), into)
		}
	}
	return fmt.Errorf("no suite has the benchmark %s", name)
}

// exactly returns a pattern of go test that matches only the benchmark.
func exactly(benchmark string) string {
	parts := strings.Split(benchmark, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}

// compare prints the tables of benchstat.
func compare(dir string, old, new *results) error {
	for name, r := range map[string]*results{"before": old, "now": new} {
		if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(r.text.String()), 0o644); err != nil {
			return err
		}
	}
	fmt.Println()
	return command(".", os.Stdout, "go", "tool", "-modfile=hack/tools/go.mod", "benchstat", "before="+filepath.Join(dir, "before.txt"), "now="+filepath.Join(dir, "now.txt"))
}

// command runs a command in the folder. What it prints is written to out.
func command(folder string, out io.Writer, name string, args ...string) error {
	c := exec.Command(name, args...)
	c.Dir, c.Stdout, c.Stderr = folder, out, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
