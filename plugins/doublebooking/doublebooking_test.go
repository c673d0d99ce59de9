package doublebooking

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

const (
	second = int64(time.Second)
	start  = 1000 * second // when the tests begin
)

// seen is a report of a task on node a.
type seen struct {
	job     string
	started int64
	devices string // the indexes of its devices, as in "01"; "": not known
}

// newState returns a State with node a, which has devices, and the tasks that are seen there.
func newState(t *testing.T, devices int, edit func(*cluster.Job), list ...seen) *cluster.State {
	t.Helper()
	node := enginetest.Node("a").GPUs(devices, "A100", "80Gi")
	state := enginetest.State(node)
	uuid := func(i rune) string { return state.Node("a").Devices[i-'0'].UUID }
	for _, s := range list {
		j := enginetest.Job(s.job).Devices(max(1, len(s.devices))).Build()
		if edit != nil {
			edit(j)
		}
		report := cluster.TaskSeen{Task: cluster.TaskRef{Job: j.ID, Name: j.Alternatives[0].Tasks[0].Name}, Node: "a", Started: s.started}
		for _, i := range s.devices {
			report.Devices = append(report.Devices, cluster.Holding{Device: uuid(i), Milli: cluster.Whole})
		}
		for _, c := range []cluster.Change{cluster.JobPut{Job: *j}, report} {
			if err := state.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
	}
	return state
}

// count makes node a one that chooses the devices of tasks itself.
func count(t *testing.T, state *cluster.State) {
	t.Helper()
	n := *state.Node("a")
	n.Devices = slices.Clone(n.Devices)
	for i := range n.Devices {
		n.Devices[i].OwnSpec().ByCount = true
	}
	if err := state.Apply(cluster.NodePut{Node: n}); err != nil {
		t.Fatal(err)
	}
}

// evictions runs a session, and returns the jobs of which tasks are evicted.
func evictions(t *testing.T, e *engine.Engine, state *cluster.State, now int64) (string, engine.Outcome) {
	t.Helper()
	s := e.Open(state, engine.Options{Now: now})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			if d.Reason != DeviceBookedTwice || d.For != "" {
				t.Errorf("%+v", d)
			}
			jobs = append(jobs, strings.TrimPrefix(d.Task.Job, "job/"))
		}
	}
	slices.Sort(jobs)
	return strings.Join(jobs, " "), out
}

func newEngine(t *testing.T) *engine.Engine {
	t.Helper()
	p, err := New(enginetest.Arguments(`{"within": "10m"}`))
	if err != nil {
		t.Fatal(err)
	}
	return enginetest.Engine(enginetest.Fit(), p)
}

func TestArguments(t *testing.T) {
	for text, ok := range map[string]bool{"0s": false, "5m": true, "-1s": false, "soon": false, "": false} {
		if _, err := New(enginetest.Arguments(fmt.Sprintf(`{"within": %q}`, text))); (err == nil) != ok {
			t.Errorf("within %q: %v", text, err)
		}
	}
}

