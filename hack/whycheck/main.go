// Command whycheck checks the changes that berth why lists for refused workloads of random
// clusters. It carries each of them out on the manifests, and simulates again:
//
//	go run ./hack/whycheck -n 1000 -seed 1
//
// It exits with code 1 if a change is not true, or if more than one in a hundred workloads that
// a single change would cure gets no change that helps. With -dir, the manifests of each finding
// are written there.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/berth-project/berth/internal/verify/cures"
)

func main() {
	n := flag.Int("n", 1000, "how many refused workloads to check")
	seed := flag.Uint64("seed", 1, "the seed of the first cluster; each further cluster has the next seed")
	dir := flag.String("dir", "", "the directory for the manifests of findings")
	flag.Parse()
	if err := run(*n, *seed, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "whycheck:", err)
		os.Exit(1)
	}
}

func run(n int, first uint64, dir string) error {
	var all cures.Report
	clusters := 0
	for seed := first; all.Refusals < n; seed++ {
		in, err := cures.Random(seed)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		clusters++
		r := cures.Check(in, n-all.Refusals)
		all.Add(r)
		for _, list := range []struct {
			what     string
			findings []cures.Finding
		}{{"wrong", r.Problems}, {"missed", r.Missed}} {
			for i, f := range list.findings {
				fmt.Printf("seed %d: %s: %s: %s\n", seed, list.what, f.Workload, f.Text)
				if dir == "" {
					continue
				}
				name := filepath.Join(dir, fmt.Sprintf("%s-%d-%d.json", list.what, seed, i))
				if err := os.WriteFile(name, f.Input.JSON(), 0o600); err != nil {
					return err
				}
			}
		}
	}
	fmt.Printf("%d clusters, %d refused workloads, %d changes that help, %d wrong; %d workloads curable by one change, %d of them missed\n",
		clusters, all.Refusals, all.Cures, len(all.Problems), all.Curable, len(all.Missed))
	if len(all.Problems) > 0 || len(all.Missed)*100 > all.Curable {
		return fmt.Errorf("berth why is wrong, or misses more than 1 %%")
	}
	return nil
}
