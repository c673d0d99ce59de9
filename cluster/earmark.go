package cluster

import (
	"errors"
	"fmt"
	"slices"
)

// Earmarked is what is earmarked for a job that waits: room on nodes that must not fill up with
// other tasks before the job starts. It differs from a reservation: the room is not free yet, and
// no task holds it.
type Earmarked struct {
	Since int64 `json:"since,omitempty"` // when the job was given an earmark, in nanoseconds since 1970
	// Start is when the job can start at the latest if all run times are right, in nanoseconds
	// since 1970; 0: a task that must end first has no known run time.
	Start    int64           `json:"start,omitempty"`
	Reviewed int64           `json:"reviewed,omitempty"` // when the nodes were last compared with others, in nanoseconds since 1970
	Rooms    []EarmarkedRoom `json:"rooms,omitempty"`    // sorted by node
}

// EarmarkedRoom is what is earmarked of one node.
type EarmarkedRoom struct {
	Node      string    `json:"node"`
	Devices   int       `json:"devices,omitempty"` // idle devices
	Resources Resources `json:"resources,omitempty"`
}

// EarmarkOf is the room of a node and the job that it is earmarked for.
type EarmarkOf struct {
	Job string // the ID of the job
	EarmarkedRoom
}

// check returns an error for an earmark that no job can have.
func (e *Earmarked) check() error {
	err := errors.Join(checkTime("since", e.Since), checkTime("start", e.Start), checkTime("reviewed", e.Reviewed))
	for i := range e.Rooms {
		r := &e.Rooms[i]
		if r.Node == "" || i > 0 && e.Rooms[i-1].Node >= r.Node {
			err = errors.Join(err, fmt.Errorf("the nodes of an earmark must have names, and be sorted and distinct; have %q", r.Node))
		}
		err = errors.Join(err, checkAmount("devices", r.Devices), r.Resources.check())
	}
	if len(e.Rooms) == 0 {
		err = errors.Join(err, errors.New("an earmark has no node"))
	}
	return err
}

func (e *Earmarked) clone() *Earmarked {
	if e == nil {
		return nil
	}
	c := *e
	c.Rooms = slices.Clone(e.Rooms)
	for i := range c.Rooms {
		c.Rooms[i].Resources = slices.Clone(c.Rooms[i].Resources)
	}
	return &c
}

// sameRooms reports whether both earmark the same room, for a job that can start at the same time. Either may be nil.
func sameRooms(a, b *Earmarked) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Start == b.Start && slices.EqualFunc(a.Rooms, b.Rooms, func(x, y EarmarkedRoom) bool {
		return x.Node == y.Node && x.Devices == y.Devices && slices.Equal(x.Resources, y.Resources)
	})
}

// Allows reports whether a task of the shape would leave the earmarked room on the node: of
// everything that both request, the node has enough for both beside what its tasks hold now.
// A part of a device counts as a device, because the engine may choose an idle one for it.
func (r *EarmarkedRoom) Allows(s *Shape, n *Node) bool {
	for i := range r.Resources {
		kept := &r.Resources[i]
		if kept.Value <= 0 {
			continue
		}
		value := s.Resources.Of(kept.Name)
		if kept.Name == Memory && takesMoreMemory(s, n) {
			return false
		}
		if value > 0 {
			if l := n.Ledger(kept.Name); l == nil || l.Free() < value+kept.Value {
				return false
			}
		}
	}
	if s.Need.None() || r.Devices == 0 {
		return true
	}
	return !s.Need.WholeNode && n.idleDevices() >= r.Devices+max(1, s.Need.Devices)
}

// takesMoreMemory reports whether a task of the shape may hold more memory of the node than it
// requests: what it holds of devices if memory is unified, or layers that spill.
func takesMoreMemory(s *Shape, n *Node) bool {
	return !s.Need.None() && n.Unified || s.Need.Layers != nil && s.Need.Layers.Spill
}

// Within reports whether the node would have the room if no task were on it. A node with devices of
// several kinds has no room with devices, because rooms do not say of which kind theirs are.
func (r *EarmarkedRoom) Within(n *Node) bool {
	if r.Devices > 0 && !n.uniform {
		return false
	}
	for _, a := range r.Resources {
		if n.Capacity(a.Name) < a.Value {
			return false
		}
	}
	lost := 0
	for i := range n.Devices {
		if n.Devices[i].Lost {
			lost++
		}
	}
	return len(n.Devices)-lost >= r.Devices
}