// TestSweep checks which tasks are evicted.
func TestSweep(t *testing.T) {
	foreign := func(j *cluster.Job) { j.Queue = "(foreign)" }
	tests := map[string]struct {
		devices int
		edit    func(*cluster.Job)
		seen    []seen
		want    string
		counted bool
	}{
		"a device each":                    {2, nil, []seen{{"x", start, "0"}, {"y", start + 1, "1"}}, "", false},
		"the younger":                      {2, nil, []seen{{"x", start + 5*second, "0"}, {"y", start, "0"}}, "x", false},
		"equal times":                      {2, nil, []seen{{"y", start, "0"}, {"x", start, "0"}}, "y", false},
		"three on one device":              {2, nil, []seen{{"x", start, "0"}, {"y", start + 1, "0"}, {"z", start + 2, "0"}}, "y z", false},
		"two devices, one eviction helps":  {2, nil, []seen{{"x", start, "0"}, {"y", start, "1"}, {"z", start + 1, "01"}}, "z", false},
		"two conflicts":                    {2, nil, []seen{{"v", start, "0"}, {"w", start, "1"}, {"x", start + 1, "0"}, {"y", start + 1, "1"}}, "x y", false},
		"all started long ago":             {2, nil, []seen{{"x", start - 700*second, "0"}, {"y", start - 650*second, "0"}}, "", false},
		"the starts are not known":         {2, nil, []seen{{"x", 0, "0"}, {"y", 0, "0"}}, "", false},
		"placed by others":                 {2, foreign, []seen{{"x", start, "0"}, {"y", start + 1, "0"}}, "", false},
		"more tasks than devices":          {2, nil, []seen{{"x", start, ""}, {"y", start + 2, ""}, {"z", start + 1, ""}}, "y", false},
		"as many tasks as devices":         {3, nil, []seen{{"x", start, ""}, {"y", start + 2, ""}, {"z", start + 1, ""}}, "", false},
		"a node that reports no device":    {0, nil, []seen{{"x", start, ""}, {"y", start + 2, ""}}, "", false},
		"known and unknown devices":        {2, nil, []seen{{"x", start, "01"}, {"y", start + 2, ""}}, "y", false},
		"the younger are several, by name": {1, nil, []seen{{"x", start, ""}, {"y", start, ""}, {"z", start, ""}}, "y z", false},
		"counted, with room":               {2, nil, []seen{{"x", start, "0"}, {"y", start + 1, "0"}}, "", true},
		"counted, without room":            {2, nil, []seen{{"x", start, "0"}, {"y", start + 1, "0"}, {"z", start + 2, "0"}}, "z", true},
		"counted, a device each":           {2, nil, []seen{{"x", start, "0"}, {"y", start + 1, "1"}}, "", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := newState(t, tt.devices, tt.edit, tt.seen...)
			if tt.counted {
				count(t, state)
			}
			e := newEngine(t)
			if got, _ := evictions(t, e, state, start+10*second); got != tt.want {
				t.Errorf("%q are evicted, want %q", got, tt.want)
			}
			if got, _ := evictions(t, e, state, start+11*second); got != "" {
				t.Errorf("%q are evicted later", got)
			}
		})
	}
}

