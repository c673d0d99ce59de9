package backfill

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

func TestArguments(t *testing.T) {
	for text, ok := range map[string]bool{
		`{}`: true, `{"after": "2h", "perQueue": 3, "share": 1, "review": "1m"}`: true, `{"share": 0}`: true, `{"later": "1m", "idle": 0}`: true,
		`{"after": "0s"}`: false, `{"after": "soon"}`: false, `{"review": "-1m"}`: false, `{"perQueue": 0}`: false, `{"share": 1.1}`: false, `{"share": -0.1}`: false, `{"later": "0s"}`: false, `{"idle": -0.1}`: false, `{"idle": 1.1}`: false, `{"before": "1h"}`: false,
	} {
		if _, err := New(enginetest.Arguments(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

const now = int64(10 * time.Hour)

// hours returns the time that many hours before now.
func hours(n int) int64 { return now - int64(n)*int64(time.Hour) }

// earmarks runs a session with the plugin and returns the nodes that are earmarked, by job.
func earmarks(t *testing.T, arguments string, parts ...enginetest.Part) (map[string][]string, *cluster.State) {
	t.Helper()
	p, err := New(enginetest.Arguments(arguments))
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(parts...)
	s := enginetest.Engine(enginetest.Fit(), p).Open(state, engine.Options{Now: now, Search: engine.Twin})
	defer s.Close()
	if _, err := s.Run(); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, j := range cluster.EarmarksOf(state.View()).Jobs() {
		for _, r := range j.Earmarked.Rooms {
			out[j.ID] = append(out[j.ID], r.Node)
		}
	}
	return out, state
}

func node(name string, devices int) *enginetest.NodeBuilder {
	return enginetest.Node(name).GPUs(devices, "A100", "80Gi")
}

func runs(name, on string, devices int, started int64) *enginetest.JobBuilder {
	return enginetest.Job(name).Devices(devices).Created(1).On(on).Started(started)
}

func TestChoiceOfNodes(t *testing.T) {
	large := func() *enginetest.JobBuilder { return enginetest.Job("large").Devices(4).Created(hours(1)) }
	tests := map[string]struct {
		arguments string
		parts     []enginetest.Part
		want      map[string][]string
	}{
		"the fewest tasks must end": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)), runs("a2", "a", 1, hours(2)), runs("b1", "b", 2, hours(2)), large(),
		}, map[string][]string{"job/large": {"b"}}},
		"known run times count before others": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)).RunFor(int64(3 * time.Hour)), runs("a2", "a", 1, hours(2)).RunFor(int64(9 * time.Hour)), runs("b1", "b", 2, hours(2)), large(),
		}, map[string][]string{"job/large": {"a"}}},
		"the soonest end": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)).RunFor(int64(9 * time.Hour)), runs("b1", "b", 1, hours(2)).RunFor(int64(5 * time.Hour)), large(),
		}, map[string][]string{"job/large": {"b"}}},
		"one task holds the node": {`{}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 4, hours(2)), large(),
		}, map[string][]string{"job/large": {"a"}}},
		"a node with idle devices before one that one task holds": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 4, hours(2)), runs("b1", "b", 1, hours(4)), large(),
		}, map[string][]string{"job/large": {"b"}}},
		"a node that one task holds and leaves soon": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 4, hours(2)).RunFor(int64(3 * time.Hour)), runs("b1", "b", 1, hours(4)), large(),
		}, map[string][]string{"job/large": {"a"}}},
		"idle devices are kept for one job": {`{"share": 1}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), large(), enginetest.Job("second").Devices(4).Created(hours(1) + 1),
		}, map[string][]string{"job/large": {"a"}}},
		"a further job gets a node that one task holds": {`{"share": 1}`, []enginetest.Part{
			node("a", 4), node("b", 4), node("c", 4), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), runs("c1", "c", 4, hours(3)), large(), enginetest.Job("second").Devices(4).Created(hours(1) + 1),
		}, map[string][]string{"job/large": {"a"}, "job/second": {"c"}}},
		"half of the largest node": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 2), runs("a1", "a", 1, hours(7)), runs("a2", "a", 2, hours(7)), runs("b1", "b", 1, hours(7)), enginetest.Job("small").Devices(2).Created(hours(5)),
		}, map[string][]string{}},
		"half of the largest node, for long": {`{}`, []enginetest.Part{
			node("a", 4), node("b", 2), runs("a1", "a", 1, hours(7)), runs("a2", "a", 2, hours(7)), runs("b1", "b", 1, hours(7)), enginetest.Job("small").Devices(2).Created(hours(6)),
		}, map[string][]string{"job/small": {"a"}}},
		"too young": {`{"after": "61m"}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 1, hours(2)), large(),
		}, map[string][]string{}},
		"of unknown age": {`{}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 1, hours(2)), large().Created(0),
		}, map[string][]string{}},
		"no node is large enough": {`{}`, []enginetest.Part{
			node("a", 3), runs("a1", "a", 1, hours(2)), large(),
		}, map[string][]string{}},
		"a gang on two nodes": {`{"share": 1}`, []enginetest.Part{
			node("a", 4), node("b", 4), node("c", 4), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), runs("b2", "b", 1, hours(2)), runs("c1", "c", 1, hours(3)), large().Gang(2),
		}, map[string][]string{"job/large": {"a", "c"}}},
		"a gang in one domain": {`{"share": 1}`, []enginetest.Part{
			node("a", 4).Label("rack", "1"), node("b", 4).Label("rack", "2"), node("c", 4).Label("rack", "2"), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), runs("b2", "b", 1, hours(2)), runs("c1", "c", 1, hours(3)),
			large().Gang(2).Topology(cluster.Topology{Required: "rack"}),
		}, map[string][]string{"job/large": {"b", "c"}}},
		"the share allows no gang": {`{"share": 0.5}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), large().Gang(2),
		}, map[string][]string{}},
		"one node is always allowed": {`{"share": 0}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 1, hours(2)), large(),
		}, map[string][]string{"job/large": {"a"}}},
		"one per queue": {`{"share": 1, "perQueue": 1, "idle": 1}`, []enginetest.Part{
			enginetest.Queue("q"), node("a", 4), node("b", 4), node("c", 4), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), runs("c1", "c", 1, hours(2)),
			large(), enginetest.Job("second").Devices(4).Created(hours(1) + 1), enginetest.Job("third").Queue("q").Devices(4).Created(hours(1)),
		}, map[string][]string{"job/large": {"a"}, "job/third": {"b"}}},
		"two per queue": {`{"share": 1, "perQueue": 2, "idle": 1}`, []enginetest.Part{
			node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)), runs("b1", "b", 1, hours(2)), large(), enginetest.Job("second").Devices(4).Created(hours(1) + 1),
		}, map[string][]string{"job/large": {"a"}, "job/second": {"b"}}},
		"the one that lacks more": {`{"perQueue": 1, "later": "1m"}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 1, hours(2)), runs("a2", "a", 1, hours(2)), runs("a3", "a", 2, hours(2)), large(), enginetest.Job("small").Devices(2).Created(hours(2) + 1),
		}, map[string][]string{"job/large": {"a"}}},
		"the one that lacks less, and has waited for more than twice as long": {`{"perQueue": 1, "later": "1m"}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 1, hours(2)), runs("a2", "a", 1, hours(2)), runs("a3", "a", 2, hours(2)), large(), enginetest.Job("small").Devices(2).Created(hours(3)),
		}, map[string][]string{"job/small": {"a"}}},
		"the one of a higher priority": {`{"perQueue": 1, "later": "1m"}`, []enginetest.Part{
			node("a", 4), runs("a1", "a", 1, hours(2)), runs("a2", "a", 1, hours(2)), runs("a3", "a", 2, hours(2)), large(), enginetest.Job("small").Devices(2).Priority(1).Created(hours(1)),
		}, map[string][]string{"job/small": {"a"}}},
		"without devices": {`{}`, []enginetest.Part{
			enginetest.Node("a").CPU(4, "8Gi"), enginetest.Job("cpu").CPU(3000, "1Gi").Created(1).On("a"), enginetest.Job("large").CPU(4000, "1Gi").Created(hours(1)),
		}, map[string][]string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, state := earmarks(t, tt.arguments, tt.parts...)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if err := state.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The start is known if all tasks that must end have known run times.
func TestStart(t *testing.T) {
	for runFor, want := range map[time.Duration]int64{5 * time.Hour: now + int64(3*time.Hour), 0: 0} {
		_, state := earmarks(t, `{}`, node("a", 4), runs("a1", "a", 1, hours(2)).RunFor(int64(runFor)), enginetest.Job("large").Devices(4).Created(hours(1)))
		if got := state.Job("job/large").Earmarked.Start; got != want {
			t.Errorf("run time %s: start %d, want %d", runFor, got, want)
		}
	}
}

// Beside the earmark of a job that requests three of four devices and most cores, other tasks
// are placed only in what it leaves.
func TestWhatAnEarmarkLeaves(t *testing.T) {
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		fits bool
	}{
		"a device":                      {enginetest.Job("x").Devices(1), false},
		"a part of a device":            {enginetest.Job("x").Share(1, 250), false},
		"cores beside it":               {enginetest.Job("x").CPU(2000, "1Gi"), true},
		"more cores than are left":      {enginetest.Job("x").CPU(9000, "1Gi"), false},
		"a short job, which is in time": {enginetest.Job("x").Devices(1).RunFor(int64(2 * time.Hour)), true},
		"a job that is late":            {enginetest.Job("x").Devices(1).RunFor(int64(4 * time.Hour)), false},
		"a higher priority":             {enginetest.Job("x").Devices(1).Priority(1), true},
		"a stronger tier":               {enginetest.Job("x").Devices(1).Queue("strong"), true},
		"another queue":                 {enginetest.Job("x").Devices(1).Queue("equal"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, state := earmarks(t, `{}`, enginetest.Queue("strong").Tier(cluster.TierGuaranteed), enginetest.Queue("equal"),
				node("a", 4).CPU(16, "64Gi"), runs("a1", "a", 2, hours(2)).RunFor(int64(5*time.Hour)), enginetest.Job("large").Devices(3).CPU(8000, "1Gi").Created(hours(1)))
			if state.Job("job/large").Earmarked == nil {
				t.Fatal("no earmark")
			}
			job := tt.job.Created(now).Build()
			if err := state.Apply(cluster.JobPut{Job: *job}); err != nil {
				t.Fatal(err)
			}
			p, err := New(enginetest.Arguments(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			s := enginetest.Engine(enginetest.Fit(), prioritized{}, p).Open(state, engine.Options{Now: now, Search: engine.Twin, Patient: true})
			defer s.Close()
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			if got := state.Job("job/x").HasMinimum(); got != tt.fits {
				t.Errorf("placed: %v, want %v; %+v", got, tt.fits, out.Refusals)
			}
			if state.Job("job/large").Earmarked == nil {
				t.Error("the earmark is lost")
			}
		})
	}
}

// prioritized orders jobs by priority.
type prioritized struct{}

func (prioritized) Name() string { return "Prioritized" }
func (prioritized) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddJobPriority(func(l, r *cluster.Job) int { return int(r.Priority) - int(l.Priority) })
}

// An earmark ends with what it was made for, and the job gets another one if there is a node for it.
func TestEarmarkEnds(t *testing.T) {
	spec := func(b *enginetest.NodeBuilder, change func(*cluster.Node)) cluster.Change {
		n := b.Build()
		change(n)
		return cluster.NodePut{Node: *n}
	}
	large := func() *enginetest.JobBuilder { return enginetest.Job("large").Devices(4).Created(hours(1)) }
	tests := map[string]struct {
		change cluster.Change
		want   map[string][]string
	}{
		"nothing happens":           {cluster.SessionOpened{Now: now}, map[string][]string{"job/large": {"a"}}},
		"the node is gone":          {cluster.NodeGone{Name: "a"}, map[string][]string{"job/large": {"b"}}},
		"the node is cordoned":      {spec(node("a", 4), func(n *cluster.Node) { n.Unschedulable = true }), map[string][]string{"job/large": {"b"}}},
		"the node shrinks":          {spec(node("a", 3), func(*cluster.Node) {}), map[string][]string{"job/large": {"b"}}},
		"the job requests less":     {cluster.JobPut{Job: *large().Devices(3).Build()}, map[string][]string{}},
		"the job is gone":           {cluster.JobGone{Job: "job/large"}, map[string][]string{}},
		"another scheduler uses it": {cluster.JobPut{Job: *enginetest.Job("foreign").Devices(3).Created(now).RunFor(int64(20 * time.Hour)).Build()}, map[string][]string{"job/large": {"b"}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, state := earmarks(t, `{"share": 1}`, node("a", 4), node("b", 4), runs("a1", "a", 1, hours(2)).RunFor(int64(3*time.Hour)), runs("b1", "b", 3, hours(2)).RunFor(int64(9*time.Hour)), large())
			if e := state.Job("job/large").Earmarked; e == nil || e.Rooms[0].Node != "a" {
				t.Fatalf("the earmark is %+v", e)
			}
			apply := func(c cluster.Change) {
				t.Helper()
				if err := state.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			apply(tt.change)
			if put, is := tt.change.(cluster.JobPut); is && put.Job.ID == "job/foreign" {
				ref := state.Job("job/foreign").Tasks()[0].Ref()
				apply(cluster.TaskSeen{Task: ref, Node: "a", Started: now})
			}
			p, err := New(enginetest.Arguments(`{"share": 1}`))
			if err != nil {
				t.Fatal(err)
			}
			s := enginetest.Engine(enginetest.Fit(), p).Open(state, engine.Options{Now: now, Search: engine.Twin})
			defer s.Close()
			if _, err := s.Run(); err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for _, j := range cluster.EarmarksOf(state.View()).Jobs() {
				for _, r := range j.Earmarked.Rooms {
					got[j.ID] = append(got[j.ID], r.Node)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
			if err := state.Audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Without the plugin, a session withdraws the earmarks that it made.
func TestWithoutThePlugin(t *testing.T) {
	_, state := earmarks(t, `{}`, node("a", 4), runs("a1", "a", 1, hours(2)), enginetest.Job("large").Devices(4).Created(hours(1)))
	s := enginetest.Engine(enginetest.Fit()).Open(state, engine.Options{Now: now})
	defer s.Close()
	if _, err := s.Run(); err != nil {
		t.Fatal(err)
	}
	if state.Job("job/large").Earmarked != nil {
		t.Error("the earmark is kept")
	}
}
