package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/engine"
)

// Sequence is a random sequence of steps, determined by its seed.
type Sequence struct {
	Seed  uint64
	Steps int
	// Only lists the steps that are run, counted from 1. If it is nil, all are run.
	Only []int

	// Profiles are the profiles of the engine; nil means the default profile.
	Profiles []engine.NamedProfile
	// Assign returns the name of the profile for a task, given the ID of its job, or the name
	// of its set, and the number of the task; nil: tasks name none.
	Assign func(owner string, task int) string

	extra func(*site) stepKind   // one more kind of step, for tests
	after func(*scheduler) error // is called after each step, for tests
}

// Failure is a check that failed.
type Failure struct {
	Sequence Sequence
	Step     int // 0 if the first cluster could not be made
	Name     string
	Err      error
}

func (f *Failure) Error() string {
	return fmt.Sprintf("seed %d, step %d (%s): %v", f.Sequence.Seed, f.Step, f.Name, f.Err)
}

// Run simulates the steps and returns the counts and the first failure, or nil.
func (q Sequence) Run() (total Counts, failure *Failure) {
	d := newDice(q.Seed)
	s := newSimulation(d, drawTraits(d))
	s.scheduler.profiles, s.jobs.workload.assign = q.Profiles, q.Assign
	step, name := 0, "the start"
	fail := func(err error) *Failure { return &Failure{Sequence: q, Step: step, Name: name, Err: err} }
	defer func() {
		if r := recover(); r != nil {
			failure = fail(fmt.Errorf("panic: %v", r))
		}
		total = *s.counts
	}()
	if err := s.start(); err != nil {
		return total, fail(err)
	}
	kinds := s.stepKinds()
	if q.extra != nil {
		kinds = append(kinds, q.extra(s.site))
	}
	for step = 1; step <= q.Steps; step++ {
		if q.Only != nil && !slices.Contains(q.Only, step) {
			continue
		}
		d.startStep(step)
		s.counts.Steps++
		kind := drawStep(d, kinds)
		name = kind.name
		for _, do := range []func() error{kind.do, s.check.run, s.scheduler.compactLog} {
			if err := do(); err != nil {
				return total, fail(err)
			}
		}
		if q.after != nil {
			if err := q.after(s.scheduler); err != nil {
				return total, fail(err)
			}
		}
	}
	return total, nil
}

// Shrink looks for a shorter sequence that fails as well. It leaves out steps, first
// half of them at a time and finally single ones, as long as a check still fails.
func (f *Failure) Shrink() *Failure {
	best := f
	only := best.Sequence.Only
	if only == nil {
		for i := 1; i <= f.Step; i++ {
			only = append(only, i)
		}
	}
	for size := max(1, len(only)/2); ; size /= 2 {
		for at := 0; at < len(only); {
			rest := slices.Delete(slices.Clone(only), at, min(at+size, len(only)))
			shorter := best.Sequence
			shorter.Only = rest
			if _, failure := shorter.Run(); failure != nil && len(rest) > 0 {
				best, only = failure, rest
			} else {
				at += size
			}
		}
		if size == 1 {
			best.Sequence.Only = only
			return best
		}
	}
}

// Replay returns the command that runs the sequence again.
func (f *Failure) Replay() string {
	cmd := fmt.Sprintf("go run ./hack/soak -replay %d -life %d", f.Sequence.Seed, f.Sequence.Steps)
	for i, step := range f.Sequence.Only {
		sep := ","
		if i == 0 {
			sep = " -only "
		}
		cmd += fmt.Sprint(sep, step)
	}
	return cmd
}
