package oracle

import (
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestStateAccepts checks that State accepts the placements that the search finds. State
// checks every claim itself.
func TestStateAccepts(t *testing.T) {
	seated := 0
	for number := range 1000 {
		c, err := Draw(Allocate, number)
		if err != nil {
			t.Fatal(err)
		}
		b := newBoard(newTable(c.State.View(), c.Now))
		b.steps = maxSteps
		for _, j := range b.jobs {
			if b.hasMinimum(j, 0) {
				continue
			}
			for _, minimum := range b.minima(j) {
				if ok, err := b.fits(minimum, true); err != nil || !ok {
					continue
				}
				tx := c.State.Begin()
				for _, x := range minimum {
					s := b.at[x.index]
					if err := tx.Place(x.Task, b.nodes[s.node], s.claims, 0); err != nil {
						t.Fatalf("case %d: %v", number, err)
					}
				}
				tx.End()
				if !j.HasMinimum() {
					t.Fatalf("case %d: %s is placed and does not stand", number, j.ID)
				}
				seated++
				break
			}
		}
	}
	if seated < 300 {
		t.Errorf("only %d jobs were seated", seated)
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
		b := newBoard(newTable(c.State.View(), c.Now))
		for _, j := range b.jobs {
			if b.hasMinimum(j, 0) || j.alt.Min > 2 {
				continue
			}
			b.steps = maxSteps
			fits, err := b.allocates(j)
			if err != nil {
				t.Fatal(err)
			}
			if plain := b.placeByTryingAll(j, 0); plain != fits {
				t.Fatalf("case %d: %s fits: %v, by trying all: %v", number, j.ID, fits, plain)
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

// placeByTryingAll tries each task on every set of devices of every node, and without it.
func (b *board) placeByTryingAll(j *job, i int) bool {
	if b.hasMinimum(j, 0) {
		return true
	}
	if i == len(j.tasks) {
		return false
	}
	t := j.tasks[i]
	if b.placeByTryingAll(j, i+1) {
		return true
	}
	if !b.pending(t) || b.queueViolation(j, t.asks) != "" {
		return false
	}
	for n, m := range b.nodes {
		for set := range 1 << len(m.Devices) {
			var claims []cluster.Claim
			for d := range m.Devices {
				if set>>d&1 == 1 {
					claims = append(claims, claimOn(t, d, &m.Devices[d]))
				}
			}
			if b.nodeViolation(t, n, claims) != "" {
				continue
			}
			b.place(t, location{node: n, claims: claims})
			found := b.placeByTryingAll(j, i+1)
			b.remove(t)
			if found {
				return true
			}
		}
	}
	return false
}
