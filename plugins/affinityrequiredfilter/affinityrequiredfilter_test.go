package affinityrequiredfilter

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func in(key string, values ...string) cluster.Requirement {
	return cluster.Requirement{Key: key, Operator: cluster.In, Values: values}
}

func TestNodeTerms(t *testing.T) {
	node := enginetest.Node("n").Label("rack", "r1").Label("gpu", "h100").Build()
	tests := map[string]struct {
		required []cluster.Term
		want     *engine.Rejection
	}{
		"one term":                         {[]cluster.Term{{in("rack", "r1", "r2")}}, nil},
		"one of two terms matches":         {[]cluster.Term{{in("rack", "r9")}, {in("gpu", "h100")}}, nil},
		"one condition of a term fails":    {[]cluster.Term{{in("rack", "r1"), in("gpu", "a100")}}, &engine.Rejection{Reason: AffinityMismatch, Cure: cureOtherNode, Precedence: engine.OtherKind, Subject: "gpu"}},
		"no term matches":                  {[]cluster.Term{{in("rack", "r9")}, {in("gpu", "a100")}}, &engine.Rejection{Reason: AffinityMismatch, Cure: cureOtherNode, Precedence: engine.OtherKind, Subject: "rack"}},
		"NotIn with the value of the node": {[]cluster.Term{{{Key: "rack", Operator: cluster.NotIn, Values: []string{"r1"}}}}, &engine.Rejection{Reason: AffinityMismatch, Cure: cureOtherNode, Precedence: engine.OtherKind, Subject: "rack"}},
		"an empty term":                    {[]cluster.Term{{}}, &engine.Rejection{Reason: AffinityMismatch, Cure: cureOtherNode, Precedence: engine.OtherKind}},
		"the label is missing":             {[]cluster.Term{{in("zone", "z")}}, &engine.Rejection{Reason: AffinityMismatch, Cure: cureOtherNode, Precedence: engine.OtherKind, Subject: "zone"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			shape := &cluster.Shape{Required: tc.required}
			if diff := cmp.Diff(tc.want, admit(shape, node)); diff != "" || !matters(shape) {
				t.Errorf("matters %v, admit (-want +got):\n%s", matters(shape), diff)
			}
		})
	}
	if matters(&cluster.Shape{}) {
		t.Error("the filter applies to a shape without terms")
	}
}

// app returns a job with a label app, in a namespace.
func app(name, app string) *enginetest.JobBuilder {
	return enginetest.Job(name).CPU(1000, "1Gi").Label("app", app)
}

func near(app, within string) cluster.JobTerm {
	return cluster.JobTerm{Selector: cluster.Term{in("app", app)}, Within: within}
}

func away(app, within string) cluster.JobTerm {
	return cluster.JobTerm{Selector: cluster.Term{in("app", app)}, Within: within, Anti: true}
}

// open starts a session on two racks of two nodes each and one node that is in no rack.
func open(t *testing.T, jobs ...*enginetest.JobBuilder) (*plugin, *engine.Session) {
	t.Helper()
	parts := []enginetest.Part{
		enginetest.Node("a1").CPU(2, "8Gi").Label("rack", "a"), enginetest.Node("a2").CPU(2, "8Gi").Label("rack", "a"),
		enginetest.Node("b1").CPU(2, "8Gi").Label("rack", "b"), enginetest.Node("b2").CPU(2, "8Gi").Label("rack", "b"),
		enginetest.Node("lone").CPU(2, "8Gi"),
	}
	for _, j := range jobs {
		parts = append(parts, j)
	}
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.Engine(p, room{}).Open(enginetest.State(parts...), engine.Options{Search: engine.Twin})
	t.Cleanup(func() { s.Close() })
	return p.(*plugin), s
}

// room rejects full nodes, as NodeResourcesFit does.
type room struct{}

func (room) Name() string { return "room" }
func (room) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeFilter(nil, func(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
		if n.Ledger(cluster.CPU).Free() >= s.Resources.Of(cluster.CPU) {
			return nil
		}
		return &engine.Rejection{Reason: "Full", Cure: engine.Wait | engine.Evict}
	})
}

