package history

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/plugins/standard"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// scheduler is a leader and a Store whose changes a History keeps.
type scheduler struct {
	t      testing.TB
	kept   *History
	leader *live.Leader
	store  *intree.Store
	now    int64
}

func newScheduler(t testing.TB, kept *History) *scheduler {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	s := &scheduler{t: t, kept: kept, store: intree.NewStore(), now: 1}
	o := live.Options{State: cluster.NewState(), Engine: e, Ring: 1 << 12}
	if kept != nil {
		o.Log = kept
		s.store.Observe(kept.Put)
	}
	s.leader = live.NewLeader(o)
	return s
}

func (s *scheduler) apply(c cluster.Change) {
	s.t.Helper()
	if err := s.leader.Apply(c); err != nil {
		s.t.Fatal(err)
	}
}

// session runs a session as the loop does.
func (s *scheduler) session() engine.Outcome {
	s.t.Helper()
	s.now += 1_000_000
	o := engine.Options{Now: s.now}
	if s.kept != nil {
		s.kept.Open(Session{Options: o})
	}
	out, err := s.leader.Run(o)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.kept != nil {
		s.kept.Close(&out, 0, nil)
	}
	return out
}

// confirm reports that the tasks that were bound run.
func (s *scheduler) confirm(out *engine.Outcome) {
	s.t.Helper()
	for i := range out.Decisions {
		if d := &out.Decisions[i]; d.Action == engine.Bind {
			s.apply(cluster.TaskSeen{Task: d.Task, Node: d.Node, Started: s.now})
		}
	}
}

func (s *scheduler) addNodes(count int) {
	s.t.Helper()
	for i := range count {
		s.apply(cluster.NodePut{Node: *enginetest.Node(fmt.Sprintf("node-%05d", i)).CPU(32, "256Gi").GPUs(8, "L4", "24Gi").Build()})
	}
}

func aPod(name string, labels map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: labels}}
}

// TestInput checks that the input of a kept session is the State and the objects as they were
// when it was opened.
func TestInput(t *testing.T) {
	kept := New()
	s := newScheduler(t, kept)
	s.addNodes(3)
	now := intree.NewContents()
	s.store.Observe(func(u intree.Update) {
		kept.Put(u)
		now.Apply(u)
	})
	dice := rand.New(rand.NewPCG(1, 2))
	type want struct{ digest, objects string }
	wants := map[uint64]want{}
	for step := range 400 {
		name := fmt.Sprintf("j%d", dice.IntN(30))
		key := intree.TaskKey{Job: "job/" + name, Task: "worker-0", UID: name}
		switch dice.IntN(5) {
		case 0, 1:
			s.apply(cluster.JobPut{Job: *enginetest.Job(name).CPU(1000, "1Gi").Devices(1 + dice.IntN(6)).Build()})
			if err := s.store.PutPod(key, aPod(name, map[string]string{"step": fmt.Sprint(step)})); err != nil {
				t.Fatal(err)
			}
		case 2:
			s.apply(cluster.JobGone{Job: "job/" + name})
			s.store.DeletePod(key)
		case 3:
			s.store.PutNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", dice.IntN(3)), Labels: map[string]string{"step": fmt.Sprint(step)}}})
		default:
			before := want{s.leader.State().Digest(), spell(now)}
			out := s.session()
			wants[kept.number] = before
			s.confirm(&out)
		}
	}
	list, err := kept.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != MaxSessions {
		t.Errorf("%d sessions are kept, want %d", len(list), MaxSessions)
	}
	for _, session := range list {
		if len(session.Outcome.Tried)+len(session.Outcome.Decisions) == 0 {
			t.Errorf("session %d, which decided nothing, is kept", session.Number)
		}
		in, err := kept.Input(session.Number)
		if err != nil {
			t.Fatal(err)
		}
		if got := (want{in.State.Digest(), spell(in.Objects)}); got != wants[session.Number] {
			t.Errorf("session %d: the input differs:\n%s\nwant\n%s", session.Number, got.objects, wants[session.Number].objects)
		}
	}
	if in, err := kept.Input(list[0].Number - 1); in != nil || err != nil {
		t.Errorf("the session before the first that is kept has an input: %v", err)
	}
}

func spell(c *intree.Contents) string {
	text := ""
	for _, p := range c.Pods() {
		text += fmt.Sprintf("%v %s\n", p.Task, p.Pod.Labels["step"])
	}
	for _, o := range c.Others() {
		text += fmt.Sprintf("%s %s\n", o.(*v1.Node).Name, o.(*v1.Node).Labels["step"])
	}
	return text
}

// TestLimit checks that the number of changes that are kept is bounded, and that fewer sessions
// are kept then.
func TestLimit(t *testing.T) {
	kept := New()
	s := newScheduler(t, kept)
	s.addNodes(1)
	for i := range 30 {
		s.apply(cluster.JobPut{Job: *enginetest.Job(fmt.Sprintf("j%d", i)).CPU(1000, "1Gi").Build()})
		s.session()
		for range MaxChanges / 10 {
			s.store.PutNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-00000"}})
		}
	}
	list, err := kept.Sessions()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 9 || len(kept.entries) > MaxChanges {
		t.Errorf("%d sessions and %d changes are kept", len(list), len(kept.entries))
	}
	for _, session := range list {
		if in, err := kept.Input(session.Number); err != nil || len(in.State.Jobs()) != int(session.Number) {
			t.Errorf("session %d: %v", session.Number, err)
		}
	}
}

// BenchmarkSessions measures a session of one job at 5,000 nodes, with the facts before and
// after it, without and with a History.
func BenchmarkSessions(b *testing.B) {
	for name, kept := range map[string]*History{"none": nil, "kept": New()} {
		b.Run(name, func(b *testing.B) {
			s := newScheduler(b, kept)
			s.addNodes(5000)
			s.session()
			pod := aPod("p", nil)
			for i := 0; b.Loop(); i++ {
				name := fmt.Sprintf("j%d", i)
				s.apply(cluster.JobPut{Job: *enginetest.Job(name).CPU(1000, "1Gi").Devices(1).Build()})
				key := intree.TaskKey{Job: "job/" + name, Task: "worker-0", UID: "p"}
				_ = s.store.PutPod(key, pod)
				out := s.session()
				s.confirm(&out)
				s.apply(cluster.JobGone{Job: "job/" + name})
				s.store.DeletePod(key)
			}
		})
	}
}
