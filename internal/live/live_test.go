package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/google/go-cmp/cmp"
)

// question is a question that a lab answers, and that can be asked again on a fresh State.
type question struct {
	workload string         // why it is where it is
	change   cluster.Change // what if it happened
}

const now = 1 << 50 // later than every session

func (q question) ask(l *Lab) (string, uint64) {
	if q.change != nil {
		d, position, err := l.WhatIf(now, q.change)
		return spell(d, err), position
	}
	r, position, err := l.Why(whatif.Question{Workload: q.workload, Now: now, Tries: 3})
	return spell(r, err), position
}

func (q question) askAgain(e *engine.Engine, s *cluster.State) string {
	if q.change != nil {
		d, err := whatif.WhatIf(e, s, sim.Options{Now: now}, func(s *cluster.State) error { return s.Apply(q.change) })
		return spell(d, err)
	}
	return spell(whatif.Why(whatif.Question{Engine: e, State: s, Workload: q.workload, Now: now, Tries: 3}))
}

func spell(v any, err error) string {
	if err != nil {
		return err.Error()
	}
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// sameRefusal compares refusals by pointer: views share those of the leader.
var sameRefusal = cmp.Comparer(func(a, b *engine.Refusal) bool { return a == b })

func differ(want, got *View) string {
	return cmp.Diff([]any{want.Position, want.Now, want.Queues, want.Nodes(), want.Jobs()}, []any{got.Position, got.Now, got.Queues, got.Nodes(), got.Jobs()}, sameRefusal)
}

type answer struct {
	question
	position uint64
	text     string
}

// readers ask questions while the leader runs, and keep the answers.
type readers struct {
	sync.WaitGroup
	mutex    sync.Mutex
	answers  []answer
	views    []*View
	answered chan struct{} // after each answer of a lab, so that they are spread over the steps
	done     chan struct{} // the leader does not take more of these
}

// inLab asks questions of the lab.
func (r *readers) inLab(lab *Lab, seed uint64, questions int) {
	dice := rand.New(rand.NewPCG(seed, 1))
	for range questions {
		q := question{workload: jobID(dice.IntN(worldJobs))}
		switch dice.IntN(4) {
		case 0:
			q = question{change: cluster.NodeGone{Name: fmt.Sprintf("n%d", dice.IntN(worldNodes))}}
		case 1:
			q = question{change: cluster.JobGone{Job: q.workload}}
		}
		text, position := q.ask(lab)
		r.mutex.Lock()
		r.answers = append(r.answers, answer{q, position, text})
		r.mutex.Unlock()
		select {
		case r.answered <- struct{}{}:
		case <-r.done:
		}
	}
}

// inViews reads whole views.
func (r *readers) inViews(t *testing.T, f *Follower, looks int) {
	for range looks {
		v, err := f.View()
		if err != nil {
			t.Error(err)
			return
		}
		v.Nodes()
		v.Jobs()
		r.mutex.Lock()
		r.views = append(r.views, v)
		r.mutex.Unlock()
	}
}

// TestReaders checks that every answer that readers get while the leader runs is the one
// that a replay of the log up to its position gives. With the small ring labs fall behind.
func TestReaders(t *testing.T) {
	for name, ring := range map[string]int{"small ring": 16, "large ring": 1 << 12} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 7, ring)
			r := readers{answered: make(chan struct{}), done: make(chan struct{})}
			for i := range 3 {
				lab, err := w.leader.Follower().Lab()
				if err != nil {
					t.Fatal(err)
				}
				r.Go(func() { r.inLab(lab, uint64(i), 25) })
			}
			for range 2 {
				r.Go(func() { r.inViews(t, w.leader.Follower(), 60) })
			}
			for i := range 420 {
				if w.step(); i%6 == 5 {
					<-r.answered
				}
			}
			close(r.done)
			r.Wait()
			positions := map[uint64]bool{}
			for _, a := range r.answers {
				positions[a.position] = true
				s, _ := w.replay(a.position)
				if d := cmp.Diff(a.askAgain(testEngine(t), s), a.text); d != "" {
					t.Fatalf("%+v at position %d (-replayed +answered)\n%s", a.question, a.position, d)
				}
			}
			if len(positions) < 10 {
				t.Errorf("the answers are of %d positions only", len(positions))
			}
			for _, v := range r.views {
				_, want := w.replay(v.Position)
				if d := differ(want, v); d != "" {
					t.Fatalf("view at position %d (-replayed +seen)\n%s", v.Position, d)
				}
			}
		})
	}
}

