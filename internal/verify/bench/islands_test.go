package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/berth-project/berth/plugins/wiringscorer"
)

// islandCourse is a random course of jobs on nodes with two NVLink domains of four devices. A job arrives in each step, jobs end until at most the given percentage
// of the devices is held, and the job is placed.
type islandCourse struct {
	name    string
	known   bool  // the scheduler knows the domains
	weight  int64 // the weight of WiringScorer; 0 leaves it out
	percent int
	sizes   []int // how many devices a job requests: one of these, each as likely as the others
}

// islandShares are the results of a course.
type islandShares struct {
	placed, together [9]int // by number of devices: tasks that were placed, and those in one domain
	refused          int
}

const (
	islandNodes = 40
	islandSteps = 5_000
	islandSeeds = 2
)

// TestIslands prints how many tasks of two and of four devices are in one NVLink domain, with and
// without knowledge of the domains. docs/wiring.md has the table.
func TestIslands(t *testing.T) {
	var table strings.Builder
	few, many := []int{1, 1, 1, 1, 1, 2, 2, 2, 4, 4}, []int{1, 1, 1, 1, 1, 2, 2, 4, 4, 8}
	for _, of := range []islandCourse{{percent: 75, sizes: few}, {percent: 90, sizes: few}, {percent: 90, sizes: many}} {
		percent := of.percent
		var shares []islandShares
		for _, c := range []islandCourse{
			{name: "domains are not known: the lowest index first"},
			{name: "without WiringScorer", known: true},
			{name: "as shipped", known: true, weight: 1},
			{name: "WiringScorer with weight 5", known: true, weight: 5},
		} {
			c.percent, c.sizes = of.percent, of.sizes
			r := islandShares{}
			for seed := range uint64(islandSeeds) {
				c.run(t, seed, &r)
			}
			shares = append(shares, r)
			fmt.Fprintf(&table, "| %d | %d %% | %s | %.1f %% | %.1f %% | %d |\n", slices.Max(c.sizes), percent, c.name, r.share(2), r.share(4), r.refused)
		}
		for _, devices := range []int{2, 4} {
			for i := 1; i < len(shares); i++ {
				if apart, before := 100-shares[i].share(devices), 100-shares[i-1].share(devices); apart > max(0.8*before, 1) {
					t.Errorf("%d %% held: %.1f %% of the tasks of %d devices are not in one domain, and %.1f %% in the row before", percent, apart, devices, before)
				}
			}
		}
		if more := shares[2].refused - shares[0].refused; more > max(islandSteps/1000, shares[0].refused/2) {
			t.Errorf("%d %% held: %d more jobs are refused than without knowledge of the domains", percent, more)
		}
	}
	t.Logf("%d nodes, %d courses of %d arrivals:\n| largest job | held | how | 2 devices in one domain | 4 devices in one domain | refused |\n|---|---|---|---|---|---|\n%s", islandNodes, islandSeeds, islandSteps, table.String())
}

func (r *islandShares) share(devices int) float64 {
	return 100 * float64(r.together[devices]) / float64(r.placed[devices])
}

// run adds what happens in one course to the results.
func (c islandCourse) run(t *testing.T, seed uint64, out *islandShares) {
	t.Helper()
	state := cluster.NewState()
	for i := range islandNodes {
		n := cluster.Node{Name: fmt.Sprintf("n%02d", i), Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 128_000}, {Name: cluster.Memory, Capacity: 1 << 40}}}
		for d := range 8 {
			device := cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "NVIDIA-A100-SXM4-40GB", Type: "cuda", Memory: 40 << 30, NUMA: -1}, UUID: fmt.Sprintf("GPU-%d-%d", i, d)}
			if c.known {
				device.Link = fmt.Sprintf("island-%d", d/4)
			}
			n.Devices = append(n.Devices, device)
		}
		if err := state.Apply(cluster.NodePut{Node: n}); err != nil {
			t.Fatal(err)
		}
	}
	profile := standard.Profile()
	at := slices.IndexFunc(profile, func(p engine.PluginConfig) bool { return p.Name == wiringscorer.Name })
	if profile[at].Weight = c.weight; c.weight == 0 {
		profile = slices.Delete(profile, at, at+1)
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	dice := rand.New(rand.NewPCG(seed, uint64(c.percent)))
	var running []string
	held := 0
	for step := range islandSteps {
		devices := c.sizes[dice.IntN(len(c.sizes))]
		for _, i := range dice.Perm(len(running)) {
			if held+devices <= islandNodes*8*c.percent/100 {
				break
			}
			job := state.Job(running[i])
			held -= len(job.Tasks()[0].Claims)
			if err := state.Apply(cluster.JobGone{Job: job.ID}); err != nil {
				t.Fatal(err)
			}
			running[i] = ""
		}
		running = slices.DeleteFunc(running, func(id string) bool { return id == "" })
		job := Job(step, cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1000}, {Name: cluster.Memory, Value: 1 << 30}}, Need: cluster.Need{Devices: devices}})
		if err := state.Apply(cluster.JobPut{Job: job}); err != nil {
			t.Fatal(err)
		}
		s := e.Open(state, engine.Options{Now: int64(step) * 1e9})
		if _, err := s.Run(); err != nil {
			t.Fatal(err)
		}
		s.Close()
		placed := state.Job(job.ID)
		if !placed.Running() {
			out.refused++
			if err := state.Apply(cluster.JobGone{Job: job.ID}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		held += devices
		running = append(running, job.ID)
		out.placed[devices]++
		claims := placed.Tasks()[0].Claims
		if claims[0].Device/4 == claims[devices-1].Device/4 {
			out.together[devices]++
		}
	}
}
