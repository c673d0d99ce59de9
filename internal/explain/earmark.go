package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// AddEarmarks adds the room that is earmarked for the job, and the room that it would take if it
// were not earmarked for other jobs.
func (r *Report) AddEarmarks(s *cluster.State, j *cluster.Job) {
	for _, owner := range cluster.EarmarksOf(s.View()).Jobs() {
		switch {
		case owner == j && !j.HasMinimum():
			r.Earmark = newEarmark(s, owner)
		case r.Refusal != nil && deniedBy(s, j, owner):
			r.EarmarkedForOthers = append(r.EarmarkedForOthers, *newEarmark(s, owner))
		}
	}
}

// deniedBy reports whether a task that the job lacks would fit on a node beside what tasks hold
// there, but not beside what is earmarked for the owner.
func deniedBy(s *cluster.State, j, owner *cluster.Job) bool {
	for i := range owner.Earmarked.Rooms {
		room := &owner.Earmarked.Rooms[i]
		n := s.Node(room.Node)
		if n != nil && slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool {
			return t.Status == cluster.Pending && n.Room(t.Shape) > 0 && !room.Allows(t.Shape, n)
		}) {
			return true
		}
	}
	return false
}

func newEarmark(s *cluster.State, owner *cluster.Job) *wire.Earmark {
	e := owner.Earmarked
	out := &wire.Earmark{Workload: owner.ID, Since: quantity.Time(e.Since)}
	if e.Start > 0 {
		out.Start = quantity.Time(e.Start)
	}
	seen := map[*cluster.Job]bool{}
	for i := range e.Rooms {
		out.Nodes = append(out.Nodes, e.Rooms[i].Node)
		n := s.Node(e.Rooms[i].Node)
		if n == nil {
			continue
		}
		for _, t := range n.Tasks {
			if e.Rooms[i].Devices > 0 && len(t.Claims) == 0 || seen[t.Job] {
				continue
			}
			seen[t.Job] = true
			h := wire.EarmarkHolder{Workload: t.Job.ID}
			if t.Job.RunFor > 0 && t.Started > 0 {
				h.Ends = quantity.Time(t.Started + t.Job.RunFor)
			}
			out.Holders = append(out.Holders, h)
		}
	}
	slices.SortStableFunc(out.Holders, func(a, b wire.EarmarkHolder) int {
		if (a.Ends == "") != (b.Ends == "") {
			return cmp.Compare(b.Ends, a.Ends)
		}
		return strings.Compare(a.Ends, b.Ends)
	})
	return out
}

// earmarkText returns the sentences about earmarks.
func (r *Report) earmarkText() (out []string) {
	if e := r.Earmark; e != nil {
		text := fmt.Sprintf("Room on %s has been earmarked for it since %s: other jobs that would delay it are not placed there.", List(e.Nodes, 4), e.Since)
		if e.Start != "" {
			text += fmt.Sprintf(" By the run times that are known, it starts at %s at the latest.", e.Start)
		}
		var holders []string
		for _, h := range e.Holders {
			if h.Ends != "" {
				holders = append(holders, fmt.Sprintf("%s (ends at %s by its run time)", h.Workload, h.Ends))
			} else {
				holders = append(holders, h.Workload+" (run time not known)")
			}
		}
		if len(holders) > 0 {
			text += fmt.Sprintf(" There it waits for %s.", listInOrder(holders, 4))
		}
		out = append(out, text)
	}
	for i := range r.EarmarkedForOthers {
		e := &r.EarmarkedForOthers[i]
		text := fmt.Sprintf("Room on %s is earmarked for %s, which has waited for longer", List(e.Nodes, 4), e.Workload)
		if e.Start != "" {
			text += fmt.Sprintf(" and starts at %s at the latest; a job that states a run time and ends before is placed there", e.Start)
		}
		out = append(out, text+".")
	}
	return out
}