func TestJobTerms(t *testing.T) {
	noted := func(subject string) *engine.Rejection {
		return &engine.Rejection{Reason: JobAffinityUnmet, Cure: engine.Wait, Subject: subject, Want: count(1), Have: count(0)}
	}
	kept := func(subject string, tasks int) *engine.Rejection {
		return &engine.Rejection{Reason: JobAntiAffinity, Cure: cureWaitOrEvict, Subject: subject, Want: count(0), Have: count(tasks)}
	}
	lost := &engine.Rejection{Reason: DomainUnknown, Cure: cureOtherNode, Precedence: engine.OtherKind, Subject: "rack"}
	webInRack, webOnNode := "app in (web) within rack", "app in (web) within the node"
	preferred := near("web", "rack")
	preferred.Weight = 5
	elsewhere := near("web", "rack")
	elsewhere.Namespaces = []string{"other"}

	type verdicts = map[string]*engine.Rejection
	all := func(r *engine.Rejection) verdicts { return verdicts{"a1": r, "a2": r, "b1": r, "b2": r, "lone": r} }
	tests := map[string]struct {
		job    *enginetest.JobBuilder
		placed []*enginetest.JobBuilder
		want   verdicts // nil: the filter does not apply
	}{
		"no terms":                              {app("j", "db"), []*enginetest.JobBuilder{app("w", "web").On("a1")}, nil},
		"only preferred":                        {app("j", "db").Affinity(preferred), nil, nil},
		"near, within the rack":                 {app("j", "db").Affinity(near("web", "rack")), []*enginetest.JobBuilder{app("w", "web").On("a1")}, verdicts{"a1": nil, "a2": nil, "b1": noted(webInRack), "b2": noted(webInRack), "lone": lost}},
		"near, on the node":                     {app("j", "db").Affinity(near("web", "")), []*enginetest.JobBuilder{app("w", "web").On("a1")}, verdicts{"a1": nil, "a2": noted(webOnNode), "b1": noted(webOnNode), "b2": noted(webOnNode), "lone": noted(webOnNode)}},
		"near no job":                           {app("j", "db").Affinity(near("web", "")), nil, all(noted(webOnNode))},
		"near jobs like itself, none is placed": {app("j", "web").Affinity(near("web", "rack")), nil, verdicts{"a1": nil, "a2": nil, "b1": nil, "b2": nil, "lone": lost}},
		"near jobs like itself, one is placed":  {app("j", "web").Affinity(near("web", "rack")), []*enginetest.JobBuilder{app("w", "web").On("b1")}, verdicts{"a1": noted(webInRack), "a2": noted(webInRack), "b1": nil, "b2": nil, "lone": lost}},
		"near jobs like itself, one is on a node without a domain": {app("j", "web").Affinity(near("web", "rack")), []*enginetest.JobBuilder{app("w", "web").On("lone")}, verdicts{"a1": nil, "a2": nil, "b1": nil, "b2": nil, "lone": lost}},
		"another namespace":                             {app("j", "web").Affinity(elsewhere), []*enginetest.JobBuilder{app("w", "web").On("a1")}, verdicts{"a1": noted(webInRack), "a2": noted(webInRack), "b1": noted(webInRack), "b2": noted(webInRack), "lone": lost}},
		"away, within the rack":                         {app("j", "db").Affinity(away("web", "rack")), []*enginetest.JobBuilder{app("w", "web").Gang(2).On("a1", "a2")}, verdicts{"a1": kept(webInRack, 2), "a2": kept(webInRack, 2), "b1": nil, "b2": nil, "lone": nil}},
		"away from no job":                              {app("j", "db").Affinity(away("web", "rack")), nil, all(nil)},
		"anti-term of a placed job":                     {app("j", "web"), []*enginetest.JobBuilder{app("w", "db").Affinity(away("web", "rack")).On("b2")}, verdicts{"a1": nil, "a2": nil, "b1": kept(webInRack, 1), "b2": kept(webInRack, 1), "lone": nil}},
		"anti-term of a job on a node without a domain": {app("j", "web"), []*enginetest.JobBuilder{app("w", "db").Affinity(away("web", "rack")).On("lone")}, nil},
		"anti-term of a placed job that does not match": {app("j", "cache"), []*enginetest.JobBuilder{app("w", "db").Affinity(away("web", "rack")).On("b2")}, nil},
		"near and away":                                 {app("j", "db").Affinity(near("web", "rack")).Affinity(away("web", "")), []*enginetest.JobBuilder{app("w", "web").On("a1")}, verdicts{"a1": kept(webOnNode, 1), "a2": nil, "b1": noted(webInRack), "b2": noted(webInRack), "lone": lost}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, s := open(t, append(tc.placed, tc.job)...)
			task := s.View.Job("job/j").Tasks()[0]
			var got verdicts
			if p.matters(task, task.Job) {
				got = verdicts{}
				for _, n := range s.View.Nodes() {
					got[n.Name] = p.admit(task, task.Job, n)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// The counts of terms are updated while tasks are placed in a session.
func TestSession(t *testing.T) {
	type placed = map[string]string
	tests := map[string]struct {
		jobs    []*enginetest.JobBuilder
		want    placed
		refused map[string]engine.Reason
	}{
		"a gang with one task in each rack": {[]*enginetest.JobBuilder{app("j", "web").Gang(2).Affinity(away("web", "rack"))},
			placed{"job/j/worker-0": "a1", "job/j/worker-1": "b1"}, nil},
		"a gang in one rack": {[]*enginetest.JobBuilder{app("j", "web").Gang(3).Affinity(near("web", "rack"))},
			placed{"job/j/worker-0": "a1", "job/j/worker-1": "a1", "job/j/worker-2": "a2"}, nil},
		"a gang too large for one rack reserves nothing": {[]*enginetest.JobBuilder{
			app("j", "web").Gang(5).Affinity(near("web", "rack")), app("k", "db").Affinity(away("web", "rack"))},
			placed{"job/k/worker-0": "a1"}, map[string]engine.Reason{"job/j": "Full"}},
		"the second job is placed in another rack": {[]*enginetest.JobBuilder{app("j", "db").Affinity(away("web", "rack")), app("k", "web")},
			placed{"job/j/worker-0": "a1", "job/k/worker-0": "b1"}, nil},
		"near a job that is not placed": {[]*enginetest.JobBuilder{app("k", "db").Affinity(near("web", ""))},
			placed{}, map[string]engine.Reason{"job/k": JobAffinityUnmet}},
		"near a job that is placed in the same session": {[]*enginetest.JobBuilder{app("j", "web"), app("k", "db").Affinity(near("web", ""))},
			placed{"job/j/worker-0": "a1", "job/k/worker-0": "a1"}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, s := open(t, tc.jobs...)
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			got, refused := placed{}, map[string]engine.Reason(nil)
			for _, d := range out.Decisions {
				got[d.Task.ID()] = d.Node
			}
			for _, r := range out.Refusals {
				if refused == nil {
					refused = map[string]engine.Reason{}
				}
				refused[r.Job] = r.Reason
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("placed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.refused, refused); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"hard": true}`)); err == nil {
		t.Error("New takes arguments that it does not have")
	}
}

// TestAbsentNode: a task is evicted from a node that is absent in a State without other nodes.
func TestAbsentNode(t *testing.T) {
	state := enginetest.State(app("a", "web").Preemptible())
	task := state.Job("job/a").Tasks()[0]
	if err := state.Apply(cluster.TaskSeen{Task: task.Ref(), Node: "ghost"}); err != nil {
		t.Fatal(err)
	}
	st := enginetest.Engine(enginetest.Fit(), &plugin{}).Open(state, engine.Options{}).Begin()
	if err := st.Evict(task, "", "Mine"); err != nil || task.Status != cluster.Releasing {
		t.Errorf("%v: the task is %s", err, task.Status)
	}
	st.Discard()
}
