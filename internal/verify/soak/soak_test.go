package soak

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestInvariants runs 500 lives with fixed seeds. `make soak` runs lives with other
// seeds.
func TestInvariants(t *testing.T) {
	const lives, steps = 500, 200
	var total Counts
	var wg sync.WaitGroup
	var mu sync.Mutex
	for worker := range uint64(2) {
		wg.Go(func() {
			for seed := 1 + worker; seed <= lives; seed += 2 {
				counts, failure := Life{Seed: seed, Steps: steps}.Run()
				if failure != nil {
					failure = failure.Shrink()
					t.Errorf("%v\nreplay: %s", failure, failure.Replay())
				}
				mu.Lock()
				total.Add(counts)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	t.Log(total)
	for what, n := range map[string][2]int{
		"steps": {total.Steps, lives * steps}, "decisions": {total.Decisions, 19_000}, "refusals": {total.Refusals, 40_000}, "changes": {total.Changes, 100_000}, "replays": {total.Replays, 500}, "torn logs": {total.Torn, 500}, "refused": {total.Refused, 400}, "unanswered": {total.Unanswered, 300},
		"evictions": {total.Evictions - total.Moves - total.Stale - total.ScaledDown, 350}, "scaled down": {total.ScaledDown, 500}, "retired": {total.Retired, 1000}, "whole nodes": {total.WholeNodes, 200}, "moves": {total.Moves, 500}, "stale gangs": {total.Stale, 100},
		"crashes": {total.Crashes, 2000}, "lost decisions": {total.Lost, 500}, "waits": {total.Waits, 5000}, "settled": {total.Settled, 500},
	} {
		if !t.Failed() && n[0] < n[1] {
			t.Errorf("too little happened: %d %s, want %d", n[0], what, n[1])
		}
	}
}

// TestLivesRepeat checks that equal seeds give equal lives, so that a failure can be
// replayed.
func TestLivesRepeat(t *testing.T) {
	for seed := uint64(1); seed <= 5; seed++ {
		first, _ := Life{Seed: seed, Steps: 150}.Run()
		second, _ := Life{Seed: seed, Steps: 150}.Run()
		if first != second {
			t.Errorf("seed %d: %v, and then %v", seed, first, second)
		}
	}
}

// TestBindingToRemovedNode checks that a binding to a node that was removed starts no
// task on a new node with the same name, whether it is answered or the scheduler
// restarts.
func TestBindingToRemovedNode(t *testing.T) {
	for name, what := range map[string]func(*World) error{"answered": (*World).Answer, "restarted": (*World).Crash} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) { // some bindings fail for other reasons
				w := &World{site: newSite(), dice: newDice(seed, 0), clock: 3600 * second, torn: map[string]int64{}, sent: map[string]*process{}}
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				must(w.boot())
				must(w.reportNode(enginetest.Node("n").CPU(8, "8Gi").Build()))
				job := enginetest.Job("j").CPU(1000, "1Gi").Build()
				w.site.jobs[job.ID] = job
				must(w.apply(cluster.JobPut{Job: *job}))
				out, err := w.run(engine.Options{Now: w.clock, Record: true})
				must(err)
				must(w.writeLog(out.Changes...))
				if len(out.Decisions) != 1 {
					t.Fatalf("seed %d: decided %v", seed, out.Decisions)
				}
				must(w.send(w.State.Task(out.Decisions[0].Task), &out.Decisions[0]))
				must(w.removeNode("n"))
				must(w.reportNode(enginetest.Node("n").CPU(8, "8Gi").Build()))
				must(what(w))
				must(w.Check())
				if task := w.State.Job(job.ID).Tasks()[0]; len(w.site.runs) > 0 || task.Status != cluster.Pending {
					t.Errorf("seed %d: %d processes run, and the task is %s", seed, len(w.site.runs), task.Status)
				}
			}
		})
	}
}

// TestShrink checks that a failure is found and reduced to a few steps, and that its
// command replays it.
func TestShrink(t *testing.T) {
	whole := stepKinds
	defer func() { stepKinds = whole }()
	stepKinds = append(slices.Clone(whole), stepKinds[0])
	last := &stepKinds[len(stepKinds)-1]
	last.name, last.do = "two processes on one device", func(w *World) error {
		for _, id := range sorted(w.site.runs) {
			if p := *w.site.runs[id]; len(p.claims) > 0 && p.claims[0].Milli == cluster.Whole {
				w.site.runs[id+" again"] = &p
			}
		}
		return nil
	}
	for seed := uint64(1); ; seed++ {
		_, failure := Life{Seed: seed, Steps: 100}.Run()
		if failure == nil || !strings.Contains(failure.Error(), "held twice") {
			continue
		}
		short := failure.Shrink()
		if n := len(short.Life.Only); n == 0 || n > 20 || n > failure.Step {
			t.Errorf("cut down to %d steps of %d", n, failure.Step)
		}
		want := fmt.Sprintf("go run ./hack/soak -replay %d -life 100 -only %d", seed, short.Life.Only[0])
		if got := short.Replay(); !strings.HasPrefix(got, want) {
			t.Errorf("replay: %s, want %s…", got, want)
		}
		return
	}
}