// TestViewsStepByStep reads a view after every step, so that each is made from the one
// before.
func TestViewsStepByStep(t *testing.T) {
	w := newWorld(t, 3, 0)
	refused := 0
	for range 150 {
		w.step()
		got, err := w.leader.Follower().View()
		if err != nil {
			t.Fatal(err)
		}
		_, want := w.replay(w.leader.Position())
		if d := differ(want, got); d != "" {
			t.Fatalf("position %d (-replayed +seen)\n%s", got.Position, d)
		}
		for _, j := range got.Jobs() {
			if one, ok := got.Job(j.ID); !ok || one.ID != j.ID {
				t.Errorf("%s is listed and not found", j.ID)
			}
			if j.Refusal != nil {
				refused++
			}
			if j.Refusal != nil && (!j.Pending || j.Refusal.Job != j.ID) {
				t.Errorf("%s has a refusal that is not its own, or is not pending", j.ID)
			}
		}
	}
	if refused == 0 {
		t.Error("no job was ever refused")
	}
}

// A lab that fell behind gets a copy of the State. Other labs keep theirs.
func TestLabFallsBehind(t *testing.T) {
	w := newWorld(t, 1, 8)
	w.apply(cluster.JobPut{Job: *enginetest.Job("j0").Devices(9).Build()})
	lab, err := w.leader.Follower().Lab()
	if err != nil {
		t.Fatal(err)
	}
	q := question{workload: jobID(0)}
	for name, tt := range map[string]struct {
		changes int
		behind  bool
	}{"a little": {8, false}, "too far": {9, true}} {
		t.Run(name, func(t *testing.T) {
			q.ask(lab)
			before := lab.state
			for i := range tt.changes {
				w.apply(cluster.JobPut{Job: *enginetest.Job(fmt.Sprintf("j%d", i)).Devices(9 + w.dice.IntN(9)).Build()})
			}
			if _, ok := w.leader.Follower().Ring().Since(lab.position); ok == tt.behind {
				t.Errorf("the ring has what the lab missed: %v", ok)
			}
			text, position := q.ask(lab)
			if position != w.leader.Position() || (lab.state != before) != tt.behind {
				t.Errorf("it answers at position %d of %d, with another State: %v", position, w.leader.Position(), lab.state != before)
			}
			s, _ := w.replay(position)
			if d := cmp.Diff(q.askAgain(testEngine(t), s), text); d != "" {
				t.Errorf("(-replayed +answered)\n%s", d)
			}
		})
	}
}

// The leader continues while one reader holds the follower and another the lab. If it
// waited for one of them, this test would not end.
func TestReadersDoNotStopTheLeader(t *testing.T) {
	w := newWorld(t, 2, 4)
	f := w.leader.Follower()
	f.mutex.Lock()
	for range 3 * maxWaiting {
		w.apply(cluster.JobPut{Job: *w.job(w.dice.IntN(worldJobs))})
	}
	w.session()
	f.mutex.Unlock()
	got, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	_, want := w.replay(w.leader.Position())
	if d := differ(want, got); d != "" {
		t.Errorf("(-replayed +seen)\n%s", d)
	}
}

// failing is a log that fails from a position on.
type failing struct{ from uint64 }

var errDisk = errors.New("disk full")

func (f failing) Append(position uint64, changes []cluster.Change) error {
	if position+uint64(len(changes)) > f.from {
		return errDisk
	}
	return nil
}

