package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// racks returns racks with the given numbers of nodes: r1-01, r1-02, r2-01 and so on. Each node has
// two devices.
func racks(sizes ...int) []enginetest.Part {
	var parts []enginetest.Part
	for r, size := range sizes {
		for i := range size {
			parts = append(parts, enginetest.Node(fmt.Sprintf("r%d-%02d", r+1, i+1)).CPU(8, "64Gi").GPUs(2, "A100", "80Gi").
				Label("rack", fmt.Sprintf("r%d", r+1)).Label("link", fmt.Sprintf("r%d-l%d", r+1, i/2)))
		}
	}
	return parts
}

// spread counts the placed tasks by the value of a node label.
func spread(s *cluster.State, level string) map[string]int {
	out := map[string]int{}
	for _, t := range s.Job("job/t").Tasks() {
		if t.Placed() {
			out[t.Node.Labels[level]]++
		}
	}
	return out
}

func gangOf(n, least, devices int, topology cluster.Topology) *cluster.Job {
	return teams(least, topology, team{tasks: n, devices: devices})
}

func TestTopology(t *testing.T) {
	inOne := cluster.Topology{Required: "rack"}
	near := cluster.Topology{Preferred: []string{"rack"}}
	tests := map[string]struct {
		parts []enginetest.Part
		job   *cluster.Job
		level string
		want  map[string]int
	}{
		"required: the smallest domain that holds all tasks": {
			racks(4, 2, 3), gangOf(2, 2, 2, inOne), "rack", map[string]int{"r2": 2},
		},
		"required: room that other jobs hold does not count": {
			append(racks(4, 2, 3), enginetest.Job("x").Devices(1).On("r2-01")), gangOf(2, 2, 2, inOne), "rack", map[string]int{"r3": 2},
		},
		"required: a domain for all tasks before one for the minimum": {
			racks(2, 3, 1), gangOf(3, 1, 2, inOne), "rack", map[string]int{"r2": 3},
		},
		"required: the domain that holds most tasks": {
			racks(2, 3, 1), gangOf(5, 1, 2, inOne), "rack", map[string]int{"r2": 3},
		},
		"required: nodes without the label are in no domain": {
			[]enginetest.Part{enginetest.Node("a").GPUs(4, "A", "8Gi"), enginetest.Node("b").GPUs(2, "A", "8Gi").Label("rack", "r9")},
			gangOf(2, 2, 1, inOne), "rack", map[string]int{"r9": 2},
		},
		"preferred: one domain, the smallest that holds all tasks": {
			racks(4, 2, 3), gangOf(3, 3, 2, near), "rack", map[string]int{"r3": 3},
		},
		"preferred: as few domains as possible": {
			racks(4, 2, 3, 4), gangOf(8, 8, 2, near), "rack", map[string]int{"r1": 4, "r4": 4},
		},
		"preferred: the remaining tasks are in the smallest domain that holds them": {
			racks(4, 1, 3), gangOf(5, 5, 2, near), "rack", map[string]int{"r1": 4, "r2": 1},
		},
		"preferred: never a reason to refuse": {
			append(racks(1), enginetest.Node("a").GPUs(2, "A", "8Gi")), gangOf(2, 2, 2, near), "rack", map[string]int{"r1": 1, "": 1},
		},
		"preferred: the narrowest level with a domain that holds all tasks": {
			racks(4, 4), gangOf(2, 2, 2, cluster.Topology{Preferred: []string{"link", "rack"}}), "link", map[string]int{"r1-l0": 2},
		},
		"preferred: the wider level if no domain of the narrow level holds all tasks": {
			racks(4, 4), gangOf(3, 3, 2, cluster.Topology{Preferred: []string{"link", "rack"}}), "link", map[string]int{"r1-l0": 2, "r1-l1": 1},
		},
		"preferred inside required": {
			racks(3, 4), gangOf(4, 4, 2, cluster.Topology{Required: "rack", Preferred: []string{"link"}}), "link", map[string]int{"r2-l0": 2, "r2-l1": 2},
		},
		"subgroups in racks of their own": {
			racks(2, 2), teams(4, cluster.Topology{}, team{name: "a", tasks: 2, least: 2, devices: 2, topology: inOne}, team{name: "b", tasks: 2, least: 2, devices: 2, topology: inOne}),
			"rack", map[string]int{"r1": 2, "r2": 2},
		},
		"a subgroup's domain lies inside the job's": {
			racks(2, 3), teams(3, inOne, team{tasks: 1, devices: 2}, team{name: "b", tasks: 2, least: 2, devices: 2, topology: cluster.Topology{Required: "link"}}),
			"link", map[string]int{"r2-l0": 2, "r2-l1": 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := add(t, enginetest.State(tt.parts...), tt.job)
			out := run(t, enginetest.Engine(fit()), s)
			if diff := cmp.Diff(tt.want, spread(s, tt.level)); diff != "" {
				t.Errorf("%s%v", diff, out.Refusals)
			}
		})
	}
}

