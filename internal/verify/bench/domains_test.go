package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/domainscorer"
	"github.com/berth-project/berth/plugins/standard"
)

// domainCourse is a random course of jobs on NVLink domains of eight nodes with four devices. A job arrives
// in each step, jobs end until at most the given percentage of the devices is held, and the job is placed.
// One job in 40 is a gang that needs a whole domain; the others request one, two or four devices.
type domainCourse struct {
	scored  bool // with DomainScorer
	ordered bool // the names of nodes are in the order of domains; otherwise they alternate
	percent int
}

// domainShares are the results of a course.
type domainShares struct {
	gangs, placed  int
	whole, steps   int // domains that were whole, over all steps
	small, refused int // other jobs, and those that were not placed
}

const (
	courseDomains = 16
	courseNodes   = 8 // of a domain
	courseSteps   = 4_000
	courseSeeds   = 2
)

// TestDomains prints how many gangs that need a whole domain are placed, with and without DomainScorer.
// docs/wiring.md has the table.
func TestDomains(t *testing.T) {
	var table strings.Builder
	for _, c := range []domainCourse{{percent: 65}, {percent: 65, ordered: true}, {percent: 80}, {percent: 80, ordered: true}} {
		var shares [2]domainShares // without and with the score
		for i := range shares {
			r := &shares[i]
			c.scored = i > 0
			for seed := range uint64(courseSeeds) {
				c.run(t, seed, r)
			}
			names, how := "alternate", "without DomainScorer"
			if c.ordered {
				names = "in the order of domains"
			}
			if c.scored {
				how = "as shipped"
			}
			fmt.Fprintf(&table, "| %d %% | %s | %s | %.1f | %d of %d | %d of %d |\n", c.percent, names, how, float64(r.whole)/float64(r.steps), r.placed, r.gangs, r.refused, r.small)
		}
		if shares[1].placed < min(shares[1].gangs, shares[0].placed+1) || shares[1].whole <= shares[0].whole {
			t.Errorf("%+v: %d gangs are placed as shipped, and %d without DomainScorer", c, shares[1].placed, shares[0].placed)
		}
		if shares[1].refused > shares[0].refused+shares[0].small/200 {
			t.Errorf("%+v: %d other jobs are refused as shipped, and %d without DomainScorer", c, shares[1].refused, shares[0].refused)
		}
	}
	t.Logf("%d domains, %d courses of %d arrivals:\n| held | names of nodes | how | whole domains | gangs placed | others refused |\n|---|---|---|---|---|---|\n%s", courseDomains, courseSeeds, courseSteps, table.String())
}

// run adds what happens in one course to the results.
func (c domainCourse) run(t *testing.T, seed uint64, out *domainShares) {
	t.Helper()
	state := cluster.NewState()
	for i := range courseDomains * courseNodes {
		domain := i % courseDomains
		if c.ordered {
			domain = i / courseNodes
		}
		n := cluster.Node{
			Name: fmt.Sprintf("n%03d", i), Labels: map[string]string{cluster.LabelClique: fmt.Sprintf("d%02d", domain)},
			Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 128_000}, {Name: cluster.Memory, Capacity: 1 << 40}},
		}
		for d := range 4 {
			n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "NVIDIA-GB200", Type: "cuda", Memory: 180 << 30, NUMA: -1}, UUID: fmt.Sprintf("GPU-%d-%d", i, d)})
		}
		if err := state.Apply(cluster.NodePut{Node: n}); err != nil {
			t.Fatal(err)
		}
	}
	profile := standard.Profile()
	at := slices.IndexFunc(profile, func(p engine.PluginConfig) bool { return p.Name == domainscorer.Name })
	if !c.scored {
		profile = slices.Delete(profile, at, at+1)
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	arrivals, ends := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	const total = courseDomains * courseNodes * 4
	running, sizes, held := []string{}, map[string]int{}, 0
	for step := range courseSteps {
		devices, tasks := []int{1, 1, 1, 2, 4}[arrivals.IntN(5)], 1
		if arrivals.IntN(40) == 0 {
			devices, tasks = 4, courseNodes
		}
		for held+devices*tasks > total*c.percent/100 {
			i := ends.IntN(len(running))
			if err := state.Apply(cluster.JobGone{Job: running[i]}); err != nil {
				t.Fatal(err)
			}
			held -= sizes[running[i]]
			running = slices.Delete(running, i, i+1)
		}
		job := Job(step, cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory, Value: 1 << 30}}, Need: cluster.Need{Devices: devices}})
		if tasks > 1 {
			alt := &job.Alternatives[0]
			first := alt.Tasks[0]
			for i := 1; i < tasks; i++ {
				alt.Tasks = append(alt.Tasks, &cluster.Task{Name: fmt.Sprintf("%s-%d", first.Name, i), Shape: first.Shape, Index: i})
			}
			alt.Min, alt.Topology.Required = tasks, cluster.LabelClique
			out.gangs++
		} else {
			out.small++
		}
		if err := state.Apply(cluster.JobPut{Job: job}); err != nil {
			t.Fatal(err)
		}
		s := e.Open(state, engine.Options{Now: int64(step) * 1e9})
		if _, err := s.Run(); err != nil {
			t.Fatal(err)
		}
		s.Close()
		out.steps++
		out.whole += wholeDomains(state)
		switch placed := state.Job(job.ID).HasMinimum(); {
		case placed:
			held += devices * tasks
			running, sizes[job.ID] = append(running, job.ID), devices*tasks
			if tasks > 1 {
				out.placed++
			}
			continue
		case tasks == 1:
			out.refused++
		}
		if err := state.Apply(cluster.JobGone{Job: job.ID}); err != nil {
			t.Fatal(err)
		}
	}
}

// wholeDomains returns how many domains have no held device.
func wholeDomains(s *cluster.State) int {
	broken := map[string]bool{}
	for _, n := range s.Nodes() {
		if len(n.Tasks) > 0 {
			broken[n.Labels[cluster.LabelClique]] = true
		}
	}
	return courseDomains - len(broken)
}