// A change that could not be logged is not published, its decisions are not returned, and
// no later change is made.
func TestLogFails(t *testing.T) {
	node, job := cluster.NodePut{Node: *enginetest.Node("a").GPUs(1, "L4", "24Gi").Build()}, cluster.JobPut{Job: *enginetest.Job("j0").Devices(1).Build()}
	for name, tt := range map[string]struct {
		from uint64
		last uint64
	}{"at a fact": {2, 1}, "at a session": {3, 2}} {
		t.Run(name, func(t *testing.T) {
			l := NewLeader(Options{State: cluster.NewState(), Engine: testEngine(t), Log: failing{tt.from}})
			err := errors.Join(l.Apply(node), l.Apply(job))
			out, runErr := l.Run(engine.Options{Now: 1})
			if len(out.Decisions)+len(out.Changes) > 0 || !errors.Is(runErr, errDisk) || errors.Is(err, errDisk) != (tt.from == 2) {
				t.Errorf("%d decisions, %v, %v", len(out.Decisions), err, runErr)
			}
			if err := l.Apply(node); !errors.Is(err, errDisk) {
				t.Errorf("the leader continues: %v", err)
			}
			v, err := l.Follower().View()
			if err != nil || v.Position != tt.last || l.Position() != tt.last || l.Follower().Ring().Last() != tt.last {
				t.Errorf("readers see position %d, the leader is at %d, %v", v.Position, l.Position(), err)
			}
		})
	}
}

// A malformed fact is reported, and is not logged.
func TestMalformedFact(t *testing.T) {
	w := newWorld(t, 4, 0)
	before, digest := len(w.log), w.leader.State().Digest()
	for name, c := range map[string]cluster.Change{"a job without tasks": cluster.JobPut{Job: cluster.Job{ID: "job/x"}}, "a node without a name": cluster.NodePut{}, "none": nil} {
		if err := w.leader.Apply(c); err == nil {
			t.Errorf("%s is not reported", name)
		}
	}
	if len(w.log) != before || w.leader.Position() != uint64(before) || w.leader.State().Digest() != digest {
		t.Error("a malformed fact changes the State or the log")
	}
}

func TestRing(t *testing.T) {
	r := newRing(4, 10)
	for p := uint64(11); p <= 16; p += 2 {
		r.add([]*Entry{{Position: p}, {Position: p + 1}})
	}
	for name, tt := range map[string]struct {
		since uint64
		want  []uint64
		ok    bool
	}{
		"nothing new":     {16, nil, true},
		"one":             {15, []uint64{16}, true},
		"all it holds":    {12, []uint64{13, 14, 15, 16}, true},
		"one too many":    {11, nil, false},
		"before it began": {3, nil, false},
		"ahead of it":     {17, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			entries, ok := r.Since(tt.since)
			var got []uint64
			for _, e := range entries {
				got = append(got, e.Position)
			}
			if d := cmp.Diff(tt.want, got); d != "" || ok != tt.ok {
				t.Errorf("%v (-want +got)\n%s", ok, d)
			}
		})
	}
}

// TestFinishedJobs checks that jobs which come and go while no View is made leave nothing behind,
// and that the next View is right.
func TestFinishedJobs(t *testing.T) {
	w := newWorld(t, 1, 64)
	f := w.leader.Follower()
	if _, err := f.View(); err != nil {
		t.Fatal(err)
	}
	put := func(name string) string {
		j := enginetest.Job(name).Devices(1).Build()
		w.apply(cluster.JobPut{Job: *j})
		return j.ID
	}
	seen := put("seen")
	if _, err := f.View(); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		w.apply(cluster.JobGone{Job: put(fmt.Sprintf("short-%d", i))})
	}
	w.apply(cluster.JobGone{Job: seen})
	stays := put("stays")
	f.mutex.Lock()
	f.follow()
	if n := len(f.tables.newJobs.dirty); n != 2 {
		t.Errorf("%d jobs are to be updated, want the one with a row and the one that stays", n)
	}
	f.mutex.Unlock()
	v, err := f.View()
	if err != nil {
		t.Fatal(err)
	}
	if jobs := v.Jobs(); len(jobs) != 1 || jobs[0].ID != stays {
		t.Errorf("the jobs are %v", jobs)
	}
}
