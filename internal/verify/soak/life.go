package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Life is one random sequence of events, determined by its seed.
type Life struct {
	Seed  uint64
	Steps int
	// Only lists the steps that are run, counted from 1. If it is nil, all are run.
	Only []int
}

// Failure is a check that failed.
type Failure struct {
	Life Life
	Step int // 0 if the first cluster could not be made
	Name string
	Err  error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, step %d (%s): %v", f.Life.Seed, f.Step, f.Name, f.Err)
}

// dice is the random source of one step.
type dice struct{ *rand.Rand }

// Roll returns a number from 0 to n-1.
func (d dice) Roll(n int) int { return d.IntN(n) }

func newDice(seed uint64, step int) dice { return dice{rand.New(rand.NewPCG(seed, uint64(step)))} }

// stepKinds lists what a step may be. The probability of a kind is its weight divided
// by the sum of all weights.
var stepKinds = []struct {
	name   string
	weight int
	do     func(*World) error
}{
	{"a job arrives", 18, (*World).AddJob},
	{"a model arrives", 4, (*World).AddModel},
	{"a model is scaled", 6, (*World).ScaleModel},
	{"a job ends", 9, (*World).RemoveJob},
	{"a job runs already", 4, (*World).Restore},
	{"a job changes", 4, (*World).ChangeJob},
	{"a node is added", 4, (*World).AddNode},
	{"a node is lost", 2, (*World).LoseNode},
	{"a node changes", 7, (*World).ChangeNode},
	{"devices are read", 4, (*World).Read},
	{"a queue changes", 6, (*World).ChangeQueue},
	{"a budget changes", 2, (*World).ChangeBudget},
	{"time passes", 10, (*World).Pass},
	{"tasks stop or end", 12, (*World).Leave},
	{"a session", 20, (*World).Schedule},
	{"tasks are evicted", 2, (*World).Evict},
	{"the scheduler restarts", 1, (*World).Crash},
	{"bindings are answered", 8, (*World).Answer},
	{"the log is replayed", 1, (*World).Replay},
	{"index and scan are compared", 1, (*World).Agree},
	{"a statement is rolled back", 2, (*World).Rollback},
	{"the cluster settles", 1, (*World).Settle},
}

// Run runs the steps and returns the counts and the first failure, or nil.
func (l Life) Run() (total Counts, failure *Failure) {
	step, name := 0, "the start"
	fail := func(err error) *Failure { return &Failure{Life: l, Step: step, Name: name, Err: err} }
	var w *World
	defer func() {
		if r := recover(); r != nil {
			failure = fail(fmt.Errorf("panic: %v", r))
		}
		if w != nil {
			total = w.Counts
		}
	}()
	w, err := newWorld(newDice(l.Seed, 0))
	if err != nil {
		return total, fail(err)
	}
	weights := 0
	for _, h := range stepKinds {
		weights += h.weight
	}
	for step = 1; step <= l.Steps; step++ {
		if l.Only != nil && !slices.Contains(l.Only, step) {
			continue
		}
		w.dice, w.step = newDice(l.Seed, step), step
		w.Steps++
		at := w.dice.Roll(weights)
		for _, h := range stepKinds {
			if at -= h.weight; at >= 0 {
				continue
			}
			name = h.name
			if err := h.do(w); err != nil {
				return total, fail(err)
			}
			break
		}
		if err := w.Check(); err != nil {
			return total, fail(err)
		}
		if err := w.compact(); err != nil {
			return total, fail(err)
		}
	}
	return total, nil
}

// Shrink looks for a shorter life that fails as well. It leaves out steps, first half
// of them at a time and finally single ones, as long as a check still fails.
func (f *Failure) Shrink() *Failure {
	best := f
	only := best.Life.Only
	if only == nil {
		for i := 1; i <= f.Step; i++ {
			only = append(only, i)
		}
	}
	for size := max(1, len(only)/2); ; size /= 2 {
		for at := 0; at < len(only); {
			rest := slices.Delete(slices.Clone(only), at, min(at+size, len(only)))
			life := best.Life
			life.Only = rest
			if _, again := life.Run(); again != nil && len(rest) > 0 {
				best, only = again, rest
			} else {
				at += size
			}
		}
		if size == 1 {
			best.Life.Only = only
			return best
		}
	}
}

// Replay returns the command that runs the life again.
func (f *Failure) Replay() string {
	cmd := fmt.Sprintf("go run ./hack/soak -replay %d -life %d", f.Life.Seed, f.Life.Steps)
	for i, step := range f.Life.Only {
		sep := ","
		if i == 0 {
			sep = " -only "
		}
		cmd += fmt.Sprint(sep, step)
	}
	return cmd
}
