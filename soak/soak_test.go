package soak

import (
	"flag"
	"os"
	"testing"

	"pgregory.net/rapid"
)

// TestMain makes runs long enough to add up to 100,000 steps, unless told otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "1400", "rapid.steps": "100"} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

type drawn struct{ t *rapid.T }

func (d drawn) Roll(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "roll") }

// TestPromises lives through random clusters. On failure rapid prints the seed
// and the flag that replays it.
func TestPromises(t *testing.T) {
	steps, decisions, refusals := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		w, err := NewWorld(drawn{rt})
		if err != nil {
			rt.Fatal(err)
		}
		step := func(do func() error) func(*rapid.T) {
			return func(rt *rapid.T) {
				steps++
				if err := do(); err != nil {
					rt.Fatal(err)
				}
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"add job": step(w.AddJob), "add another job": step(w.AddJob), "remove job": step(w.RemoveJob), "remove another job": step(w.RemoveJob),
			"add node": step(w.AddNode), "remove node": step(w.RemoveNode), "change node": step(w.ChangeNode),
			"change queue": step(w.ChangeQueue), "restore": step(w.Restore), "schedule": step(w.Schedule), "schedule again": step(w.Schedule),
			"evict": step(w.Evict), "leave": step(w.Leave), "agree": step(w.Agree), "rollback": step(w.Rollback),
			"": func(rt *rapid.T) {
				if err := w.Check(); err != nil {
					rt.Fatal(err)
				}
			},
		})
		decisions += w.Decisions
		refusals += w.Refusals
	})
	t.Logf("%d steps, %d decisions, %d refusals", steps, decisions, refusals)
	if !testing.Short() && flag.Lookup("rapid.failfile").Value.String() == "" && (steps < 100_000 || decisions < 10_000 || refusals < 10_000) {
		t.Errorf("too little happened: %d steps, %d decisions, %d refusals", steps, decisions, refusals)
	}
}
