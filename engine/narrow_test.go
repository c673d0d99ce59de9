package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// TestClassRuleMissesAVictim checks that a twin session reports a ClassRule that leaves out a
// class of which the VictimRule allows victims.
func TestClassRuleMissesAVictim(t *testing.T) {
	narrow := &policy{name: "Narrow", open: func(s *engine.Session) {
		s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
			return func(*engine.Victim) engine.Verdict { return engine.Allow }
		})
		s.Hooks.NarrowVictims(engine.Preempt, engine.NoClass)
		s.Hooks.AddEvictionPurpose(engine.Preempt, "Narrow")
	}}
	parts := []enginetest.Part{enginetest.Job("new").Devices(1)}
	for i := range 20 {
		n := fmt.Sprintf("n%d", i)
		parts = append(parts, enginetest.Node(n).CPU(8, "32Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("x"+n).Devices(1).Preemptible().On(n))
	}
	s := enginetest.Engine(fit(), narrow).Open(enginetest.State(parts...), engine.Options{Search: engine.Twin})
	defer s.Close()
	if out, err := s.Run(); err == nil {
		t.Errorf("no error, %d decisions", len(out.Decisions))
	}
}

// TestNarrowQueues checks that a search on few nodes calls the ClassRule only for classes of
// the queues that the QueueRule returns, and that a twin session reports a QueueRule that leaves out a queue with
// victims.
func TestNarrowQueues(t *testing.T) {
	run := func(queue string, search engine.Search) (asked map[string]bool, victims int, err error) {
		asked = map[string]bool{}
		narrow := &policy{name: "Narrow", open: func(s *engine.Session) {
			s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(v *engine.Victim) engine.Verdict {
					if v.Job.Queue == "q07" {
						return engine.Allow
					}
					return engine.NoOpinion
				}
			})
			s.Hooks.NarrowVictims(engine.Preempt, func(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
				return func(c cluster.Class) bool {
					asked[c.Queue] = true
					return true
				}
			})
			s.Hooks.NarrowQueues(engine.Preempt, func(*cluster.Job, []*cluster.Task) ([]string, bool) {
				return []string{queue, "gone"}, queue == ""
			})
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Narrow")
		}}
		parts := []enginetest.Part{enginetest.Queue("mine"), enginetest.Job("new").Devices(1).Queue("mine")}
		for i := range 20 {
			q, n := fmt.Sprintf("q%02d", i), fmt.Sprintf("n%02d", i)
			parts = append(parts, enginetest.Queue(q), enginetest.Node(n).CPU(8, "32Gi").GPUs(1, "L4", "24Gi"),
				enginetest.Job("x"+n).Devices(1).Queue(q).Preemptible().On(n))
		}
		s := enginetest.Engine(fit(), narrow).Open(enginetest.State(parts...), engine.Options{Search: search})
		defer s.Close()
		out, err := s.Run()
		return asked, len(evicted(out)), err
	}
	for queue, most := range map[string]int{"q07": 1, "": 20} {
		asked, evicted, err := run(queue, engine.Indexed)
		if err != nil || evicted != 1 || len(asked) != most {
			t.Errorf("queue %q: %d evicted, ClassRule called for %d queues, want 1 and %d: %v", queue, evicted, len(asked), most, err)
		}
	}
	if _, evicted, err := run("q08", engine.Twin); err == nil {
		t.Errorf("a QueueRule that leaves out the queue with the victim: no error, %d evicted", evicted)
	}
}

