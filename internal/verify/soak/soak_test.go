package soak

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestInvariants runs 500 sequences with fixed seeds. `make soak` runs sequences with
// other seeds.
func TestInvariants(t *testing.T) {
	t.Parallel()
	const sequences, steps = 500, 200
	var total Counts
	var wg sync.WaitGroup
	var mu sync.Mutex
	var last atomic.Uint64
	for range 2 {
		wg.Go(func() {
			for seed := last.Add(1); seed <= sequences; seed = last.Add(1) {
				counts, failure := Sequence{Seed: seed, Steps: steps}.Run()
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
		"steps": {total.Steps, sequences * steps}, "decisions": {total.Decisions, 19_000}, "refusals": {total.Refusals, 40_000}, "changes": {total.Changes, 100_000}, "replays": {total.Replays, 500}, "logs that were cut off": {total.CutLogs, 500}, "refused bindings and evictions": {total.RefusedActions, 400}, "late answers": {total.LateAnswers, 300},
		"evictions": {total.Evictions - total.Moves - total.StaleTasks - total.ScaledDown, 350}, "scaled down": {total.ScaledDown, 500}, "retired": {total.Retired, 1000}, "whole nodes": {total.WholeNodes, 150}, "moves": {total.Moves, 500}, "evicted tasks of stale gangs": {total.StaleTasks, 100},
		"crashes": {total.Crashes, 2000}, "lost decisions": {total.LostDecisions, 500}, "untried jobs": {total.Untried, 4000}, "settled": {total.Settled, 500},
	} {
		if !t.Failed() && n[0] < n[1] {
			t.Errorf("too little happened: %d %s, want %d", n[0], what, n[1])
		}
	}
}

// TestEqualSeeds checks that equal seeds give equal counts, so that a failure can be
// replayed.
func TestEqualSeeds(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 5; seed++ {
		first, _ := Sequence{Seed: seed, Steps: 150}.Run()
		second, _ := Sequence{Seed: seed, Steps: 150}.Run()
		if first != second {
			t.Errorf("seed %d: %v, and then %v", seed, first, second)
		}
	}
}

// TestBindingToRemovedNode checks that a binding to a node that was removed starts no
// task on a new node with the same name, whether it is answered or the scheduler
// restarts.
func TestBindingToRemovedNode(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]func(*simulation) error{
		"answered":  func(s *simulation) error { return s.tasks.answerBindings() },
		"restarted": func(s *simulation) error { return s.recovery.crash() },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) { // some bindings fail for other reasons
				s := newSimulation(newDice(seed), traits{})
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
				}
				must(s.recovery.startFromSite())
				must(s.nodes.report(enginetest.Node("n").CPU(8, "8Gi").Build()))
				job := enginetest.Job("j").CPU(1000, "1Gi").Build()
				must(s.jobs.workload.put(job))
				out, err := s.scheduler.run(engine.Options{Now: s.site.now, Record: true})
				must(err)
				must(s.scheduler.record(out.Changes...))
				if len(out.Decisions) != 1 {
					t.Fatalf("seed %d: decided %v", seed, out.Decisions)
				}
				must(s.executor.send(s.scheduler.state.Task(out.Decisions[0].Task), &out.Decisions[0]))
				must(s.nodes.remove("n"))
				must(s.nodes.report(enginetest.Node("n").CPU(8, "8Gi").Build()))
				must(event(s))
				must(s.check.run())
				if task := s.scheduler.state.Job(job.ID).Tasks()[0]; len(s.site.processes) > 0 || task.Status != cluster.Pending {
					t.Errorf("seed %d: %d processes run, and the task is %s", seed, len(s.site.processes), task.Status)
				}
			}
		})
	}
}

// TestShrink checks that a failure is found and reduced to a few steps, and that its
// command replays it.
func TestShrink(t *testing.T) {
	t.Parallel()
	runTwice := func(s *site) stepKind {
		return stepKind{"two processes on one device", 18, func() error {
			for _, id := range sorted(s.processes) {
				if p := *s.processes[id]; len(p.claims) > 0 && p.claims[0].Milli == cluster.Whole {
					s.processes[id+" again"] = &p
				}
			}
			return nil
		}}
	}
	for seed := uint64(1); ; seed++ {
		_, failure := Sequence{Seed: seed, Steps: 100, extra: runTwice}.Run()
		if failure == nil || !strings.Contains(failure.Error(), "held twice") {
			continue
		}
		short := failure.Shrink()
		if n := len(short.Sequence.Only); n == 0 || n > 20 || n > failure.Step {
			t.Errorf("reduced to %d steps of %d", n, failure.Step)
		}
		want := fmt.Sprintf("go run ./hack/soak -replay %d -life 100 -only %d", seed, short.Sequence.Only[0])
		if got := short.Replay(); !strings.HasPrefix(got, want) {
			t.Errorf("replay: %s, want %s…", got, want)
		}
		return
	}
}
