package oracle

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestStateAccepts checks that State accepts the placements that the search finds. State
// checks every claim itself.
func TestStateAccepts(t *testing.T) {
	placed := 0
	for number := range 1000 {
		c, err := Draw(Allocate, number)
		if err != nil {
			t.Fatal(err)
		}
		o := newObjects(c.State.View(), c.Now)
		p := newPlacement(o)
		s := newPlacementSearch(o, p, &planCosts{objects: o, placement: p})
		for _, f := range o.jobs {
			if p.hasMinimum(f) {
				continue
			}
			for _, minimum := range p.minima(f) {
				if ok, err := s.fits(minimum, true); err != nil || !ok {
					continue
				}
				tx := c.State.Begin()
				for _, x := range minimum {
					at := p.at[x.index]
					if err := tx.Place(x.task, o.nodes[at.node], at.claims, 0); err != nil {
						t.Fatalf("case %d: %v", number, err)
					}
				}
				tx.End()
				if !f.job.HasMinimum() {
					t.Fatalf("case %d: the minimum of %s was placed, and State does not have it", number, f.job.ID)
				}
				placed++
				break
			}
		}
	}
	if placed < 300 {
		t.Errorf("only %d jobs were placed", placed)
	}
}

// TestSearchIsComplete compares the search with one that does not skip equal placements, on
// gangs that are small enough.
func TestSearchIsComplete(t *testing.T) {
	both := [2]int{}
	for number := range 600 {
		c, err := Draw(Allocate, number)
		if err != nil {
			t.Fatal(err)
		}
		o := newObjects(c.State.View(), c.Now)
		p := newPlacement(o)
		for _, f := range o.jobs {
			if p.hasMinimum(f) || f.alt.Min > 2 {
				continue
			}
			s := newPlacementSearch(o, p, &planCosts{objects: o, placement: p})
			fits, err := s.minimumFits(f)
			if err != nil {
				t.Fatal(err)
			}
			if plain := (&plainSearch{p}).fits(f, 0); plain != fits {
				t.Fatalf("case %d: %s fits: %v, by trying all: %v", number, f.job.ID, fits, plain)
			}
			if fits {
				both[0]++
			} else {
				both[1]++
			}
		}
	}
	if both[0] < 50 || both[1] < 10 {
		t.Errorf("only %d jobs fitted and %d did not", both[0], both[1])
	}
}

// plainSearch is placementSearch without its shortcuts.
type plainSearch struct{ placement *placement }

// fits reports whether the tasks of the form from index i on can make its minimum together
// with the placed tasks. It tries each task on every set of devices of every node, and it
// also tries to leave the task out.
func (s *plainSearch) fits(f *form, i int) bool {
	p := s.placement
	if p.hasMinimum(f) {
		return true
	}
	if i == len(f.tasks) {
		return false
	}
	t := f.tasks[i]
	if s.fits(f, i+1) {
		return true
	}
	if !p.isPending(t) || p.queues.violation(f, t.amounts) != "" {
		return false
	}
	for n, m := range p.objects.nodes {
		for set := range 1 << len(m.Devices) {
			var claims []cluster.Claim
			for d := range m.Devices {
				if set>>d&1 == 1 {
					claims = append(claims, claimOn(t.task.Shape, d, &m.Devices[d]))
				}
			}
			if p.room.violation(t, n, claims) != "" {
				continue
			}
			p.place(t, location{node: n, claims: claims})
			found := s.fits(f, i+1)
			p.remove(t)
			if found {
				return true
			}
		}
	}
	return false
}