// TestNarrowFirst checks that the search examines only nodes that may have a first victim, that
// it finds victims that are allowed only after others, and that a twin session reports a
// FirstVictims that leaves out a class with a first victim.
func TestNarrowFirst(t *testing.T) {
	// Each of 100 nodes has two jobs on its two devices. The jobs of queue late may be evicted
	// once a job of queue early is.
	run := func(first engine.ClassRule, search engine.Search, tasks, devices int) (asked map[string]bool, victims int, err error) {
		asked = map[string]bool{}
		narrow := &policy{name: "Narrow", open: func(s *engine.Session) {
			s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(v *engine.Victim) engine.Verdict {
					asked[v.Tasks[0].Node.Name] = true
					if v.Job.Queue == "early" || s.View.Queue("early").Used.Of(cluster.DefaultDeviceResource) < 1000 {
						return engine.Allow
					}
					return engine.NotYet("Late")
				}
			})
			s.Hooks.NarrowVictims(engine.Preempt, func(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
				return func(cluster.Class) bool { return true }
			})
			if first != nil {
				s.Hooks.NarrowFirst(engine.Preempt, engine.FirstVictims{Classes: first})
			}
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Narrow")
		}}
		parts := []enginetest.Part{enginetest.Queue("mine"), enginetest.Queue("early"), enginetest.Queue("late"),
			enginetest.Job("new").Gang(tasks).Devices(devices).Queue("mine")}
		for i := range 100 {
			n := fmt.Sprintf("n%02d", i)
			parts = append(parts, enginetest.Node(n).CPU(80, "320Gi").GPUs(2, "L4", "24Gi"))
			for k := range 2 {
				queue := "late"
				if i == 7 && k == 0 {
					queue = "early"
				}
				parts = append(parts, enginetest.Job(fmt.Sprintf("x%s-%d", n, k)).Devices(1).Queue(queue).Preemptible().On(n))
			}
		}
		s := enginetest.Engine(fit(), narrow).Open(enginetest.State(parts...), engine.Options{Search: search})
		defer s.Close()
		out, err := s.Run()
		return asked, len(evicted(out)), err
	}
	early := func(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
		return func(c cluster.Class) bool { return c.Queue == "early" }
	}
	for name, tt := range map[string]struct {
		first          engine.ClassRule
		tasks, devices int
		evicted, nodes int
	}{
		"without the hook, other nodes are examined": {nil, 1, 1, 1, 100},
		"only the node with a first victim":          {early, 1, 1, 1, 1},
		"a victim after another on the same node":    {early, 1, 2, 2, 1},
		"a victim after another on another node":     {early, 4, 1, 4, 100},
		"no plan without a first victim":             {engine.NoClass, 1, 1, 1, 100},
	} {
		t.Run(name, func(t *testing.T) {
			asked, evicted, err := run(tt.first, engine.Indexed, tt.tasks, tt.devices)
			if err != nil || evicted != tt.evicted || len(asked) > tt.nodes {
				t.Errorf("%d evicted, %d nodes examined, want %d and at most %d: %v", evicted, len(asked), tt.evicted, tt.nodes, err)
			}
			if tt.nodes == 100 && tt.tasks == 1 && len(asked) < 2 {
				t.Errorf("%d nodes examined, want several", len(asked))
			}
		})
	}
	if _, evicted, err := run(early, engine.Twin, 4, 1); err != nil || evicted != 4 {
		t.Errorf("twin session: %d evicted, want 4: %v", evicted, err)
	}
	if _, evicted, err := run(engine.NoClass, engine.Twin, 1, 1); err == nil {
		t.Errorf("a FirstVictims that leaves out the class of the first victim: no error, %d evicted", evicted)
	}
}

// TestPublishedBetweenRefusals checks that a parameter that is published while a session runs
// affects later refusals of the session.
func TestPublishedBetweenRefusals(t *testing.T) {
	for _, search := range []engine.Search{engine.Indexed, engine.Twin} {
		reason := engine.Reason("Old")
		p := &policy{name: "Learns"}
		p.open = func(s *engine.Session) {
			s.Hooks.AddPreFilter(func(_ *cluster.Task, j *cluster.Job) *engine.Rejection {
				if j.ID == "job/b" {
					reason = "New"
					s.Hooks.Publish("Learns", 2)
				}
				return nil
			})
			s.Hooks.AddShapeFilter(nil, func(*cluster.Shape, *cluster.Node) *engine.Rejection {
				return &engine.Rejection{Reason: reason, Cure: engine.Wait}
			})
		}
		// Jobs a and c are interchangeable. The number is published between their turns.
		s := enginetest.Engine(fit(), p).Open(enginetest.State(enginetest.Node("n").CPU(8, "32Gi"), enginetest.Job("a"), enginetest.Job("b").Label("app", "b"), enginetest.Job("c")), engine.Options{Search: search})
		out, err := s.Run()
		s.Close()
		if err != nil {
			t.Fatalf("search %v: %v", search, err)
		}
		if a, b, c := out.Refusals[0].Reason, out.Refusals[1].Reason, out.Refusals[2].Reason; a != "Old" || b != "New" || c != "New" {
			t.Errorf("search %v: refused for %s, %s and %s", search, a, b, c)
		}
	}
}

