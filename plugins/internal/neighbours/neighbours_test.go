package neighbours

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// follower is a plugin that only counts.
type follower struct{ Counter }

func (f *follower) Name() string                    { return "follower" }
func (f *follower) OnSessionOpen(s *engine.Session) { f.Open(s) }

func app(name string) cluster.Term {
	return cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{name}}}
}

var terms = []cluster.JobTerm{
	{Selector: app("a"), Within: "rack"},
	{Selector: app("a"), Within: "rack", Anti: true},
	{Selector: app("b")},
	{Selector: app("b"), Within: "zone", Namespaces: []string{"x", "y"}},
	{Selector: cluster.Term{{Key: "app", Operator: cluster.Exists}}, Within: "rack", Anti: true},
}

// counted returns all counts of a counter for a job, by term and node.
func counted(c *Counter, s *cluster.State, j *cluster.Job) map[string]int {
	out := map[string]int{}
	for i := range terms {
		t := c.Term(j, &terms[i])
		out[fmt.Sprint(i)] = t.Total()
		for _, n := range s.Nodes() {
			if tasks, known := t.TasksIn(n); known {
				out[fmt.Sprint(i, n.Name)] = tasks
			}
		}
	}
	for _, t := range c.AntiTermsMatching(j) {
		for _, n := range s.Nodes() {
			if tasks, _ := t.TasksIn(n); tasks > 0 {
				out["against "+n.Name+" "+t.key] = tasks
			}
		}
	}
	return out
}

// After any changes, within a session or between two, the counts are those of a new
// counter.
func TestCountsAreUpToDate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		state := enginetest.State(
			enginetest.Node("n0").CPU(8, "8Gi").Label("rack", "r0").Label("zone", "z"),
			enginetest.Node("n1").CPU(8, "8Gi").Label("rack", "r0"),
			enginetest.Node("n2").CPU(8, "8Gi").Label("rack", "r1").Label("zone", "z"),
			enginetest.Node("n3").CPU(8, "8Gi"),
		)
		var jobs []*cluster.Job
		for i := range 8 {
			put := jobPut(t, fmt.Sprint(i))
			apply(t, state, put)
			jobs = append(jobs, state.Job(put.Job.ID))
		}
		f := &follower{Counter{CountAntiTerms: true}}
		e := enginetest.Engine(f)
		asker := enginetest.Job("asker").Label("app", "a").Build()
		asker.Namespace = "x"

		for range rapid.IntRange(1, 6).Draw(t, "sessions") {
			s := e.Open(state, engine.Options{})
			st := s.Begin()
			marks := []int{0}
			for range rapid.IntRange(0, 12).Draw(t, "steps") {
				task := rapid.SampledFrom(rapid.SampledFrom(jobs).Draw(t, "job").Tasks()).Draw(t, "task")
				switch rapid.IntRange(0, 4).Draw(t, "step") {
				case 0, 1:
					if task.Status == cluster.Pending {
						_ = st.Allocate(task, rapid.SampledFrom(state.Nodes()).Draw(t, "node"), nil)
					}
				case 2:
					if running := running(jobs); len(running) > 0 {
						_ = st.Evict(rapid.SampledFrom(running).Draw(t, "running"), "", "")
					}
				case 3:
					marks = append(marks, st.Checkpoint())
				case 4:
					to := rapid.SampledFrom(marks).Draw(t, "mark")
					if to <= st.Checkpoint() {
						st.Rollback(to)
						marks = slices.DeleteFunc(marks, func(m int) bool { return m > to })
					}
				}
				compare(t, f, state, asker)
			}
			st.Commit()
			if rapid.Bool().Draw(t, "closed") {
				s.Close()
			}
			between(t, state, jobs)
		}
		s := e.Open(state, engine.Options{})
		defer s.Close()
		compare(t, f, state, asker)
	})
}

// running returns the tasks that run, also on nodes that were removed.
func running(jobs []*cluster.Job) []*cluster.Task {
	var out []*cluster.Task
	for _, j := range jobs {
		for _, t := range j.Tasks() {
			if t.Runs() {
				out = append(out, t)
			}
		}
	}
	return out
}

// jobPut returns a new job, or a new spec of an existing one.
func jobPut(t *rapid.T, name string) cluster.JobPut {
	b := enginetest.Job(name).CPU(1000, "1Gi").Gang(2).Label("app", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app"))
	if k := rapid.IntRange(0, 2*len(terms)).Draw(t, "term"); k < len(terms) {
		b.Affinity(terms[k])
	}
	return cluster.JobPut{Job: *b.Namespace(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "namespace")).Build()}
}

// between changes the State while no session is open.
func between(t *rapid.T, state *cluster.State, jobs []*cluster.Job) {
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		name := fmt.Sprintf("n%d", rapid.IntRange(0, 3).Draw(t, "node"))
		switch rapid.IntRange(0, 3).Draw(t, "change") {
		case 0:
			apply(t, state, cluster.TaskGone{Task: rapid.SampledFrom(rapid.SampledFrom(jobs).Draw(t, "job").Tasks()).Draw(t, "task").Ref()})
		case 1:
			rack := rapid.SampledFrom([]string{"r0", "r1", "r2"}).Draw(t, "rack")
			if n := state.Node(name); n != nil {
				spec := *n
				spec.Labels = maps.Clone(n.Labels)
				spec.Labels["rack"] = rack
				apply(t, state, cluster.NodePut{Node: spec})
			}
		case 2:
			removeNode(t, state, name)
			if rapid.Bool().Draw(t, "replace") {
				apply(t, state, nodePut(name, "r1"))
			}
		case 3:
			apply(t, state, jobPut(t, fmt.Sprint(rapid.IntRange(0, len(jobs)-1).Draw(t, "job"))))
		}
		if len(state.Nodes()) == 0 {
			apply(t, state, nodePut("n0", "r0"))
		}
	}
}

