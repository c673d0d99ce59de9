package affinityscorer

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

func term(key, value string) cluster.Term {
	return cluster.Term{{Key: key, Operator: cluster.In, Values: []string{value}}}
}

func TestNodePreferences(t *testing.T) {
	node := enginetest.Node("n").Label("rack", "r1").Label("gpu", "h100").Build()
	yes, no := term("rack", "r1"), term("rack", "r2")
	tests := map[string]struct {
		preferred []cluster.Preference
		want      float64
	}{
		"the term holds":                                 {[]cluster.Preference{{Weight: 10, Term: yes}}, 100},
		"the term does not hold":                         {[]cluster.Preference{{Weight: 10, Term: no}}, 0},
		"one of two terms holds":                         {[]cluster.Preference{{Weight: 30, Term: yes}, {Weight: 10, Term: no}}, 75},
		"a negative term holds":                          {[]cluster.Preference{{Weight: -5, Term: yes}}, 0},
		"a negative term does not hold":                  {[]cluster.Preference{{Weight: -5, Term: no}}, 100},
		"a positive and a negative term hold":            {[]cluster.Preference{{Weight: 10, Term: yes}, {Weight: -10, Term: yes}}, 50},
		"the positive term holds, the negative does not": {[]cluster.Preference{{Weight: 10, Term: yes}, {Weight: -10, Term: no}}, 100},
		"an empty term":                                  {[]cluster.Preference{{Weight: 1, Term: cluster.Term{}}}, 0},
		"thirds":                                         {[]cluster.Preference{{Weight: 1, Term: yes}, {Weight: 2, Term: no}}, 100.0 / 3},
		"no terms":                                       {nil, 100},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			shape := &cluster.Shape{Preferred: tc.preferred}
			if got := scoreNode(shape, node); got != tc.want || prefersNodes(shape) != (tc.preferred != nil) {
				t.Errorf("score %v, want %v; matters: %v", got, tc.want, prefersNodes(shape))
			}
		})
	}
}

func preferences(app, within string, weight int32, anti bool) cluster.JobTerm {
	return cluster.JobTerm{Selector: term("app", app), Within: within, Weight: weight, Anti: anti}
}

func open(t *testing.T, jobs ...*enginetest.JobBuilder) (*plugin, *engine.Session) {
	t.Helper()
	parts := []enginetest.Part{
		enginetest.Node("a1").CPU(8, "8Gi").Label("rack", "a"), enginetest.Node("a2").CPU(8, "8Gi").Label("rack", "a"),
		enginetest.Node("b1").CPU(8, "8Gi").Label("rack", "b"), enginetest.Node("lone").CPU(8, "8Gi"),
	}
	for _, j := range jobs {
		parts = append(parts, j)
	}
	p, err := New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	s := enginetest.Engine(p).Open(enginetest.State(parts...), engine.Options{Search: engine.Twin})
	t.Cleanup(func() { s.Close() })
	return p.(*plugin), s
}

func TestJobPreferences(t *testing.T) {
	web := func() *enginetest.JobBuilder { return enginetest.Job("web").Label("app", "web").On("a1") }
	job := func() *enginetest.JobBuilder { return enginetest.Job("j").Label("app", "db") }
	type scores = map[string]float64
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want scores // nil: the score does not apply
	}{
		"nothing preferred": {job(), nil},
		"only required":     {job().Affinity(cluster.JobTerm{Selector: term("app", "web")}), nil},
		"near":              {job().Affinity(preferences("web", "rack", 10, false)), scores{"a1": 100, "a2": 100, "b1": 0, "lone": 0}},
		"away":              {job().Affinity(preferences("web", "rack", 10, true)), scores{"a1": 0, "a2": 0, "b1": 100, "lone": 100}},
		"near within the rack, away within the node": {job().Affinity(preferences("web", "rack", 10, false)).Affinity(preferences("web", "", 30, true)), scores{"a1": 25, "a2": 100, "b1": 75, "lone": 75}},
		"near no job": {job().Affinity(preferences("cache", "rack", 10, false)), scores{"a1": 0, "a2": 0, "b1": 0, "lone": 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, s := open(t, web(), tc.job)
			task := s.View.Job("job/j").Tasks()[0]
			var got scores
			if prefersJobs(task, task.Job) {
				got = scores{}
				for _, n := range s.View.Nodes() {
					got[n.Name] = p.scoreJobs(task, task.Job, n)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("scores (-want +got):\n%s", diff)
			}
		})
	}
}

// A gang that prefers to be apart is spread while its tasks are placed.
func TestSession(t *testing.T) {
	_, s := open(t, enginetest.Job("j").Label("app", "web").Gang(4).Affinity(preferences("web", "rack", 1, true)).Affinity(preferences("web", "", 1, true)))
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range out.Decisions {
		got = append(got, d.Node)
	}
	if diff := cmp.Diff([]string{"a1", "b1", "lone", "a2"}, got); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

func TestArguments(t *testing.T) {
	if _, err := New(enginetest.Arguments(`{"soft": true}`)); err == nil {
		t.Error("New takes arguments that it does not have")
	}
}
