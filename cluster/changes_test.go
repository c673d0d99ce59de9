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

// lengthOfLife is how many changes a random course has as a rule. With 100 courses to
// a property, `go test ./cluster` makes more than 150,000 in all.
const lengthOfLife = 150

var changesMade atomic.Int64

func live(t *testing.T, property func(*world)) {
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

// audit fails where something that State keeps beside its objects is not in step.
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

// Every ledger, list and count follows from the objects, after every change.
func TestStateIsConsistent(t *testing.T) {
	live(t, func(w *world) {
		for range lengthOfLife {
			w.audit(w.step())
		}
	})
}

// Undo takes back every kind of change.
func TestUndoIsIdentity(t *testing.T) {
	live(t, func(w *world) {
		for range lengthOfLife / 10 {
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
				w.Fatalf("made again, it is not the same: %v", shows(made))
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

// The net changes of a commit, undone and applied, give the same State.
func TestNetChanges(t *testing.T) {
	live(t, func(w *world) {
		for range lengthOfLife / 3 {
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
				w.Fatalf("not the same: %s\n%s", show(decided), cluster.Difference(was, w.state.Lines()))
			}
		}
	})
}

// diary is what a process leaves behind: a snapshot and the changes since, one to a
// line. For the test it has the digest after some of the lines, and where they end.
type diary struct {
	snapshot []byte
	log      []byte
	lines    int
	marks    []mark
}

type mark struct {
	size, lines int
	digest      string
}

func (w *world) newDiary() *diary {
	data, err := json.Marshal(w.state.Snapshot())
	if err != nil {
		w.Fatal(err)
	}
	return &diary{snapshot: data, marks: []mark{{digest: w.state.Digest()}}}
}

func (d *diary) write(w *world, c cluster.Change) {
	b, err := cluster.Encode(c)
	if err != nil {
		w.Fatal(err)
	}
	d.log = append(append(d.log, b...), '\n')
	if d.lines++; d.lines%12 == 0 {
		d.marks = append(d.marks, mark{len(d.log), d.lines, w.state.Digest()})
	}
}

// tear cuts the log within the line that follows a mark.
func (d *diary) tear(w *world) (mark, int) {
	m := d.marks[w.roll(len(d.marks))]
	next := bytes.IndexByte(d.log[m.size:], '\n')
	return m, m.size + w.roll(max(1, next+1))
}

// replay makes a State of the snapshot and the whole lines of the log, and returns
// how many these are.
func (d *diary) replay(w *world, size int) (*cluster.State, int) {
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
			w.Fatalf("%s became %s: %v", b, back, err)
		}
		if err := state.Apply(c); err != nil {
			w.Fatalf("%s: %v\n%s", b, err, strings.Join(state.Lines(), "\n"))
		}
		rest = rest[end+1:]
	}
}

// A process dies at any point: the log, written as JSON and torn anywhere, gives on
// the snapshot the State as it was after the last whole line. The next process goes
// on from there.
func TestProcessDeath(t *testing.T) {
	const length = 1500
	before := changesMade.Load()
	live(t, func(w *world) {
		d := w.newDiary()
		for range length {
			if c := w.step(); c != nil {
				d.write(w, c)
			}
			if d.lines < 100 && !w.chance(2) {
				continue
			}
			m, size := d.tear(w)
			state, lines := d.replay(w, size)
			if lines != m.lines || state.Digest() != m.digest {
				w.Fatalf("replayed, line %d (%d) gives another State", m.lines, lines)
			}
			w.state, w.now = state, max(w.now, state.Now())
			d = w.newDiary()
		}
	})
	if made := changesMade.Load() - before; made < 100_000 && !testing.Short() {
		t.Errorf("only %d changes were made", made)
	}
}

// A fact that is told again changes nothing, and touches no version.
func TestFactsToldAgain(t *testing.T) {
	live(t, func(w *world) {
		for range lengthOfLife {
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
				w.Fatalf("told again, it made a difference: %s\n%s", show(c), cluster.Difference(was, w.state.Lines()))
			}
		}
	})
}

// object is what a fact is about. Facts about one object come in order; those about
// different ones may overtake each other.
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

// Facts about different objects end in one State, in whatever order they come: a
// pod before its node, a job before its queue, a child before its parent.
func TestFactsOvertakeEachOther(t *testing.T) {
	live(t, func(w *world) {
		byObject := map[string][]cluster.Change{}
		for range 60 {
			c := w.overtaken()
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
			digest := s.Digest()
			if first == "" {
				first, order, lines = digest, shows(made), s.Lines()
			} else if digest != first {
				w.Fatalf("another order, another State: %v\nand %v\n%s", order, shows(made), cluster.Difference(lines, s.Lines()))
			}
		}
	})
}

// overtaken draws a fact that may come in any order with others: about nodes whose
// devices do not change places, and about tasks of open jobs.
func (w *world) overtaken() cluster.Change {
	switch w.roll(10) {
	case 0, 1:
		put := w.nodePut().(cluster.NodePut)
		put.Revision = 0
		put.Node.Devices = nil
		for i := range 4 { // a device that is not listed any more keeps what it was only if a task held it then
			put.Node.Devices = append(put.Node.Devices, cluster.Device{UUID: uuid(put.Node.Name, i), Product: of(w, "L4", "H100"), Type: "cuda", Memory: cluster.Bytes(of(w, 16, 24)) << 30})
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
	seen.UID, seen.Leaving = "", false
	seen.Task = cluster.TaskRef{Job: of(w, "pod/o1", "pod/o2"), Name: fmt.Sprintf("p%d", w.roll(3))}
	return seen
}

// A name that comes back with another UID inherits nothing.
func TestAnotherUID(t *testing.T) {
	live(t, func(w *world) {
		for range lengthOfLife / 2 {
			w.step()
		}
		for _, j := range w.state.Jobs() {
			if j.Open {
				continue
			}
			put := cluster.JobPut{Job: j.Spec()}
			put.Job.UID = "another"
			put.Job.Displaced, put.Job.Retired, put.Job.Torn, put.Job.Parked = nil, false, 0, nil
			w.apply(cluster.JobGone{Job: j.ID})
			w.apply(cluster.JobPut{Job: j.Spec()}) // as it was, with a UID, and nothing on nodes
			fresh := w.state.Job(j.ID)
			if fresh.UID == "" {
				continue
			}
			x := w.state.Begin()
			x.SetTorn(fresh, 7)
			x.Displace(fresh, "job/x")
			x.Commit()
			w.apply(put)
			got := w.state.Job(j.ID)
			if got == fresh || got.Torn != 0 || len(got.Displaced) > 0 || got.UID != "another" {
				w.Fatalf("%s inherits %+v", j.ID, got)
			}
		}
		w.audit(nil)
	})
}

// All kinds of changes are known to the reader, and all of them are drawn above.
func TestEveryKindOfChange(t *testing.T) {
	made := map[string]int{}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt)
		for range 2 * lengthOfLife {
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

func TestDecodeRefusesNonsense(t *testing.T) {
	tests := map[string]string{
		"":                          `not a change: unexpected end of JSON input`,
		"[]":                        `not a change: json: cannot unmarshal array into Go value of type map[string]json.RawMessage`,
		`{"kind":"Nodeput"}`:        `unknown kind of change "Nodeput"`,
		`{"kind":"NodeGone","x":1}`: `NodeGone: json: unknown field "x"`,
		`{"kind":"Decided","changes":[{"kind":"?"}]}`:                         `Decided: unknown kind of change "?"`,
		`{"kind":"Decided","changes":[{"kind":"Decided","changes":[]}]}`:      `Decided: a decision cannot contain decisions`,
		`{"kind":"TaskSeen","task":{},"devices":[{"device":"d","milli":-1}]}`: `TaskSeen: device "d": milli is -1; it is from 0 to 1152921504606846976`,
		`{"kind":"NodePut","node":{"name":"n","avoids":[{"until":1}]}}`:       `NodePut: node "n": there is no shape`,
	}
	for in, want := range tests {
		if _, err := cluster.Decode([]byte(in)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", in, err)
		}
	}
	s := cluster.NewState()
	if err := s.Apply(nil); err == nil {
		t.Error("nothing was applied")
	}
	err := s.Apply(cluster.Decided{Changes: []cluster.Change{cluster.NodeGone{Name: "n"}}})
	if diff := cmp.Diff("NodeGone: it is not a decision", fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}
