package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

// historyLength is how many random changes most properties make on one State. With 100
// runs of each property, `go test ./cluster` makes more than 150,000 changes.
const historyLength = 150

var changesMade atomic.Int64

// checkProperty checks the property on random worlds, and logs how many changes of
// each kind were made.
func checkProperty(t *testing.T, property func(*world)) {
	t.Helper()
	kinds := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		property(w)
		for kind, n := range w.count {
			kinds[kind] += n
			changesMade.Add(int64(n))
		}
	})
	if !t.Failed() {
		t.Log(kinds)
	}
}

// audit fails the test if Audit finds a difference.
func (w *world) audit(after cluster.Change) {
	if err := w.state.Audit(); err != nil {
		w.Fatalf("after %s: %v", show(after), err)
	}
}

func show(c cluster.Change) string {
	if c == nil {
		return "nothing"
	}
	b, err := cluster.Encode(c)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// TestStateIsConsistent checks after every change that all ledgers, lists and counts
// agree with the objects.
func TestStateIsConsistent(t *testing.T) {
	checkProperty(t, func(w *world) {
		for range historyLength {
			w.audit(w.step())
		}
	})
}

// TestUndoIsIdentity checks that Undo restores the State after every kind of change,
// and that the same changes, made again, give the same State.
func TestUndoIsIdentity(t *testing.T) {
	checkProperty(t, func(w *world) {
		for range historyLength / 10 {
			before, was := w.state.Digest(), w.state.Lines()
			now := w.now
			mark := w.state.Mark()
			var made []cluster.Change
			for range w.roll(12) {
				made = append(made, w.step())
			}
			after := w.state.Digest()
			w.state.Undo(mark)
			if got := w.state.Digest(); got != before {
				w.Fatalf("not undone: %v\n%s", shows(made), cluster.Difference(was, w.state.Lines()))
			}
			w.audit(nil)
			w.state.Release(mark)
			if w.now = now; w.chance(30) {
				continue
			}
			for _, c := range made {
				if c != nil {
					w.apply(c)
				}
				if opened, ok := c.(cluster.SessionOpened); ok {
					w.now = opened.Now
				}
			}
			if got := w.state.Digest(); got != after {
				w.Fatalf("the same changes, made again, give another State: %v", shows(made))
			}
		}
	})
}

func shows(list []cluster.Change) (out []string) {
	for _, c := range list {
		out = append(out, "\n"+show(c))
	}
	return out
}

// TestNetChanges checks that the net changes of a commit, applied after the
// transaction was undone, give the same State as the transaction.
func TestNetChanges(t *testing.T) {
	checkProperty(t, func(w *world) {
		for range historyLength / 3 {
			for range w.roll(4) {
				w.step()
			}
			mark := w.state.Mark()
			x := w.decide()
			decided := cluster.Decided{Changes: x.Commit()}
			after, was := w.state.Digest(), w.state.Lines()
			w.state.Undo(mark)
			w.state.Release(mark)
			if err := w.state.Apply(decided); err != nil {
				w.Fatalf("%s: %v", show(decided), err)
			}
			w.count["Decided"]++
			if w.state.Digest() != after {
				w.Fatalf("the net changes give another State: %s\n%s", show(decided), cluster.Difference(was, w.state.Lines()))
			}
		}
	})
}

// changeLog is what a process has written to disk: a snapshot and the changes since then,
// one per line. The test also keeps checkpoints, which have the digest after some of
// the lines.
type changeLog struct {
	snapshot    []byte
	log         []byte
	lines       int
	checkpoints []checkpoint
}

// checkpoint has the digest of the State after so many lines, which have size bytes.
type checkpoint struct {
	size, lines int
	digest      string
}

func (w *world) newChangeLog() *changeLog {
	data, err := json.Marshal(w.state.Snapshot())
	if err != nil {
		w.Fatal(err)
	}
	return &changeLog{snapshot: data, checkpoints: []checkpoint{{digest: w.state.Digest()}}}
}

func (d *changeLog) write(w *world, c cluster.Change) {
	b, err := cluster.Encode(c)
	if err != nil {
		w.Fatal(err)
	}
	d.log = append(append(d.log, b...), '\n')
	if d.lines++; d.lines%12 == 0 {
		d.checkpoints = append(d.checkpoints, checkpoint{len(d.log), d.lines, w.state.Digest()})
	}
}

// cut draws a checkpoint and a size at which the log ends, within the line that
// follows the checkpoint.
func (d *changeLog) cut(w *world) (checkpoint, int) {
	m := d.checkpoints[w.roll(len(d.checkpoints))]
	next := bytes.IndexByte(d.log[m.size:], '\n')
	return m, m.size + w.roll(max(1, next+1))
}

// replay applies the complete lines of the first size bytes of the log to the
// snapshot. It returns the State and the number of lines.
func (d *changeLog) replay(w *world, size int) (*cluster.State, int) {
	var snapshot cluster.Snapshot
	if err := json.Unmarshal(d.snapshot, &snapshot); err != nil {
		w.Fatal(err)
	}
	state, err := snapshot.State()
	if err != nil {
		w.Fatal(err)
	}
	lines := 0
	for rest := d.log[:size]; ; lines++ {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return state, lines
		}
		b := rest[:end]
		c, err := cluster.Decode(b)
		if err != nil {
			w.Fatalf("%s: %v", b, err)
		}
		if back, err := cluster.Encode(c); err != nil || string(back) != string(b) {
			w.Fatalf("%s is encoded as %s after decoding: %v", b, back, err)
		}
		if err := state.Apply(c); err != nil {
			w.Fatalf("%s: %v\n%s", b, err, strings.Join(state.Lines(), "\n"))
		}
		rest = rest[end+1:]
	}
}

