package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

var (
	big   = cluster.GroupKey{Product: "A100", Count: 8, Memory: 80 << 10, Resource: cluster.DefaultDeviceResource}
	mid   = cluster.GroupKey{Product: "A100", Count: 4, Memory: 40 << 10, Resource: cluster.DefaultDeviceResource}
	small = cluster.GroupKey{Product: "A10", Count: 1, Memory: 24 << 10, Resource: cluster.DefaultDeviceResource}
	lost  = cluster.GroupKey{Product: "V100", Count: 8, Memory: 16 << 10, Resource: cluster.DefaultDeviceResource}
)

// form is an alternative that takes a number of whole nodes of one group for each replica.
type form struct {
	group cluster.GroupKey
	nodes int
}

// replica adds a job with one alternative for each form.
func replica(s *cluster.State, name string, set cluster.Set, replicas int, forms ...form) {
	j := enginetest.Job(name).Set(set.Name, set.Desired).Build()
	j.OwnDetails().Set = set
	j.Alternatives = nil
	for _, f := range forms {
		alt := enginetest.Job(name).WholeNodes(f.nodes, "8Gi").Build().Alternatives[0]
		alt.Name = f.group.Product
		alt.Whole = &cluster.WholeNodes{Replicas: replicas, NodesPerReplica: f.nodes, Memory: 8 << 30, Only: &f.group}
		j.Alternatives = append(j.Alternatives, alt)
	}
	if err := s.Apply(cluster.JobPut{Job: *j}); err != nil {
		panic(err)
	}
}

