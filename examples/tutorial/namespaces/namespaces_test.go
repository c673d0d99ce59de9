package namespaces

import (
	"maps"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// open starts a session with all plugins that ship with Berth, and the tracker.
func open(t *testing.T, state *cluster.State, arguments string) (*engine.Session, *tracker) {
	t.Helper()
	p, err := Builder(func(map[string]int) {})(enginetest.Arguments(arguments))
	if err != nil {
		t.Fatal(err)
	}
	registry := standard.Registry()
	if err := registry.RegisterPluginBuilder(Name, func(engine.Arguments) (engine.Plugin, error) { return p, nil }); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(registry, append(standard.Profile(), engine.PluginConfig{Name: Name}))
	if err != nil {
		t.Fatal(err)
	}
	return e.Open(state, engine.Options{Search: engine.Twin}), p.(*tracker)
}

func node(name string, gpus int) enginetest.Part {
	return enginetest.Node(name).CPU(64, "256Gi").GPUs(gpus, "L4", "24Gi")
}

func TestCountsFollowTheStatement(t *testing.T) {
	state := enginetest.State(node("a", 2), node("b", 2),
		enginetest.Job("old").Namespace("research").Devices(1).Preemptible().On("a"),
		enginetest.Job("pair").Namespace("research").Gang(2).Devices(1),
		enginetest.Job("web").Namespace("web").Devices(1),
		enginetest.Job("half").Namespace("web").Gang(3).Devices(1),
	)
	session, p := open(t, state, `{}`)
	defer session.Close()
	stmt := session.Begin()
	begin := stmt.Checkpoint()
	old := state.Job("job/old").Tasks()[0]

	expect := func(step string, want map[string]int) {
		t.Helper()
		got := maps.Clone(p.tasks)
		maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", step, got, want)
		}
	}
	place := func(job string) *engine.Refusal { return session.Place(stmt, state.Job(job)) }

	expect("running tasks are counted", map[string]int{"research": 1})

	if r := place("job/pair"); r != nil {
		t.Fatalf("refused: %s", r.Reason)
	}
	expect("a gang is placed", map[string]int{"research": 3})

	// One device is free. The first task of the gang takes it, and no node has a device for the second.
	if r := place("job/half"); r == nil || r.Attempts[0].Placed != 1 {
		t.Fatalf("want a refusal after the first task: %+v", r)
	}
	expect("a gang fails halfway", map[string]int{"research": 3})

	mark := stmt.Checkpoint()
	if err := stmt.Evict(old, "job/half", "Test"); err != nil {
		t.Fatal(err)
	}
	expect("a task is evicted", map[string]int{"research": 2})

	stmt.Rollback(mark)
	expect("the eviction is rolled back", map[string]int{"research": 3})

	if r := place("job/web"); r != nil {
		t.Fatalf("refused: %s", r.Reason)
	}
	expect("another namespace has its own count", map[string]int{"research": 3, "web": 1})

	stmt.Rollback(begin)
	expect("everything is rolled back", map[string]int{"research": 1})
}

func TestCap(t *testing.T) {
	full := engine.Rejection{Plugin: Name, Reason: NamespaceFull, Cure: engine.Wait | engine.Evict, Subject: "research", Want: count(1), Have: count(0)}
	never := engine.Rejection{Plugin: Name, Reason: NamespaceCapTooSmall, Cure: engine.Relax, Subject: "research", Want: count(3), Have: count(2)}
	job := func() *enginetest.JobBuilder { return enginetest.Job("j").Namespace("research").Devices(1) }

	tests := map[string]struct {
		running   int
		arguments string
		job       *enginetest.JobBuilder
		placed    int
		want      *engine.Rejection
		permanent bool
	}{
		"no cap":                            {running: 2, arguments: `{}`, job: job(), placed: 1},
		"below the cap":                     {running: 1, arguments: `{"maxTasks": 2}`, job: job(), placed: 1},
		"at the cap":                        {running: 2, arguments: `{"maxTasks": 2}`, job: job(), want: &full},
		"a gang that would exceed it":       {running: 1, arguments: `{"maxTasks": 2}`, job: job().Gang(2), want: &full},
		"a gang that alone exceeds it":      {running: 0, arguments: `{"maxTasks": 2}`, job: job().Gang(3), want: &never, permanent: true},
		"surplus is cut off at the cap":     {running: 0, arguments: `{"maxTasks": 2}`, job: job().Gang(3).Min(1), placed: 2, want: &full},
		"another namespace is not affected": {running: 2, arguments: `{"maxTasks": 2}`, job: job().Namespace("web").Gang(2), placed: 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			parts := []enginetest.Part{node("a", 8), tt.job}
			if tt.running > 0 {
				old := enginetest.Job("old").Namespace("research").Devices(1).Gang(tt.running)
				parts = append(parts, old.On([]string{"a", "a"}[:tt.running]...))
			}
			state := enginetest.State(parts...)
			session, _ := open(t, state, tt.arguments)
			defer session.Close()
			out, err := session.Run()
			if err != nil {
				t.Fatal(err)
			}
			if got := state.Job("job/j").Placed(); got != tt.placed {
				t.Errorf("%d tasks are placed, want %d", got, tt.placed)
			}
			switch {
			case len(out.Refusals) == 0 && tt.want != nil:
				t.Errorf("nothing was refused, want %s", tt.want.Reason)
			case len(out.Refusals) > 0 && tt.want == nil:
				t.Errorf("refused: %s", out.Refusals[0].Reason)
			case len(out.Refusals) > 0:
				r := out.Refusals[0]
				if got := *r.Attempts[0].Before; got != *tt.want || r.Permanent != tt.permanent {
					t.Errorf("got %+v, permanent %v; want %+v", got, r.Permanent, *tt.want)
				}
			}
		})
	}
}

// A session counts the tasks in State when it opens, and reports when it closes.
func TestReport(t *testing.T) {
	state := enginetest.State(node("a", 8),
		enginetest.Job("train").Namespace("research").Gang(2).Devices(1),
		enginetest.Job("web").Namespace("web").Devices(1),
	)
	var reports []map[string]int
	p, err := Builder(func(tasks map[string]int) { reports = append(reports, tasks) })(enginetest.Arguments(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.Engine(p)
	session := func() {
		s := e.Open(state, engine.Options{})
		defer s.Close()
		if _, err := s.Run(); err != nil {
			t.Fatal(err)
		}
	}
	session()
	if err := state.Apply(cluster.JobGone{Job: "job/train"}); err != nil {
		t.Fatal(err)
	}
	session()
	want := []map[string]int{{"research": 2, "web": 1}, {"web": 1}}
	if !slices.EqualFunc(reports, want, maps.Equal) {
		t.Errorf("got %v, want %v", reports, want)
	}
}

func TestArgumentsAreStrict(t *testing.T) {
	tests := map[string]string{
		`{"maxTasks": 3}`:   "",
		`{"maxTasks": -1}`:  "maxTasks -1 is below 0; leave it out for no cap",
		`{"maxTask": 3}`:    `json: unknown field "maxTask"`,
		`{"maxTasks": "3"}`: "json: cannot unmarshal string into Go struct field arguments.maxTasks of type int",
	}
	for arguments, want := range tests {
		got := ""
		if _, err := Builder(nil)(enginetest.Arguments(arguments)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
	}
}
