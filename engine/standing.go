package engine

import (
	"math"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// Standing is how a queue stands with one resource: what it holds and what it
// should have. It is what a decision about others was made on, to be told.
type Standing struct {
	Queue    string
	Resource string
	Used     int64
	Request  int64 // what it holds and what its pending tasks ask for
	Share    int64 // its fair share
	Quota    int64 // its own, or that of the queues below it; -1: none
}

// Standings are those of the queue and of all above it, the queue's own first.
// There are none where no plugin of the profile knows what a queue should have.
func (s *Session) Standings(queue string) []Standing { return s.explainer.standings(queue) }

func (e *explainer) standings(queue string) []Standing {
	var out []Standing
	state := e.finder.state
	for q := state.Queue(queue); q != nil; q = state.Parent(q) {
		for _, h := range e.finder.hooks.standings {
			if list := h.fn(q); list != nil {
				out = append(out, list...)
				break
			}
		}
	}
	return out
}

// Census is which victims might leave for a job, each asked about while all the others
// are there.
type Census struct {
	Barred bool      // no victim may leave for this job
	May    []*Victim // one of each job, the first to be evicted first
	Spared []Protection
}

// Census asks which victims may leave for the tasks that the job lacks, and which are
// protected.
func (s *Session) Census(p Purpose, job *cluster.Job, lacks []*cluster.Task) Census {
	may := s.victims.may(p, job, lacks, false)
	if may == nil {
		return Census{Barred: true}
	}
	var out Census
	seen := map[*cluster.Job]bool{}
	for _, c := range s.victims.rivals(job, math.MaxInt, nil) {
		if seen[c.task.Job] {
			continue
		}
		v := VictimOf(c.task)
		if a := may(v); a.spared != nil {
			out.Spared = protect(out.Spared, a.spared, v.Job.ID)
		} else {
			out.May = append(out.May, v)
		}
		seen[c.task.Job] = true
	}
	return out
}

// rivals are all tasks that might leave for the job, or those of them that may, in
// order; nil where there are more than most.
func (v *victims) rivals(job *cluster.Job, most int, may func(*cluster.Task) bool) []rival {
	var line []rival
	for _, n := range v.state.Nodes() {
		for _, t := range n.Tasks {
			if v.mayLeave(t, job) && (may == nil || may(t)) {
				if len(line) == most {
					return nil
				}
				line = append(line, v.rival(t))
			}
		}
	}
	slices.SortFunc(line, func(a, b rival) int { return a.before(&b) })
	return line
}
