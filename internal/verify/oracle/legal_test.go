package oracle

import (
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// reckless evicts what it likes and lets Place judge the rest.
type reckless struct {
	kind  Kind
	spare func(*cluster.Task) bool
}

func (r *reckless) Name() string { return "Reckless" }
func (r *reckless) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddAdapter(func(stmt *engine.Statement, j *cluster.Job, _ *engine.Refusal) *engine.Refusal {
		for _, n := range s.View.Nodes() {
			for _, t := range slices.Clone(n.Tasks) {
				if t.Runs() && t.Job != j && !r.spare(t) {
					if err := stmt.Evict(t, j.ID, reasons[r.kind]); err != nil {
						return nil
					}
				}
			}
		}
		return s.Place(stmt, j)
	})
}

// without is the standard profile without means to make room.
func without() (out engine.Profile) {
	for _, p := range standard.Profile() {
		if reasons[Kind(p.Name)] == "" {
			out = append(out, p)
		}
	}
	return out
}

func judgeReckless(t *testing.T, c *Case, spare func(*cluster.Task) bool) []Verdict {
	t.Helper()
	registry := standard.Registry()
	if err := registry.RegisterPluginBuilder("Reckless", func(engine.Arguments) (engine.Plugin, error) {
		return &reckless{kind: c.Kind, spare: spare}, nil
	}); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(registry, append(without(), engine.PluginConfig{Name: "Reckless"}))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := c.Judge(e)
	if err != nil {
		t.Fatal(err)
	}
	return verdicts
}

// TestRulesBite has adapters that keep some rules and not others: every rule must be
// seen to be broken.
func TestRulesBite(t *testing.T) {
	seen := map[string]int{}
	for _, k := range []Kind{Consolidate, Reclaim, Preempt} {
		for number := range 300 {
			some := uint64(number)
			for _, spare := range []func(*cluster.Task) bool{
				func(*cluster.Task) bool { return false },
				func(t *cluster.Task) bool { return !t.Job.Preemptible },
				func(t *cluster.Task) bool { return !t.Job.Preemptible || some>>(len(t.Job.ID)+t.Index)&1 == 1 },
				func(t *cluster.Task) bool { return !t.Job.Preemptible || some>>(t.Job.ID[len(t.Job.ID)-1]%8)&1 == 1 },
			} {
				c, err := Draw(k, number)
				if err != nil {
					t.Fatal(err)
				}
				for _, v := range judgeReckless(t, c, spare) {
					for _, broken := range v.Illegal {
						seen[broken.Rule]++
					}
				}
			}
		}
	}
	for _, want := range []string{
		"it is not preemptible", "it was displaced for the job before", "its minimum run time has not passed", "its disruption budget would not hold",
		"reclaim: its Guaranteed queue would hold less than its quota", "reclaim: it is in the same queue", "reclaim 1: its queue is of a stronger tier",
		"reclaim 2: the job's queue would be above its share", "reclaim 3: its queue would be below its share",
		"preempt: its Guaranteed queue would hold less than its quota", "preempt: it matters as much in the same queue", "preempt: its queue is of no weaker tier",
		"fewer of its victims would have been enough", "a gang is left below its minimum", "moved, but it has no new place",
	} {
		if seen[want] == 0 {
			t.Errorf("this rule was never seen to be broken: %s", want)
		}
	}
	t.Log(seen)
}
