package oracle

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// reckless is an adapter that evicts all tasks that the function protects does not protect. It
// follows no rules.
type reckless struct {
	kind     Kind
	protects func(*cluster.Task) bool
}

func (r *reckless) Name() string { return "Reckless" }
func (r *reckless) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddAdapter(func(stmt *engine.Statement, j *cluster.Job, _ *engine.Refusal) *engine.Refusal {
		for _, n := range s.View.Nodes() {
			for _, t := range slices.Clone(n.Tasks) {
				if t.Runs() && t.Job != j && !r.protects(t) {
					if err := stmt.Evict(t, j.ID, reasons[r.kind]); err != nil {
						return nil
					}
				}
			}
		}
		return s.Place(stmt, j)
	})
}

// profileWithoutRoom returns the standard profile without the plugins that make room.
func profileWithoutRoom() (out engine.Profile) {
	for _, p := range standard.Profile() {
		if reasons[Kind(p.Name)] == "" {
			out = append(out, p)
		}
	}
	return out
}

// judgeReckless judges a session in which reckless is the only plugin that makes room.
func judgeReckless(t *testing.T, c *Case, protects func(*cluster.Task) bool) []Verdict {
	t.Helper()
	registry := standard.Registry()
	if err := registry.RegisterPluginBuilder("Reckless", func(engine.Arguments) (engine.Plugin, error) {
		return &reckless{kind: c.Kind, protects: protects}, nil
	}); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(registry, append(profileWithoutRoom(), engine.PluginConfig{Name: "Reckless"}))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := c.Judge(e)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// TestViolationsAreFound runs adapters that follow some rules and break others, and checks
// that a violation of every rule is found.
func TestViolationsAreFound(t *testing.T) {
	seen := map[string]int{}
	for _, k := range []Kind{Consolidate, Reclaim, Preempt} {
		for number := range 300 {
			some := uint64(number)
			for _, protects := range []func(*cluster.Task) bool{
				func(*cluster.Task) bool { return false },
				func(t *cluster.Task) bool { return !t.Job.Preemptible },
				func(t *cluster.Task) bool { return !t.Job.Preemptible || some>>(len(t.Job.ID)+t.Index)&1 == 1 },
				func(t *cluster.Task) bool { return !t.Job.Preemptible || some>>(t.Job.ID[len(t.Job.ID)-1]%8)&1 == 1 },
			} {
				c, err := Draw(k, number)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range judgeReckless(t, c, protects) {
					for _, broken := range v.Illegal {
						seen[broken.Rule]++
					}
				}
			}
		}
	}
	for _, want := range []string{
		"it is not preemptible", "it was displaced for the job before", "its minimum run time has not passed", "its disruption budget would be violated",
		"reclaim: its Guaranteed queue would hold less than its quota", "reclaim: it is in the same queue", "reclaim 1: the tier of its queue is stronger",
		"reclaim 2: the job's queue would be above its share", "reclaim 3: its queue would be below its share",
		"preempt: its Guaranteed queue would hold less than its quota", "preempt: its priority is not lower, and its queue is the same", "preempt: the tier of its queue is not weaker",
		"not all of its victims are needed", "a gang is left below its minimum", "moved, but it has no new location",
	} {
		if seen[want] == 0 {
			t.Errorf("no violation of this rule was found: %s", want)
		}
	}
	t.Log(seen)
}