// TestSurvey checks that a search for several victims on one node calls the hooks for few of
// the tasks: summaries of nodes tell how many victims each needs. All tasks of a node but one
// are in the queue that may be evicted, and on one node all are.
func TestSurvey(t *testing.T) {
	const nodes, devices = 2000, 4
	for want, requests := range map[string]int{"n0000": devices - 1, "n1234": devices} {
		calls := 0
		count := &policy{name: "Count", open: func(s *engine.Session) {
			s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(v *engine.Victim) engine.Verdict {
					if calls++; v.Job.Queue == "low" {
						return engine.Allow
					}
					return engine.Protect("High")
				}
			})
			s.Hooks.NarrowVictims(engine.Preempt, func(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
				return func(c cluster.Class) bool { return c.Queue == "low" }
			})
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Count")
		}}
		parts := []enginetest.Part{enginetest.Queue("mine"), enginetest.Queue("low"), enginetest.Queue("high"), enginetest.Job("new").Devices(requests).Queue("mine")}
		for i := range nodes {
			n := fmt.Sprintf("n%04d", i)
			parts = append(parts, enginetest.Node(n).CPU(80, "320Gi").GPUs(devices, "L4", "24Gi"))
			for k := range devices {
				queue := "low"
				if k == 0 && i != 1234 {
					queue = "high"
				}
				parts = append(parts, enginetest.Job(fmt.Sprintf("x%s-%d", n, k)).Devices(1).Queue(queue).Preemptible().On(n))
			}
		}
		s := enginetest.Engine(fit(), count).Open(enginetest.State(parts...), engine.Options{})
		out, err := s.Run()
		s.Close()
		if err != nil || len(evicted(out)) != requests || out.Decisions[0].Node != want {
			t.Fatalf("%d devices: decisions %v, %v; want %d victims on %s", requests, out.Decisions, err, requests, want)
		}
		if calls > nodes*devices/10 {
			t.Errorf("%d devices: the hooks were called for %d victims of %d", requests, calls, nodes*devices)
		}
	}
}

// TestSurveysBeyondTheFirst checks that the search makes another survey if filters reject all
// nodes that the first survey listed.
func TestSurveysBeyondTheFirst(t *testing.T) {
	const nodes = 1500
	last := fmt.Sprintf("n%04d", nodes-1)
	only := &policy{name: "Only", open: func(s *engine.Session) {
		s.Hooks.AddStaticFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if n.Name == last {
				return nil
			}
			return &engine.Rejection{Reason: "NotTheLast"}
		})
		s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
			return func(*engine.Victim) engine.Verdict { return engine.Allow }
		})
		s.Hooks.AddEvictionPurpose(engine.Preempt, "Only")
	}}
	parts := []enginetest.Part{enginetest.Job("new").Devices(2)}
	for i := range nodes {
		n := fmt.Sprintf("n%04d", i)
		parts = append(parts, enginetest.Node(n).CPU(80, "320Gi").GPUs(2, "L4", "24Gi"))
		for k := range 2 {
			parts = append(parts, enginetest.Job(fmt.Sprintf("x%s-%d", n, k)).Devices(1).Preemptible().On(n))
		}
	}
	s := enginetest.Engine(fit(), only).Open(enginetest.State(parts...), engine.Options{})
	defer s.Close()
	if out, err := s.Run(); err != nil || len(evicted(out)) != 2 || out.Decisions[0].Node != last {
		t.Errorf("decisions %v, %v; want two victims on %s", out.Decisions, err, last)
	}
}

// TestFurtherSurveyKeepsTheHeap checks that two gangs with equal requests share what is known of
// nodes, although the first gang made a further survey while its victims were evicted. The first
// gang examines as many nodes without a plan as it may, and is refused. The second gang does not
// examine them again, and finds the two nodes that have room.
func TestFurtherSurveyKeepsTheHeap(t *testing.T) {
	p := &policy{name: "P", open: func(s *engine.Session) {
		s.Hooks.AddShapeFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if strings.HasPrefix(n.Name, "bad") {
				return &engine.Rejection{Reason: "Bad", Cure: engine.Evict}
			}
			return nil
		})
		s.Hooks.AddStaticFilter(nil, func(_ *cluster.Shape, n *cluster.Node) *engine.Rejection {
			if strings.HasPrefix(n.Name, "dead") {
				return &engine.Rejection{Reason: "Dead"}
			}
			return nil
		})
		s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
			return func(*engine.Victim) engine.Verdict { return engine.Allow }
		})
		s.Hooks.AddEvictionPurpose(engine.Preempt, "P")
	}}
	var parts []enginetest.Part
	for _, name := range []string{"a", "b"} {
		parts = append(parts, enginetest.Job(name).Devices(1).Gang(2).Min(2).Priority(10))
	}
	add := func(count int, kind string, priority int32) {
		for i := range count {
			n := fmt.Sprintf("%s-%d-%03d", kind, priority, i)
			parts = append(parts, enginetest.Node(n).CPU(80, "320Gi").GPUs(1, "L4", "24Gi"))
			parts = append(parts, enginetest.Job("x"+n).Devices(1).Priority(priority).Preemptible().On(n))
		}
	}
	add(200, "bad", 0)
	add(1, "good", 1)
	add(400, "dead", 2)
	add(100, "bad", 3)
	add(1, "good", 4)
	s := enginetest.Engine(fit(), p).Open(enginetest.State(parts...), engine.Options{})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	if len(evicted(out)) != 2 {
		t.Errorf("%d victims, decisions %v; want 2 victims", len(evicted(out)), out.Decisions)
	}
}