// TestProcessDeath checks a process that dies at any point: the snapshot and the log,
// which may end within a line, give the State as of the last complete line. The next
// process continues from there.
func TestProcessDeath(t *testing.T) {
	const length = 1500
	before := changesMade.Load()
	checkProperty(t, func(w *world) {
		d := w.newChangeLog()
		for range length {
			if c := w.step(); c != nil {
				d.write(w, c)
			}
			if d.lines < 100 && !w.chance(2) {
				continue
			}
			m, size := d.cut(w)
			state, lines := d.replay(w, size)
			if lines != m.lines || state.Digest() != m.digest {
				w.Fatalf("a replay up to line %d (%d lines were read) gives another State", m.lines, lines)
			}
			w.state, w.now = state, max(w.now, state.Now())
			d = w.newChangeLog()
		}
	})
	if made := changesMade.Load() - before; made < 100_000 && !testing.Short() {
		t.Errorf("only %d changes were made", made)
	}
}

// TestRepeatedFacts checks that a fact that is reported again changes nothing, not even
// a version.
func TestRepeatedFacts(t *testing.T) {
	checkProperty(t, func(w *world) {
		for range historyLength {
			if w.chance(30) {
				w.step()
				continue
			}
			c := w.tolerate(w.fact())
			was := w.state.Lines()
			digest, version, jobs := w.state.Digest(), w.state.Version(), w.state.View().Recent().JobsVersion()
			if c == nil {
				continue
			}
			if err := w.state.Apply(c); err != nil {
				w.Fatal(err)
			}
			if w.state.Digest() != digest || w.state.Version() != version || w.state.View().Recent().JobsVersion() != jobs {
				w.Fatalf("a repeated fact changed the State or a version: %s\n%s", show(c), cluster.Difference(was, w.state.Lines()))
			}
		}
	})
}

