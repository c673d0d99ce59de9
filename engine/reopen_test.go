package engine_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// reopening is a plugin with a Reopen.
type reopening struct {
	policy
	reopen func(*engine.Session) bool
}

func (r *reopening) Reopen(s *engine.Session) bool { return r.reopen(s) }

// calls is a plugin that notes the calls of Reopen and OnSessionOpen. It prefers the node.
type calls struct {
	list   []string
	prefer string
	same   bool // what Reopen returns
}

func (*calls) Name() string { return "calls" }

func (c *calls) OnSessionOpen(s *engine.Session) {
	c.list = append(c.list, "open")
	prefer := c.prefer
	s.Hooks.AddTaskScore(nil, func(_ *cluster.Task, _ *cluster.Job, n *cluster.Node) float64 {
		if n.Name == prefer {
			return 100
		}
		return 0
	})
}

func (c *calls) Reopen(*engine.Session) bool {
	c.list = append(c.list, "reopen")
	return c.same
}

// take runs a session that places the job, and returns on which node.
func take(t *testing.T, e *engine.Engine, s *cluster.State, job string, o engine.Options) string {
	t.Helper()
	if err := s.Apply(cluster.JobPut{Job: *enginetest.Job(job).CPU(1, "1Gi").Build()}); err != nil {
		t.Fatal(err)
	}
	ssn := e.Open(s, o)
	out, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	if err := ssn.Close(); err != nil {
		t.Fatal(err)
	}
	if len(out.Decisions) != 1 {
		t.Fatalf("%s: %d decisions", job, len(out.Decisions))
	}
	return out.Decisions[0].Node
}

func nodes() *cluster.State {
	return enginetest.State(enginetest.Node("a").CPU(8, "8Gi"), enginetest.Node("b").CPU(8, "8Gi"))
}

// TestReopen checks when OnSessionOpen is called.
func TestReopen(t *testing.T) {
	c := &calls{prefer: "b", same: true}
	e, s := enginetest.Engine(enginetest.Fit(), c), nodes()
	step := func(job, want string, wantCalls ...string) {
		t.Helper()
		c.list = nil
		if got := take(t, e, s, job, engine.Options{}); got != want {
			t.Errorf("%s: placed on %s, want %s", job, got, want)
		}
		if d := cmp.Diff(wantCalls, c.list); d != "" {
			t.Errorf("%s (-want +got):\n%s", job, d)
		}
	}
	step("first", "b", "open")
	step("second", "b", "reopen")
	c.same, c.prefer = false, "a"
	step("third", "a", "reopen", "open")
	c.same = true
	step("fourth", "a", "reopen")

	// A timed session replaces the hooks, and the session after it must not use them.
	c.list = nil
	take(t, e, s, "fifth", engine.Options{Timings: &engine.Timings{Clock: func() int64 { return 0 }}})
	take(t, e, s, "sixth", engine.Options{})
	if d := cmp.Diff([]string{"open", "open"}, c.list); d != "" {
		t.Errorf("timed (-want +got):\n%s", d)
	}

	// With another State, hooks may depend on what OnSessionOpen read.
	s = nodes()
	step("seventh", "a", "open")
	step("eighth", "a", "reopen")

	// A session that is opened while another one is open has hooks of its own, which are the latest.
	first := e.Open(s, engine.Options{})
	c.prefer = "b"
	second := e.Open(s, engine.Options{})
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	step("ninth", "b", "open")
}

