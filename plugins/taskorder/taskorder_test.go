package taskorder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/taskorder"
)

func TestOrder(t *testing.T) {
	tests := map[string]struct{ arguments, written, want string }{
		"as written":                 {`{}`, "worker-1 ps-0 worker-0", "worker-1 ps-0 worker-0"},
		"a leader is first":          {`{}`, "worker-0 worker-1 leader-0", "leader-0 worker-0 worker-1"},
		"in the order of the list":   {`{}`, "worker-0 launcher-0 master-0 leader-0", "leader-0 master-0 launcher-0 worker-0"},
		"one role keeps its order":   {`{}`, "leader-1 worker-0 leader-0", "leader-1 leader-0 worker-0"},
		"other roles instead":        {`{"first": ["ps"]}`, "worker-0 leader-0 ps-0", "ps-0 worker-0 leader-0"},
		"no roles":                   {`{"first": []}`, "worker-0 leader-0", "worker-0 leader-0"},
		"half a name is not a match": {`{"first": ["lead"]}`, "worker-0 leader-0", "worker-0 leader-0"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p, err := taskorder.New(enginetest.Arguments(tt.arguments))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, sorted(p, tt.written)); d != "" {
				t.Errorf("order (-want +got):\n%s", d)
			}
		})
	}
}

// sorted sorts tasks, given by name, in a session with the plugin.
func sorted(p engine.Plugin, written string) string {
	var tasks []*cluster.Task
	for _, name := range strings.Fields(written) {
		role, _, _ := strings.Cut(name, "-")
		tasks = append(tasks, &cluster.Task{Name: name, Role: role})
	}
	s := enginetest.Engine(p).Open(enginetest.State(), engine.Options{})
	slices.SortStableFunc(tasks, s.CompareTasks)
	var names []string
	for _, task := range tasks {
		names = append(names, task.Name)
	}
	return strings.Join(names, " ")
}

func TestArguments(t *testing.T) {
	tests := map[string]struct{ arguments, want string }{
		"nothing set": {`{}`, ""},
		"empty role":  {`{"first": ["leader", ""]}`, `first[1] is empty, which is not a role; name one or remove it`},
		"twice":       {`{"first": ["leader", "ps", "leader"]}`, `first[0] and first[2] are both "leader", and a role may be listed once; remove one`},
		"a typo":      {`{"frist": []}`, `json: unknown field "frist"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if _, err := taskorder.New(enginetest.Arguments(tt.arguments)); err != nil {
				got = err.Error()
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("error (-want +got):\n%s", d)
			}
		})
	}
}