// removeNode removes the node. The tasks on it may end with it.
func removeNode(t *rapid.T, state *cluster.State, name string) {
	n := state.Node(name)
	if n == nil {
		return
	}
	tasks := slices.Clone(n.Tasks)
	apply(t, state, cluster.NodeGone{Name: name})
	if rapid.Bool().Draw(t, "tasks end") {
		for _, task := range tasks {
			apply(t, state, cluster.TaskGone{Task: task.Ref()})
		}
	}
}

func nodePut(name, rack string) cluster.Change {
	return cluster.NodePut{Node: *enginetest.Node(name).CPU(8, "8Gi").Label("rack", rack).Build()}
}

func apply(t *rapid.T, state *cluster.State, c cluster.Change) {
	if err := state.Apply(c); err != nil {
		t.Fatal(err)
	}
}

func compare(t *rapid.T, f *follower, state *cluster.State, asker *cluster.Job) {
	fresh := &follower{Counter{CountAntiTerms: true}}
	s := enginetest.Engine(fresh).Open(state, engine.Options{})
	defer s.Close()
	want, got := counted(&fresh.Counter, state, asker), counted(&f.Counter, state, asker)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("counts (-new counter +kept counter):\n%s", diff)
	}
}

// A task on a node that was removed does not count. When it is evicted, the count of no rack
// changes, whichever node has the slot now.
func TestEvictedFromARemovedNode(t *testing.T) {
	for name, next := range map[string][]cluster.Change{
		"the slot is free":          nil,
		"another node has the slot": {cluster.NodePut{Node: *enginetest.Node("n2").CPU(8, "8Gi").Label("rack", "r0").Build()}},
		"there is no node at all":   {cluster.TaskGone{Task: cluster.TaskRef{Job: "job/other", Name: "worker-0"}}, cluster.NodeGone{Name: "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(
				enginetest.Node("n0").CPU(8, "8Gi").Label("rack", "r0"), enginetest.Node("n1").CPU(8, "8Gi").Label("rack", "r0"),
				enginetest.Job("stays").Label("app", "a").On("n0"), enginetest.Job("other").Label("app", "a").Affinity(terms[1]).On("n1"),
			)
			f := &follower{Counter{CountAntiTerms: true}}
			e, asker := enginetest.Engine(f), enginetest.Job("asker").Label("app", "a").Build()
			e.Open(state, engine.Options{}).Close()
			f.Term(asker, &terms[0])
			for _, c := range append([]cluster.Change{cluster.NodeGone{Name: "n0"}}, next...) {
				if err := state.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
			s := e.Open(state, engine.Options{})
			defer s.Close()
			want := f.Term(asker, &terms[0]).Total()
			stmt := s.Begin()
			if err := stmt.Evict(state.Job("job/stays").Tasks()[0], "", ""); err != nil {
				t.Fatal(err)
			}
			if got := f.Term(asker, &terms[0]).Total(); got != want {
				t.Errorf("%d tasks after the eviction, want %d", got, want)
			}
			stmt.Discard()
			if got := f.Term(asker, &terms[0]).Total(); got != want {
				t.Errorf("%d tasks after the eviction was undone, want %d", got, want)
			}
		})
	}
}

// A counter drops a term that is no longer used.
func TestUnusedTermsAreDropped(t *testing.T) {
	f := &follower{}
	e, state := enginetest.Engine(f), enginetest.State(enginetest.Node("n").CPU(1, "1Gi"))
	asker := enginetest.Job("asker").Build()
	var got []int
	for i := range 4 {
		s := e.Open(state, engine.Options{})
		if i == 0 {
			f.Term(asker, &terms[0])
		}
		got = append(got, len(slices.Collect(maps.Keys(f.terms))))
		s.Close()
	}
	if diff := cmp.Diff([]int{1, 1, 0, 0}, got); diff != "" {
		t.Errorf("terms kept (-want +got):\n%s", diff)
	}
}

func TestSubject(t *testing.T) {
	tests := map[string]cluster.JobTerm{
		"app in (a) within rack":     terms[0],
		"app in (b) within the node": terms[2],
		"app within rack":            terms[4],
		"a not in (x, y), b > 1, c < 2, d absent within rack": {Within: "rack", Selector: cluster.Term{
			{Key: "a", Operator: cluster.NotIn, Values: []string{"x", "y"}}, {Key: "b", Operator: cluster.Gt, Values: []string{"1"}},
			{Key: "c", Operator: cluster.Lt, Values: []string{"2"}}, {Key: "d", Operator: cluster.DoesNotExist}}},
	}
	for want, term := range tests {
		if got := subject(&term); got != want {
			t.Errorf("subject %q, want %q", got, want)
		}
	}
}