// object names what a fact is about. Facts about one object are reported in order.
// Facts about different objects may be reported in any order.
func object(c cluster.Change) string {
	switch c := c.(type) {
	case cluster.NodePut:
		return "node " + c.Node.Name
	case cluster.NodeSeen:
		return "node " + c.Name
	case cluster.NodeGone:
		return "node " + c.Name
	case cluster.QueuePut:
		return "queue " + c.Queue.Name
	case cluster.QueueGone:
		return "queue " + c.Name
	case cluster.BudgetPut:
		return "budget " + c.Budget.Name
	case cluster.BudgetGone:
		return "budget " + c.Name
	case cluster.JobPut:
		if c.Job.Open {
			return "job " + c.Job.ID
		}
		return "closed " + c.Job.ID
	case cluster.JobGone:
		return "job " + c.Job
	case cluster.SetScaled:
		return "set " + c.Set
	case cluster.TaskPut:
		return "task " + c.Job + "/" + c.Task.Name
	case cluster.TaskSeen:
		return "task " + c.Task.ID()
	case cluster.TaskGone:
		return "task " + c.Task.ID()
	}
	return ""
}

// TestFactsInAnyOrder checks that facts about different objects give the same State
// in any order: a pod before its node, a job before its queue, a child queue before
// its parent.
func TestFactsInAnyOrder(t *testing.T) {
	checkProperty(t, func(w *world) {
		byObject := map[string][]cluster.Change{}
		for range 60 {
			c := w.unorderedFact()
			byObject[object(c)] = append(byObject[object(c)], c)
		}
		names := slices.Sorted(maps.Keys(byObject))
		var first string
		var order, lines []string
		for round := range 3 {
			s := cluster.NewState()
			left := maps.Clone(byObject)
			var made []cluster.Change
			for len(left) > 0 {
				name := names[w.roll(len(names))]
				if round == 0 { // one object after the other
					name = slices.Min(slices.Collect(maps.Keys(left)))
				}
				if len(left[name]) == 0 {
					delete(left, name)
					continue
				}
				c := left[name][0]
				left[name] = left[name][1:]
				if err := s.Apply(c); err != nil {
					w.Fatalf("%s: %v", show(c), err)
				}
				w.count[c.Kind()]++
				made = append(made, c)
			}
			if err := s.Audit(); err != nil {
				w.Fatal(err)
			}
			sn := s.Snapshot()
			sn.Demand = cluster.Demand{} // how often something was requested depends on the order
			s, err := sn.State()
			if err != nil {
				w.Fatal(err)
			}
			digest := s.Digest()
			if first == "" {
				first, order, lines = digest, shows(made), s.Lines()
			} else if digest != first {
				w.Fatalf("two orders give different States: %v\nand %v\n%s", order, shows(made), cluster.Difference(lines, s.Lines()))
			}
		}
	})
}

// unorderedFact draws a fact that gives the same State before and after facts about
// other objects: about nodes that keep their devices, and about tasks of open jobs.
func (w *world) unorderedFact() cluster.Change {
	switch w.roll(10) {
	case 0, 1:
		put := w.nodePut().(cluster.NodePut)
		put.Revision = 0
		put.Node.Devices = nil
		for i := range 4 { // always the same four: whether a device that is no longer listed is kept depends on the order of facts
			put.Node.Devices = append(put.Node.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: of(w, "L4", "H100"), Type: "cuda", Memory: cluster.Bytes(of(w, 16, 24)) << 30}, UUID: uuid(put.Node.Name, i)})
		}
		return put
	case 2:
		put := w.queuePut().(cluster.QueuePut)
		put.Revision = 0
		return put
	case 3:
		return of[cluster.Change](w, cluster.QueueGone{Name: of(w, "root", "a", "b")}, cluster.BudgetPut{Budget: cluster.Budget{Name: "x", Bound: w.roll(3)}}, cluster.SetScaled{Set: "m", Desired: w.roll(3)})
	case 4, 5:
		for {
			if put := w.jobPut().(cluster.JobPut); put.Job.Open {
				put.Revision, put.Job.UID = 0, ""
				return put
			}
		}
	case 6, 7:
		put := w.taskPut().(cluster.TaskPut)
		put.Revision, put.Task.UID = 0, ""
		return put
	case 8:
		return cluster.TaskGone{Task: cluster.TaskRef{Job: of(w, "pod/o1", "pod/o2"), Name: fmt.Sprintf("p%d", w.roll(3))}}
	}
	seen := w.taskSeen().(cluster.TaskSeen)
	seen.UID, seen.Releasing = "", false
	seen.Task = cluster.TaskRef{Job: of(w, "pod/o1", "pod/o2"), Name: fmt.Sprintf("p%d", w.roll(3))}
	return seen
}

