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

// islandCourse is a random course of jobs on nodes with two NVLink domains of four devices. A
// job arrives in each step and is placed, and jobs end until at most the given percentage of
// the devices is held.
type islandCourse struct {
	known   bool // the scheduler knows the domains
	scored  bool // WiringScorer compares nodes
	percent int
}

// islandShares are the results of a course.
type islandShares struct {
	placed, together [5]int // by number of devices: tasks that were placed, and those in one domain
	refused          int
}

const (
	islandNodes = 40
	islandSteps = 20_000
)

// TestIslands prints how many tasks of two and of four devices are in one NVLink domain, with and
// without knowledge of the domains. docs/performance.md has the table.
func TestIslands(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "| held | domains | 2 devices in one | 4 devices in one | refused |\n|---|---|---|---|---|\n")
	for _, percent := range []int{60, 75, 90} {
		var shares [3]islandShares
		for i, c := range []islandCourse{{percent: percent}, {percent: percent, known: true}, {percent: percent, known: true, scored: true}} {
			r := c.run(t)
			shares[i] = r
			how := [...]string{"not known: the lowest index first", "known", "known, with WiringScorer"}[i]
			fmt.Fprintf(&table, "| %d %% | %s | %.1f %% | %.1f %% | %d of %d |\n", percent, how, r.share(2), r.share(4), r.refused, islandSteps)
		}
	}
	t.Logf("%d nodes, %d arrivals:\n%s", islandNodes, islandSteps, table.String())
}

func (r *islandShares) share(devices int) float64 {
	return 100 * float64(r.together[devices]) / float64(r.placed[devices])
}

func (c islandCourse) run(t *testing.T) islandShares {
	t.Helper()
	state := cluster.NewState()
	for i := range islandNodes {
		n := cluster.Node{Name: fmt.Sprintf("n%02d", i), Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 128_000}, {Name: cluster.Memory, Capacity: 1 << 40}}}
		for d := range 8 {
			device := cluster.Device{UUID: fmt.Sprintf("GPU-%d-%d", i, d), Product: "NVIDIA-A100-SXM4-40GB", Type: "cuda", Memory: 40 << 30, NUMA: -1}
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
	if !c.scored {
		profile = slices.DeleteFunc(profile, func(p engine.PluginConfig) bool { return p.Name == wiringscorer.Name })
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	dice, out := rand.New(rand.NewPCG(1, uint64(c.percent))), islandShares{}
	var running []string
	held := 0
	for step := range islandSteps {
		devices := []int{1, 1, 1, 1, 1, 2, 2, 2, 4, 4}[dice.IntN(10)]
		end := dice.Perm(max(1, len(running)))
		for _, i := range end {
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
		running = compact(running)
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
	return out
}

func compact(ids []string) []string {
	out := ids[:0]
	for _, id := range ids {
		if id != "" {
			out = append(out, id)
		}
	}
	return out
}