// TestFollows checks that a conflict is found in the session after the report, that a task whose
// eviction was refused is evicted when it is not protected any more, and that the plugin asks for
// a session then.
func TestFollows(t *testing.T) {
	state := newState(t, 2, nil, seen{"x", start, "0"}, seen{"y", start + 1, "1"})
	e := newEngine(t)
	if got, _ := evictions(t, e, state, start+second); got != "" {
		t.Fatalf("%q are evicted", got)
	}
	y := state.Job("job/y").Tasks()[0]
	report := func(c cluster.Change) {
		t.Helper()
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	report(cluster.TaskSeen{Task: y.Ref(), Node: "a", Devices: []cluster.Holding{{Device: state.Node("a").Devices[0].UUID, Milli: cluster.Whole}}})
	if got, _ := evictions(t, e, state, start+2*second); got != "y" {
		t.Fatalf("%q are evicted, want y", got)
	}
	report(cluster.EvictionRefused{Task: y.Ref(), Attempt: y.Attempt, ProtectedUntil: start + 30*second})
	got, out := evictions(t, e, state, start+3*second)
	if got != "" || out.NextWake != start+30*second {
		t.Errorf("%q are evicted, and the next session is at %d", got, out.NextWake)
	}
	if got, _ := evictions(t, e, state, start+30*second); got != "y" {
		t.Errorf("%q are evicted, want y", got)
	}
}

// TestLostDevice checks that a node which does not report a device any more has no conflict, whether
// it is known which task held the device or not.
func TestLostDevice(t *testing.T) {
	for name, list := range map[string][]seen{
		"known":   {{"x", start, "0"}, {"y", start + 1, "1"}},
		"unknown": {{"x", start, ""}, {"y", start + 1, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			state := newState(t, 2, nil, list...)
			if err := state.Apply(cluster.NodePut{Node: *enginetest.Node("a").GPUs(1, "A100", "80Gi").Build()}); err != nil {
				t.Fatal(err)
			}
			if got, _ := evictions(t, newEngine(t), state, start+second); got != "" {
				t.Errorf("%q are evicted", got)
			}
		})
	}
}

// TestAmount checks how many devices a task counts for of which State does not know the devices.
func TestAmount(t *testing.T) {
	state := newState(t, 4, nil)
	n := state.Node("a")
	for name, tt := range map[string]struct {
		need cluster.Need
		want cluster.Milli
	}{
		"whole":         {cluster.Need{Devices: 3}, 3000},
		"shares":        {cluster.Need{Devices: 2, Share: 500}, 1000},
		"a whole node":  {cluster.Need{WholeNode: true}, 4000},
		"memory":        {cluster.Need{Devices: 1, Memory: 1 << 30}, 0},
		"another sort":  {cluster.Need{Devices: 1, Partition: "1g.10gb"}, 0},
		"another maker": {cluster.Need{Devices: 1, Resource: "amd.com/gpu"}, 0},
	} {
		task := &cluster.Task{Shape: &cluster.Shape{Need: tt.need}}
		if got := (Sort{n.Devices[0].Resource, n.Devices[0].Profile}).amount(n, task); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestConflicts checks what is reported about a conflict.
func TestConflicts(t *testing.T) {
	state := newState(t, 2, nil, seen{"x", start + 1, "0"}, seen{"y", start, "0"})
	n := state.Node("a")
	var got []string
	for _, c := range (&Finder{}).Conflicts(n) {
		got = append(got, fmt.Sprintf("%s %s then %s", c.Device, c.Tasks[0].Job.ID, c.Youngest().Job.ID))
	}
	if d := cmp.Diff([]string{n.Devices[0].UUID + " job/y then job/x"}, got); d != "" {
		t.Errorf("conflicts (-want +got):\n%s", d)
	}
}

// TestExactArgument checks that the argument makes devices exact that are counted otherwise.
func TestExactArgument(t *testing.T) {
	p, err := New(enginetest.Arguments(`{"exact": true}`))
	if err != nil {
		t.Fatal(err)
	}
	state := newState(t, 2, nil, seen{"x", start, "0"}, seen{"y", start + 1, "0"})
	count(t, state)
	if got, _ := evictions(t, enginetest.Engine(enginetest.Fit(), p), state, start+second); got != "y" {
		t.Errorf("%q are evicted, want y", got)
	}
}

// TestSorts checks that devices of each sort are counted alone: a node with two whole devices and
// two slices has room for two tasks of each sort.
func TestSorts(t *testing.T) {
	state := newState(t, 4, nil)
	n := *state.Node("a")
	n.Devices = slices.Clone(n.Devices)
	for i := range n.Devices {
		n.Devices[i].OwnSpec().ByCount = true
		if i > 1 {
			n.Devices[i].OwnSpec().Profile = "1g.10gb"
		}
	}
	report := func(c cluster.Change) {
		t.Helper()
		if err := state.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	report(cluster.NodePut{Node: n})
	e, started := newEngine(t), start
	add := func(name, profile string) {
		t.Helper()
		j := enginetest.Job(name).Devices(1).Build()
		j.Alternatives[0].Tasks[0].Shape.Need.Partition = profile
		report(cluster.JobPut{Job: *j})
		started++
		report(cluster.TaskSeen{Task: cluster.TaskRef{Job: j.ID, Name: j.Alternatives[0].Tasks[0].Name}, Node: "a", Started: started})
	}
	for _, step := range []struct{ job, profile, want string }{
		{"v", "", ""}, {"w", "1g.10gb", ""}, {"x", "1g.10gb", ""}, {"y", "1g.10gb", "y"}, {"z", "", ""},
	} {
		add(step.job, step.profile)
		if got, _ := evictions(t, e, state, start+second); got != step.want {
			t.Errorf("after job %s: %q are evicted, want %q", step.job, got, step.want)
		}
	}
}
