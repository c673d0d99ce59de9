package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Life is one random course of events.
type Life struct {
	Seed  uint64
	Steps int
	// Only are the steps that are taken, counted from 1; nil: all of them.
	Only []int
}

// Failure is a promise that was broken.
type Failure struct {
	Life Life
	Step int // 0: the world could not even begin
	Name string
	Err  error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, step %d (%s): %v", f.Life.Seed, f.Step, f.Name, f.Err)
}

// dice are a step's own source of chance.
type dice struct{ *rand.Rand }

// Roll returns a number from 0 to n-1.
func (d dice) Roll(n int) int { return d.IntN(n) }

func roll(seed uint64, step int) dice { return dice{rand.New(rand.NewPCG(seed, uint64(step)))} }

// happenings are what a step may be, and how often out of the sum of all.
var happenings = []struct {
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
	{"a node comes", 4, (*World).AddNode},
	{"a node is lost", 2, (*World).LoseNode},
	{"a node changes", 7, (*World).ChangeNode},
	{"devices are read", 4, (*World).Read},
	{"a queue changes", 6, (*World).ChangeQueue},
	{"a budget changes", 2, (*World).ChangeBudget},
	{"time passes", 10, (*World).Pass},
	{"tasks leave or end", 12, (*World).Leave},
	{"a session", 20, (*World).Schedule},
	{"somebody evicts", 2, (*World).Evict},
	{"the scheduler restarts", 1, (*World).Crash},
	{"bindings are answered", 8, (*World).Answer},
	{"the log is replayed", 1, (*World).Replay},
	{"index and scan agree", 1, (*World).Agree},
	{"a statement is rolled back", 2, (*World).Rollback},
	{"the world settles", 1, (*World).Settle},
}

// Run lives the life and returns what happened, and the first promise that was broken.
func (l Life) Run() (total Counts, failure *Failure) {
	step, name := 0, "the beginning"
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
	w, err := newWorld(roll(l.Seed, 0))
	if err != nil {
		return total, fail(err)
	}
	weights := 0
	for _, h := range happenings {
		weights += h.weight
	}
	for step = 1; step <= l.Steps; step++ {
		if l.Only != nil && !slices.Contains(l.Only, step) {
			continue
		}
		w.dice, w.step = roll(l.Seed, step), step
		w.Steps++
		at := w.dice.Roll(weights)
		for _, h := range happenings {
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

// Shrink looks for a shorter life that breaks a promise too: it leaves out runs
// of steps, halves at first and single ones in the end, as long as one fails.
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

// Replay is the command that lives the life again.
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