// TestNotAllReopen checks that all hooks are registered in each session if one plugin has no Reopen.
func TestNotAllReopen(t *testing.T) {
	c := &calls{prefer: "b", same: true}
	e, s := enginetest.Engine(enginetest.Fit(), c, &policy{name: "plain", open: func(*engine.Session) {}}), nodes()
	take(t, e, s, "first", engine.Options{})
	take(t, e, s, "second", engine.Options{})
	if d := cmp.Diff([]string{"open", "open"}, c.list); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestTwinRegistersAgain checks that a twin session finds a plugin of which Reopen is wrong, and
// accepts one of which it is right.
func TestTwinRegistersAgain(t *testing.T) {
	twin := engine.Options{Search: engine.Twin}
	c := &calls{prefer: "b", same: true}
	e, s := enginetest.Engine(enginetest.Fit(), c), nodes()
	take(t, e, s, "first", twin)
	take(t, e, s, "second", twin)
	if d := cmp.Diff([]string{"open", "reopen", "open"}, c.list); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	take(t, e, s, "third", twin) // one of two twin sessions runs as any other session
	if d := cmp.Diff([]string{"open", "reopen", "open", "reopen"}, c.list); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestTwinFindsWrongReopen has plugins of which OnSessionOpen does something else in the second session,
// while Reopen returns true.
func TestTwinFindsWrongReopen(t *testing.T) {
	hooks := "plugin wrong: OnSessionOpen registers other hooks than in the last session, but Reopen returned true; return false"
	prepares := func(what string) string {
		return "plugin wrong: OnSessionOpen " + what + ", but Reopen returned true and did not; do the same in Reopen, or return false"
	}
	compare := func(*cluster.Job, *cluster.Job) int { return 0 }
	for name, tt := range map[string]struct {
		open func(s *engine.Session, again bool)
		want string
	}{
		"another hook": {func(s *engine.Session, again bool) {
			if again {
				s.Hooks.AddJobOrder(compare)
			}
		}, hooks},
		"one hook less": {func(s *engine.Session, again bool) {
			if !again {
				s.Hooks.AddJobOrder(compare)
			}
		}, hooks},
		"another function of a handler": {func(s *engine.Session, again bool) {
			h := engine.EventHandler{AllocateFunc: func(*engine.Event) {}}
			if again {
				h.AllocateFunc = nil
			}
			s.Hooks.AddEventHandler(h)
		}, hooks},
		"another wake": {func(s *engine.Session, again bool) {
			if s.Hooks.AddWake(engine.WakeJobs); again {
				s.Hooks.AddWake(engine.WakeTime)
			}
		}, hooks},
		"another purpose": {func(s *engine.Session, again bool) {
			if again {
				s.Hooks.AddEvictionPurpose(engine.Preempt, "Because")
			} else {
				s.Hooks.AddEvictionPurpose(engine.Reclaim, "Because")
			}
		}, "plugin engine: OnSessionOpen registers other hooks than in the last session, but Reopen returned true; return false"},
		"parameters": {func(s *engine.Session, again bool) {
			if again {
				s.Hooks.Publish("wrong", 2)
			} else {
				s.Hooks.Publish("wrong", 1)
			}
		}, prepares("publishes other parameters")},
		"earmarks": {func(s *engine.Session, _ bool) { s.Earmarks.Keep("Kept") }, prepares("calls Earmarks.Keep")},
	} {
		t.Run(name, func(t *testing.T) {
			sessions := 0
			wrong := &reopening{policy{name: "wrong", open: func(s *engine.Session) {
				tt.open(s, sessions > 0)
				sessions++
			}}, func(*engine.Session) bool { return true }}
			e, s := enginetest.Engine(enginetest.Fit(), wrong), nodes()
			take(t, e, s, "first", engine.Options{Search: engine.Twin})
			failsWith(t, e, s, engine.Options{Search: engine.Twin}, tt.want)
		})
	}
}

// TestTwinUsesWhatIsRegisteredAgain has a plugin with hooks that share an object with the last
// OnSessionOpen.
func TestTwinUsesWhatIsRegisteredAgain(t *testing.T) {
	type object struct{ prefer string }
	var last *object
	next := ""
	p := &reopening{policy{name: "objects", open: func(s *engine.Session) {
		o := &object{next}
		last = o
		s.Hooks.AddTaskScore(nil, func(_ *cluster.Task, _ *cluster.Job, n *cluster.Node) float64 {
			if n.Name == o.prefer {
				return 100
			}
			return 0
		})
	}}, func(*engine.Session) bool { last.prefer = next; return true }}
	e, s := enginetest.Engine(enginetest.Fit(), p), nodes()
	for i, want := range []string{"a", "b", "a", "b", "a"} {
		next = want
		if got := take(t, e, s, "j"+want+string(rune('0'+i)), engine.Options{Search: engine.Twin}); got != want {
			t.Errorf("session %d: placed on %s, want %s", i, got, want)
		}
	}
}

// TestReopenFails checks what a Reopen does that it must not do: the session fails, and the next
// one calls OnSessionOpen.
func TestReopenFails(t *testing.T) {
	for want, reopen := range map[string]func(*engine.Session){
		"plugin bad: a hook: it was registered after OnSessionOpen; register hooks in OnSessionOpen": func(s *engine.Session) {
			s.Hooks.AddJobOrder(func(*cluster.Job, *cluster.Job) int { return 0 })
		},
		"plugin bad: AddWake: it was called after OnSessionOpen; call it in OnSessionOpen": func(s *engine.Session) { s.Hooks.AddWake(engine.WakeJobs) },
		"plugin bad: AddEvictionPurpose: it was called after OnSessionOpen; call it in OnSessionOpen": func(s *engine.Session) {
			s.Hooks.AddEvictionPurpose(engine.Preempt, "Because")
		},
	} {
		opened := 0
		bad := &reopening{policy{name: "bad", open: func(*engine.Session) { opened++ }}, func(s *engine.Session) bool { reopen(s); return true }}
		e, s := enginetest.Engine(enginetest.Fit(), bad), nodes()
		take(t, e, s, "first", engine.Options{})
		failsWith(t, e, s, engine.Options{}, want)
		if opened != 1 {
			t.Errorf("OnSessionOpen was called %d times", opened)
		}
		take(t, e, s, "third", engine.Options{})
		if opened != 2 {
			t.Errorf("OnSessionOpen was called %d times", opened)
		}
	}
}

// TestReopenPublishes checks that Reopen may publish other parameters.
func TestReopenPublishes(t *testing.T) {
	prefer, number := "b", uint64(0)
	p := &reopening{policy{name: "prices", open: func(s *engine.Session) {
		s.Hooks.AddShapeScore(nil, func(_ *cluster.Shape, n *cluster.Node) float64 {
			if n.Name == prefer {
				return 100
			}
			return 0
		})
	}}, func(s *engine.Session) bool { s.Hooks.Publish("prices", number); return true }}
	e, s := enginetest.Engine(enginetest.Fit(), p), nodes()
	if got := take(t, e, s, "first", engine.Options{}); got != "b" {
		t.Errorf("placed on %s", got)
	}
	prefer, number = "a", 1
	if got := take(t, e, s, "second", engine.Options{}); got != "a" {
		t.Errorf("placed on %s after other parameters were published", got)
	}
}

// failsWith runs a session that must fail with the error.
func failsWith(t *testing.T, e *engine.Engine, s *cluster.State, o engine.Options, want string) {
	t.Helper()
	ssn := e.Open(s, o)
	defer ssn.Close()
	if _, err := ssn.Run(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