// idleDevices returns how many devices of the node no task holds, or only tasks that are being
// evicted, and that are not lost.
func (n *Node) idleDevices() int {
	idle := 0
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Use.Leases == 0 && !d.Lost {
			idle++
		}
	}
	return idle
}

// checkEarmark returns an error if the job cannot have the earmark: a node is not known, or part
// of it is earmarked for another job.
func (w *workload) checkEarmark(j *Job, e *Earmarked) error {
	for i := range e.Rooms {
		name := e.Rooms[i].Node
		if w.fleet.byName[name] == nil {
			return fmt.Errorf("no node %q", name)
		}
		if o := w.fleet.earmarks[name]; o != nil && o.Job != j.ID {
			return fmt.Errorf("node %q is earmarked for %s", name, o.Job)
		}
	}
	return e.check()
}

// earmark gives the job another earmark, which the caller does not change any more; nil: none. The
// nodes that are not earmarked any more, or for which it differs, count as freed, so that other
// jobs are tried there.
func (w *workload) earmark(j *Job, e *Earmarked) {
	if j.Earmarked == nil && e == nil {
		return
	}
	var freed []uint64
	if j.Earmarked != nil && w.journal.recording() {
		for i := range j.Earmarked.Rooms {
			if n := w.fleet.byName[j.Earmarked.Rooms[i].Node]; n != nil {
				freed = append(freed, n.freed)
			} else {
				freed = append(freed, 0)
			}
		}
	}
	w.journal.recordOther(otherChange{job: j, status: j.status(), freed: freed})
	w.setEarmarked(j, e, true)
}

// setEarmarked sets Job.Earmarked, and updates the table of nodes. If frees is set and the room
// differs from before, its nodes count as freed.
func (w *workload) setEarmarked(j *Job, e *Earmarked, frees bool) {
	was := j.Earmarked
	if was == e {
		return
	}
	d := *j.JobDetails
	d.Earmarked = e
	j.JobDetails = d.shared()
	if !sameRooms(was, e) {
		w.unlistEarmark(j, was, frees)
	}
	w.listEarmark(j, e)
	if w.roster.knows(j) {
		w.roster.slots.Touch(int(j.slot))
	}
}

// restoreFreed undoes what earmark did to Node.freed of the nodes of the job's earmark.
func (w *workload) restoreFreed(j *Job, freed []uint64) {
	for i, at := range freed {
		if n := w.fleet.byName[j.Earmarked.Rooms[i].Node]; n != nil {
			n.freed = at
		}
	}
}

// listEarmark adds the earmark of the job to the tables of jobs and nodes.
func (w *workload) listEarmark(j *Job, e *Earmarked) {
	if e == nil {
		return
	}
	w.roster.earmarked[j.ID] = j
	for i := range e.Rooms {
		name := e.Rooms[i].Node
		if o := w.fleet.earmarks[name]; o == nil || o.Job != j.ID {
			w.fleet.earmarks[name] = &EarmarkOf{j.ID, e.Rooms[i]}
		}
	}
}

// unlistEarmark removes the earmark of the job from the tables of jobs and nodes.
func (w *workload) unlistEarmark(j *Job, e *Earmarked, frees bool) {
	if e == nil {
		return
	}
	delete(w.roster.earmarked, j.ID)
	for i := range e.Rooms {
		if name := e.Rooms[i].Node; w.fleet.earmarks[name] != nil && w.fleet.earmarks[name].Job == j.ID {
			delete(w.fleet.earmarks, name)
			if n := w.fleet.byName[name]; n != nil && frees {
				w.fleet.touch(n)
				n.freed = n.version
			}
		}
	}
}

// Earmarks is a read-only view of the earmarks of a State.
type Earmarks struct{ state *State }

// EarmarksOf returns the earmarks of the State that the View shows.
func EarmarksOf(v View) Earmarks { return Earmarks(v) }

// Any reports whether a job has an earmark.
func (e Earmarks) Any() bool { return len(e.state.roster.earmarked) > 0 }

// Jobs returns the jobs that have an earmark, sorted by ID.
func (e Earmarks) Jobs() []*Job {
	if len(e.state.roster.earmarked) == 0 {
		return nil
	}
	return byID(e.state.roster.earmarked)
}

// On returns what is earmarked of the node, or nil if nothing is. At most one job has an earmark
// on a node.
func (e Earmarks) On(n *Node) *EarmarkOf {
	if len(e.state.fleet.earmarks) == 0 {
		return nil
	}
	return e.state.fleet.earmarks[n.Name]
}
