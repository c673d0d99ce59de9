package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestVictimsNeedConsentOfAllPlugins(t *testing.T) {
	// Each plugin protects the victim of the named job, with its own name as reason.
	protect := func(name, job string) *policy {
		return &policy{name: name, open: func(s *engine.Session) {
			s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(v *engine.Victim) engine.Verdict {
					if v.Job.ID == job {
						return engine.Protect(engine.Reason("By" + name))
					}
					return engine.Allow
				}
			})
		}}
	}
	none := &policy{name: "None", open: func(s *engine.Session) {
		s.Hooks.AddReclaimable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict { return nil })
	}}
	state := with(twoNodes(), enginetest.Job("new"), enginetest.Job("x").On("a"), enginetest.Job("y").On("a"), enginetest.Job("z").On("a"))
	s := enginetest.Engine(protect("One", "job/x"), protect("Two", "job/y"), none).Open(state, engine.Options{})
	defer s.Close()
	tests := map[string]struct {
		purpose engine.Purpose
		victim  string
		want    *engine.Protector
	}{
		"the first plugin protects it":  {engine.Preempt, "job/x", &engine.Protector{Plugin: "One", Reason: "ByOne"}},
		"the second plugin protects it": {engine.Preempt, "job/y", &engine.Protector{Plugin: "Two", Reason: "ByTwo"}},
		"no plugin protects it":         {engine.Preempt, "job/z", nil},
		"a rule protects all victims":   {engine.Reclaim, "job/z", &engine.Protector{}},
		"no plugin allows it":           {engine.Move, "job/x", &engine.Protector{Plugin: "engine", Reason: engine.NoPluginAllows}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := engine.VictimOf(state.Job(tt.victim).Tasks()[0])
			if d := cmp.Diff(tt.want, s.ProtectedBy(tt.purpose, state.Job("job/new"), nil, v)); d != "" {
				t.Errorf("protector (-want +got):\n%s", d)
			}
		})
	}
}

func TestVictimOf(t *testing.T) {
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want []string // the tasks of the victim that has the first task
	}{
		"one it can spare":        {enginetest.Job("v").Gang(3).Min(2).On("a", "a", "b"), []string{"worker-0"}},
		"the whole gang":          {enginetest.Job("v").Gang(3).On("a", "a", "b"), []string{"worker-0", "worker-1", "worker-2"}},
		"what runs of it":         {enginetest.Job("v").Gang(3).Min(2).On("a", "a"), []string{"worker-0", "worker-1"}},
		"its part cannot spare":   {enginetest.Job("v").Gang(3).Min(2).Subgroup("x", 1, 1, cluster.Topology{}).On("a", "a", "b"), []string{"worker-0", "worker-1", "worker-2"}},
		"its part can spare":      {enginetest.Job("v").Gang(3).Min(2).Subgroup("x", 2, 1, cluster.Topology{}).On("a", "a", "b"), []string{"worker-0"}},
		"its part can, it cannot": {enginetest.Job("v").Gang(3).Min(3).Subgroup("x", 2, 1, cluster.Topology{}).On("a", "a", "b"), []string{"worker-0", "worker-1", "worker-2"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := engine.VictimOf(with(twoNodes(), tt.job).Job("job/v").Tasks()[0])
			var got []string
			for _, x := range v.Tasks {
				got = append(got, x.Name)
			}
			if d := cmp.Diff(tt.want, got); d != "" || v.Whole != (len(tt.want) > 1) {
				t.Errorf("whole %t (-want +got):\n%s", v.Whole, d)
			}
		})
	}
}

// TestVictimAllowedAfterAnother checks that a plan is found if a hook allows a victim only after
// another, whichever the hook is called for first.
func TestVictimAllowedAfterAnother(t *testing.T) {
	p := &policy{name: "InTurn"}
	p.open = func(s *engine.Session) {
		first := s.View.Job("job/x").Tasks()[0]
		s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
			return func(v *engine.Victim) engine.Verdict {
				if v.Job.ID == "job/y" && first.Runs() {
					return engine.NotYet("AfterX")
				}
				return engine.Allow
			}
		})
		s.Hooks.AddEvictionPurpose(engine.Preempt, "InTurn")
	}
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "32Gi").GPUs(2, "L4", "24Gi"), enginetest.Job("new").Devices(2),
		enginetest.Job("x").Devices(1).Preemptible().On("a"), enginetest.Job("y").Devices(1).Preemptible().On("a"),
	)
	var got []string
	for _, d := range run(t, enginetest.Engine(fit(), p), state).Decisions {
		got = append(got, string(d.Action)+" "+d.Task.ID())
	}
	want := []string{"Evict job/x/worker-0", "Evict job/y/worker-0", "Nominate job/new/worker-0"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decisions (-want +got):\n%s", d)
	}
}