// TestKeptSummaries checks that an engine that is kept from session to session decides the same
// as a new one, while jobs and nodes come and go, specs change, and States alternate. Twin
// sessions also check every summary of a node against its tasks.
func TestKeptSummaries(t *testing.T) {
	plugin := func() *policy {
		return &policy{name: "Any", open: func(s *engine.Session) {
			s.Hooks.AddPreemptable(func(job *cluster.Job, _ []*cluster.Task) func(*engine.Victim) engine.Verdict {
				return func(v *engine.Victim) engine.Verdict {
					if v.Job.Priority < job.Priority {
						return engine.Allow
					}
					return engine.Protect("NotLower")
				}
			})
			s.Hooks.NarrowVictims(engine.Preempt, func(job *cluster.Job, _ []*cluster.Task) func(cluster.Class) bool {
				return func(c cluster.Class) bool { return c.Priority < job.Priority }
			})
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Any")
		}}
	}
	rapid.Check(t, func(t *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "roll") }
		kept := enginetest.Engine(fit(), plugin())
		states := []*cluster.State{enginetest.State(), enginetest.State()}
		for step := range 1 + roll(25) {
			state := states[roll(len(states))]
			apply := func(c cluster.Change) {
				if err := state.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			for range 1 + roll(3) {
				apply(cluster.NodePut{Node: *enginetest.Node(fmt.Sprintf("n%d", roll(5))).CPU(8, "32Gi").GPUs(1+roll(4), "L4", "24Gi").Build()})
			}
			if roll(4) == 0 {
				apply(cluster.NodeGone{Name: fmt.Sprintf("n%d", roll(5))})
			}
			for range roll(4) {
				j := enginetest.Job(fmt.Sprintf("j%d", roll(12))).Devices(1 + roll(3)).Priority(int32(roll(4))).Preemptible()
				if roll(4) == 0 {
					j.Gang(2).Min(1 + roll(2))
				}
				apply(cluster.JobPut{Job: *j.Build()})
			}
			for _, j := range state.Jobs() {
				if roll(6) == 0 {
					apply(cluster.JobGone{Job: j.ID})
				}
			}
			fresh := enginetest.Engine(fit(), plugin())
			now := int64(step+1) * second
			decide := func(e *engine.Engine, state *cluster.State, search engine.Search) (told []string) {
				s := e.Open(state, engine.Options{Now: now, Search: search})
				defer s.Close()
				out, err := s.Run()
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range out.Decisions {
					told = append(told, fmt.Sprintf("%v %s on %s", d.Action, d.Task.ID(), d.Node))
				}
				return told
			}
			want := decide(fresh, state.Clone(), engine.Indexed)
			if d := cmp.Diff(want, decide(kept, state, engine.Twin)); d != "" {
				t.Fatalf("step %d (-new engine +kept engine):\n%s", step, d)
			}
			for _, task := range state.View().Releasing() {
				if roll(2) == 0 {
					apply(cluster.JobGone{Job: task.Job.ID})
				}
			}
		}
	})
}

// TestSummariesOfProtectedTasks checks that a twin session accepts the bounds that follow from
// summaries if the tasks with devices are protected and a task without devices is not.
func TestSummariesOfProtectedTasks(t *testing.T) {
	protect := &policy{name: "Protect", open: func(s *engine.Session) {
		s.Hooks.AddPreemptable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
			return func(v *engine.Victim) engine.Verdict {
				if len(v.Tasks[0].Claims) > 0 {
					return engine.Protect("HasDevices")
				}
				return engine.Allow
			}
		})
		s.Hooks.NarrowVictims(engine.Preempt, func(*cluster.Job, []*cluster.Task) func(cluster.Class) bool {
			return func(cluster.Class) bool { return true }
		})
		s.Hooks.AddEvictionPurpose(engine.Preempt, "Protect")
	}}
	state := enginetest.State(enginetest.Node("n").CPU(8, "32Gi").GPUs(4, "L4", "24Gi"),
		enginetest.Job("a").CPU(1000, "1Gi").Preemptible().On("n"),
		enginetest.Job("b").Devices(1).Preemptible().On("n"),
		enginetest.Job("c").Devices(1).Preemptible().On("n"),
		enginetest.Job("new").Devices(4))
	s := enginetest.Engine(fit(), protect).Open(state, engine.Options{Search: engine.Twin})
	defer s.Close()
	if out, err := s.Run(); err != nil || len(out.Decisions) != 0 || len(out.Refusals) != 1 {
		t.Errorf("decisions %v, refusals %v, %v; want a refusal", out.Decisions, out.Refusals, err)
	}
}