// TestAnotherUID checks that a job that replaces one of the same name, with another
// UID, inherits nothing from it.
func TestAnotherUID(t *testing.T) {
	checkProperty(t, func(w *world) {
		for range historyLength / 2 {
			w.step()
		}
		for _, j := range w.state.Jobs() {
			if j.Open {
				continue
			}
			put := cluster.JobPut{Job: j.Spec()}
			put.Job.UID = "another"
			d := put.Job.OwnDetails()
			d.Displaced, put.Job.Retired, d.BelowMinimumSince, d.Parked = nil, false, 0, nil
			w.apply(cluster.JobGone{Job: j.ID})
			w.apply(cluster.JobPut{Job: j.Spec()}) // the same spec and UID, with no task on a node
			fresh := w.state.Job(j.ID)
			if fresh.UID == "" {
				continue
			}
			x := w.state.Begin()
			x.SetBelowMinimum(fresh, 7)
			x.Displace(fresh, "job/x")
			x.Commit()
			w.apply(put)
			got := w.state.Job(j.ID)
			if got == fresh || got.BelowMinimumSince != 0 || len(got.Displaced) > 0 || got.UID != "another" {
				w.Fatalf("%s inherits %+v", j.ID, got)
			}
		}
		w.audit(nil)
	})
}

// TestEveryKindOfChange checks that the random changes include every kind that Decode
// reads. Decided is made by TestNetChanges.
func TestEveryKindOfChange(t *testing.T) {
	made := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range 2 * historyLength {
			w.step()
		}
		for kind, n := range w.count {
			made[kind] += n
		}
	})
	for _, kind := range cluster.Kinds() {
		if made[kind] == 0 && kind != "Decided" {
			t.Errorf("%s was never drawn: %v", kind, made)
		}
	}
}

func TestDecodeRejectsInvalidInput(t *testing.T) {
	tests := map[string]string{
		"":                          `not a change: unexpected end of JSON input`,
		"[]":                        `not a change: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`,
		`{"kind":"Nodeput"}`:        `unknown kind of change "Nodeput"`,
		`{"kind":"NodeGone","x":1}`: `NodeGone: json: unknown field "x"`,
		`{"kind":"Decided","changes":[{"kind":"?"}]}`:                         `Decided: unknown kind of change "?"`,
		`{"kind":"Decided","changes":[{"kind":"Decided","changes":[]}]}`:      `Decided: a decision cannot contain decisions`,
		`{"kind":"TaskSeen","task":{},"devices":[{"device":"d","milli":-1}]}`: `TaskSeen: device "d": milli is -1; it must be from 0 to 1152921504606846976`,
		`{"kind":"NodePut","node":{"name":"n","avoids":[{"until":1}]}}`:       `NodePut: node "n": a shape is missing`,
	}
	for in, want := range tests {
		if _, err := cluster.Decode([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	s := cluster.NewState()
	if err := s.Apply(nil); err == nil {
		t.Error("Apply accepts nil")
	}
	err := s.Apply(cluster.Decided{Changes: []cluster.Change{cluster.NodeGone{Name: "n"}}})
	if diff := cmp.Diff("NodeGone: this kind of change is not a decision", fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}