// TestAlternativesThatNameGroupsAreOneChoice: if the alternatives of a job name groups, the
// group with the best score is chosen, and not the first alternative.
func TestAlternativesThatNameGroupsAreOneChoice(t *testing.T) {
	tests := map[string]struct {
		held     []enginetest.Part
		replicas int
		forms    []form
		want     map[string]string
	}{
		"the best score, not the first": {nil, 1, []form{{big, 1}, {small, 1}, {mid, 1}}, map[string]string{"job/m/worker-0": "small"}},
		"node count of each form":       {nil, 1, []form{{big, 1}, {small, 2}, {mid, 2}}, map[string]string{"job/m/worker-0": "mid-1", "job/m/worker-1": "mid-2"}},
		"room for all replicas":         {nil, 3, []form{{big, 1}, {small, 1}, {mid, 1}}, map[string]string{"job/m/worker-0": "big-1"}},
		"the next best if the best is in use": {
			[]enginetest.Part{enginetest.Job("x").Devices(1).On("small")}, 1, []form{{big, 1}, {small, 1}, {mid, 1}}, map[string]string{"job/m/worker-0": "mid-1"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(machines(), tt.held...)
			replica(s, "m", cluster.Set{Name: "m", Desired: tt.replicas}, tt.replicas, tt.forms...)
			if diff := cmp.Diff(tt.want, where(run(t, enginetest.Engine(fit(), nodesEnough()), s))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// nodesEnough rejects groups with too few nodes for all replicas, and prefers groups with
// fewer devices per node.
func nodesEnough() *policy {
	return &policy{name: "Groups", open: func(s *engine.Session) {
		s.Hooks.AddGroupFilter(func(_ *cluster.Job, want *cluster.WholeNodes, _ *cluster.Group, nodes []*cluster.Node) *engine.Rejection {
			if len(nodes) < want.Replicas*want.NodesPerReplica {
				return &engine.Rejection{Reason: "TooFew", Cure: engine.Grow}
			}
			return nil
		})
		s.Hooks.AddGroupScore(func(_ *cluster.Job, _ *cluster.WholeNodes, g *cluster.Group, _ []*cluster.Node) float64 {
			return max(0, 100-float64(g.Key.Count)*10)
		})
	}}
}

func TestChoiceRefusedAsOne(t *testing.T) {
	tests := map[string]struct {
		held          []enginetest.Part
		forms         []form
		wantReason    engine.Reason
		wantPermanent bool
		wantGroups    map[cluster.GroupKey]engine.Reason
	}{
		"no group is suitable": {nil, []form{{mid, 1}, {small, 1}}, engine.NoSuitableGroup, true, map[cluster.GroupKey]engine.Reason{mid: "TooFew", small: "TooFew"}},
		"one is in use": {
			[]enginetest.Part{enginetest.Job("x").Devices(1).On("big-1")}, []form{{mid, 1}, {big, 1}},
			engine.GroupInUse, false, map[cluster.GroupKey]engine.Reason{mid: "TooFew", big: ""},
		},
		"one is gone": {nil, []form{{mid, 1}, {lost, 1}}, engine.GroupMissing, false, map[cluster.GroupKey]engine.Reason{mid: "TooFew", lost: engine.GroupMissing}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := with(machines(), tt.held...)
			replica(s, "m", cluster.Set{Name: "m", Desired: 3}, 3, tt.forms...)
			out := run(t, enginetest.Engine(fit(), nodesEnough()), s)
			if len(out.Refusals) != 1 || len(out.Refusals[0].Attempts) != 1 {
				t.Fatalf("%+v", out.Refusals)
			}
			r := out.Refusals[0]
			if r.Reason != tt.wantReason || r.Permanent != tt.wantPermanent {
				t.Errorf("%s, permanent: %v", r.Reason, r.Permanent)
			}
			got := map[cluster.GroupKey]engine.Reason{}
			for _, g := range r.Attempts[0].Groups {
				if got[g.Key] = ""; g.Rejection != nil {
					got[g.Key] = g.Rejection.Reason
				}
			}
			if diff := cmp.Diff(tt.wantGroups, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReplicasKeepToTheirGroup(t *testing.T) {
	s := with(machines())
	all := []form{{big, 1}, {mid, 1}, {small, 1}}
	e := enginetest.Engine(fit(), nodesEnough())
	for _, name := range []string{"m-0", "m-1"} {
		replica(s, name, cluster.Set{Name: "m", Desired: 2}, 2, all...)
	}
	want := map[string]string{"job/m-0/worker-0": "mid-1", "job/m-1/worker-0": "mid-2"}
	if diff := cmp.Diff(want, where(run(t, e, s))); diff != "" {
		t.Error(diff)
	}
	// A replica beyond the nodes of the group waits, although other groups have room. The
	// refusal is not permanent.
	apply(t, s, cluster.SetScaled{Set: "m", Desired: 3})
	replica(s, "m-2", cluster.Set{Name: "m", Desired: 3}, 3, all...)
	out := run(t, e, s)
	if len(out.Decisions) != 0 || len(out.Refusals) != 1 {
		t.Fatalf("%+v", out)
	}
	r := out.Refusals[0]
	if a := r.Attempts[0]; r.Permanent || r.Reason != "NoDevices" || a.Nodes != 2 || len(a.Counts) != 1 || a.Counts[0].Nodes != 2 {
		t.Errorf("%+v", r)
	}
	// When the other replicas are removed, the set keeps the group that was chosen.
	apply(t, s, jobGone("job/m-0"), jobGone("job/m-1"))
	if got := where(run(t, e, s)); got["job/m-2/worker-0"] != "mid-1" {
		t.Errorf("%v", got)
	}
}

func TestReplicasOfARemovedGroup(t *testing.T) {
	s := with(machines())
	home := lost
	replica(s, "m-0", cluster.Set{Name: "m", Desired: 1, Group: &home}, 1, form{big, 1}, form{lost, 1})
	e := enginetest.Engine(fit(), nodesEnough())
	ask := func() engine.Outcome {
		ssn := e.Open(s, engine.Options{Patient: true, Now: 1})
		defer ssn.Close()
		out, err := ssn.Run()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	r := ask().Refusals[0]
	if r.Reason != engine.GroupMissing || r.Permanent || len(r.Attempts[0].Groups) != 1 {
		t.Errorf("%+v", r)
	}
	apply(t, s, nodePut(enginetest.Node("old").GPUs(8, "V100", "16Gi")))
	if got := where(ask()); got["job/m-0/worker-0"] != "old" {
		t.Errorf("the group is back: %v", got)
	}
}

func TestRoomIsMadeForAllReplicas(t *testing.T) {
	guests := []enginetest.Part{
		enginetest.Job("x").Preemptible().Devices(1).On("mid-1"), enginetest.Job("y").Preemptible().Devices(1).On("mid-2"),
		enginetest.Job("z").Preemptible().Gang(3).Devices(1).On("big-1", "big-2", "big-3"),
	}
	s := with(machines(), guests...)
	set := cluster.Set{Name: "m", Desired: 2}
	for _, name := range []string{"m-0", "m-1"} {
		replica(s, name, set, 2, form{big, 1}, form{mid, 1}, form{lost, 1})
	}
	e := enginetest.Engine(fit(), nodesEnough(), roomMaker(engine.Preempt), enginetest.AllowAllVictims())
	out := run(t, e, s)
	gone := map[string]string{}
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			gone[d.Task.ID()] = d.For
		}
	}
	// The group must have room for both replicas when the first is placed, and evicting two single tasks costs less than evicting a gang.
	if diff := cmp.Diff(map[string]string{"job/x/worker-0": "job/m-0", "job/y/worker-0": "job/m-0"}, gone); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"job/m-0/worker-0": "mid-1", "job/m-1/worker-0": "mid-2"}, where(out)); diff != "" {
		t.Error(diff)
	}
}