// TestRunningTasksPinTheDomain checks that pending tasks are placed in the rack of the running tasks,
// although another rack has more room.
func TestRunningTasksPinTheDomain(t *testing.T) {
	for name, topology := range map[string]cluster.Topology{"required": {Required: "rack"}, "preferred": {Preferred: []string{"rack"}}} {
		s := add(t, enginetest.State(racks(4, 3)...), gangOf(3, 3, 2, topology))
		first := s.Job("job/t").Tasks()[0]
		apply(t, s, runsOn(first, s.Node("r1-03")))
		run(t, enginetest.Engine(fit()), s)
		if diff := cmp.Diff(map[string]int{"r1": 3}, spread(s, "rack")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTwoWholeRacks checks that a job of 64 nodes is placed on two whole racks of 32 nodes if two
// are free.
func TestTwoWholeRacks(t *testing.T) {
	parts := racks(32, 32, 32, 32)
	parts = append(parts, enginetest.Job("x").Gang(2).Devices(1).On("r1-07", "r3-01"))
	for name, topology := range map[string]cluster.Topology{"preferred": {Preferred: []string{"rack"}}, "with links": {Preferred: []string{"link", "rack"}}} {
		s := add(t, enginetest.State(parts...), gangOf(64, 64, 2, topology))
		run(t, enginetest.Engine(fit()), s)
		if diff := cmp.Diff(map[string]int{"r2": 32, "r4": 32}, spread(s, "rack")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	s := add(t, enginetest.State(parts...), func() *cluster.Job {
		j := enginetest.Job("t").WholeNodes(64, "8Gi").Build()
		j.Alternatives[0].Topology = cluster.Topology{Preferred: []string{"rack"}}
		return j
	}())
	run(t, enginetest.Engine(fit(), groups()), s)
	if diff := cmp.Diff(map[string]int{"r2": 32, "r4": 32}, spread(s, "rack")); diff != "" {
		t.Errorf("whole nodes: %s", diff)
	}
}

func TestNoDomainFits(t *testing.T) {
	type verdict struct {
		Reason      engine.Reason
		Permanent   bool
		Subgroup    string
		Placed, Min int
		Domains     []engine.DomainMiss
	}
	inOne := cluster.Topology{Required: "rack"}
	tests := map[string]struct {
		parts []enginetest.Part
		job   *cluster.Job
		want  verdict
	}{
		"no rack is large enough": {
			racks(2, 3), gangOf(8, 8, 1, inOne),
			verdict{engine.NoDomainFits, true, "", 6, 8, []engine.DomainMiss{{Value: "r2", Nodes: 3, Fits: 6, Lacks: 1}, {Value: "r1", Nodes: 2, Fits: 4, Lacks: 2}}},
		},
		"a rack would be large enough if it were empty": {
			append(racks(2, 3), enginetest.Job("x").Devices(1).On("r2-01")), gangOf(3, 3, 2, inOne),
			verdict{engine.NoDomainFits, false, "", 2, 3, []engine.DomainMiss{{Value: "r1", Nodes: 2, Fits: 2, Lacks: 1}, {Value: "r2", Nodes: 3, Fits: 2, Lacks: 1}}},
		},
		"no node has the label": {
			twoNodes(), gangOf(2, 2, 1, inOne), verdict{engine.NoDomainFits, true, "", 0, 2, nil},
		},
		"a subgroup": {
			racks(2, 2), teams(1, cluster.Topology{}, team{name: "b", tasks: 3, least: 3, devices: 2, topology: inOne}),
			verdict{engine.NoDomainFits, true, "b", 2, 3, []engine.DomainMiss{{Value: "r1", Nodes: 2, Fits: 2, Lacks: 1}, {Value: "r2", Nodes: 2, Fits: 2, Lacks: 1}}},
		},
		"no node can take the task in any domain": {
			racks(2, 2), gangOf(2, 2, 9, inOne), verdict{"NoDevices", true, "", 0, 2, nil},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := add(t, enginetest.State(tt.parts...), tt.job)
			out := run(t, enginetest.Engine(fit()), s)
			if len(out.Refusals) != 1 || len(out.Decisions) > 0 {
				t.Fatalf("%v, %v", where(out), out.Refusals)
			}
			r := out.Refusals[0]
			a := &r.Attempts[0]
			if diff := cmp.Diff(tt.want, verdict{r.Reason, r.Permanent, a.Subgroup, a.Placed, a.Min, a.Domains}); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRefusalKeepsTenDomains checks that a refusal lists at most ten domains, the best ones.
func TestRefusalKeepsTenDomains(t *testing.T) {
	s := add(t, enginetest.State(racks(slices.Repeat([]int{1}, 12)...)...), gangOf(2, 2, 2, cluster.Topology{Required: "rack"}))
	if a := run(t, enginetest.Engine(fit()), s).Refusals[0].Attempts[0]; len(a.Domains) != 10 || a.Domains[0].Value != "r1" {
		t.Errorf("%+v", a.Domains)
	}
}

// TestSearchesAgreeOnTopology checks that all values of Options.Search give the same placements.
func TestSearchesAgreeOnTopology(t *testing.T) {
	var first map[string]string
	for _, search := range []engine.Search{engine.Indexed, engine.Scan, engine.Twin} {
		s := add(t, enginetest.State(append(racks(4, 3, 5), enginetest.Job("x").Gang(2).Devices(1).On("r1-01", "r3-02"))...), gangOf(9, 5, 2, cluster.Topology{Preferred: []string{"link", "rack"}}))
		out, err := enginetest.Engine(fit(), prefer("P", map[string]float64{"r3-04": 9, "r2-02": 5})).Open(s, engine.Options{Search: search}).Run()
		if err != nil {
			t.Fatal(err)
		}
		if got := where(out); first == nil {
			first = got
		} else if !maps.Equal(first, got) {
			t.Errorf("search %d: %s", search, cmp.Diff(first, got))
		}
	}
}

// TestSurplusWithoutADomain checks that no surplus task is placed, and no task evicted, if the minimum
// of a job runs on nodes without the topology label.
func TestSurplusWithoutADomain(t *testing.T) {
	s := add(t, enginetest.State(append(racks(2), enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"))...),
		teams(1, cluster.Topology{Required: "rack"}, team{tasks: 2, devices: 1}, team{name: "b", tasks: 1, devices: 1, topology: cluster.Topology{Preferred: []string{"rack"}}}))
	first := s.Job("job/t").Tasks()[0]
	apply(t, s, runsOn(first, s.Node("a")))
	out := run(t, enginetest.Engine(fit()), s)
	if r := out.Refusals[0]; len(out.Decisions) != 0 || !r.Surplus || r.Reason != engine.NoDomainFits {
		t.Errorf("%v %+v", where(out), r)
	}
}
