package cluster_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
)

// TestInternSeesEveryField changes each field of a Shape in turn, at any depth. If Intern
// ignored a field, two tasks with different requests would share one ranking of the nodes.
func TestInternSeesEveryField(t *testing.T) {
	full := func() cluster.Shape {
		return cluster.Shape{
			Resources:   cluster.Resources{{Name: "cpu", Value: 1}},
			LeftOut:     cluster.Resources{{Name: "memory", Value: 1}},
			Need:        cluster.Need{Sums: []cluster.Sum{{Product: "A"}}, Products: []string{"A"}, Types: []string{"t"}, Selected: []cluster.DeviceID{{Node: "n", Type: "t"}}, Layers: &cluster.Layers{Total: 1, Sizes: []cluster.LayerRun{{}}, FixedOn: []cluster.Sum{{Product: "A"}}}},
			Selector:    []cluster.Label{{Key: "a", Value: "b"}},
			Required:    []cluster.Term{{{Key: "k", Operator: cluster.In, Values: []string{"v"}}}},
			Preferred:   []cluster.Preference{{Weight: 1, Term: cluster.Term{{Key: "k", Operator: cluster.In, Values: []string{"v"}}}}},
			Tolerations: []cluster.Toleration{{Key: "k"}},
			Files:       cluster.Files{Main: "f"},
		}
	}
	s := cluster.NewState()
	known := map[*cluster.Shape]string{s.Intern(full()): "the original"}
	if again := s.Intern(full()); known[again] == "" {
		t.Fatal("equal shapes are not one pointer")
	}
	count := 0
	var change func(path string, at func(*cluster.Shape) reflect.Value)
	change = func(path string, at func(*cluster.Shape) reflect.Value) {
		probe := full()
		v := at(&probe)
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					change(path+"."+f.Name, func(s *cluster.Shape) reflect.Value { return at(s).Field(i) })
				}
			}
			return
		case reflect.Pointer:
			change(path, func(s *cluster.Shape) reflect.Value { return at(s).Elem() })
			v.SetZero()
		case reflect.Slice:
			change(path+"[0]", func(s *cluster.Shape) reflect.Value { return at(s).Index(0) })
			v.Set(reflect.AppendSlice(v, v))
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		default:
			v.SetInt(v.Int() + 7)
		}
		count++
		shape := s.Intern(probe)
		if other, seen := known[shape]; seen {
			t.Errorf("%s changed, but the shape is that of %s", path, other)
		}
		known[shape] = path
	}
	change("Shape", func(s *cluster.Shape) reflect.Value { return reflect.ValueOf(s).Elem() })
	if count < 35 {
		t.Errorf("only %d fields were changed", count)
	}
}

// TestKeyInSnapshot checks that the Key of a shape is part of the digest, and that JSON has it
// only if it is set.
func TestKeyInSnapshot(t *testing.T) {
	digests := map[string]string{}
	for _, key := range []string{"", "k1", "k2"} {
		s := cluster.NewState()
		task := &cluster.Task{Name: "0", Shape: &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: 1}}, Key: key}}
		if err := s.Apply(cluster.JobPut{Job: cluster.Job{ID: "job/a", Chosen: -1, Alternatives: []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{task}}}}}); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s.Snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if has := strings.Contains(string(text), `"key"`); has != (key != "") {
			t.Errorf("key %q: the snapshot has a key: %t", key, has)
		}
		var snapshot cluster.Snapshot
		if err := json.Unmarshal(text, &snapshot); err != nil {
			t.Fatal(err)
		}
		restored, err := snapshot.State()
		if err != nil {
			t.Fatal(err)
		}
		if got := restored.Job("job/a").Tasks()[0].Shape.Key; got != key || restored.Digest() != s.Digest() {
			t.Errorf("key %q: %q was restored, and the digests are equal: %t", key, got, restored.Digest() == s.Digest())
		}
		digests[s.Digest()] = key
	}
	if len(digests) != 3 {
		t.Errorf("three keys, and %d digests", len(digests))
	}
}

// TestDropForgetsUnusedShapes: a shape that is interned again is the same pointer, unless
// many other shapes were dropped in between.
func TestDropForgetsUnusedShapes(t *testing.T) {
	s := cluster.NewState()
	first := s.Intern(cluster.Shape{Cell: "a"})
	s.Intern(cluster.Shape{Cell: "a"})
	s.Drop(first)
	s.Drop(first)
	s.Drop(first) // a drop without a use is ignored
	if s.Intern(cluster.Shape{Cell: "a"}) != first {
		t.Error("a shape was forgotten at once")
	}
	for i := range 3000 {
		s.Drop(s.Intern(cluster.Shape{Cell: fmt.Sprint(i)}))
	}
	if s.Intern(cluster.Shape{Cell: "a"}) != first {
		t.Error("a shape in use was forgotten")
	}
	s.Drop(first)
	s.Drop(first)
	for i := range 3000 {
		s.Drop(s.Intern(cluster.Shape{Cell: fmt.Sprint(i)}))
	}
	if s.Intern(cluster.Shape{Cell: "a"}) == first {
		t.Error("unused shapes are never forgotten")
	}
}

func TestGPUClass(t *testing.T) {
	tests := map[string]struct {
		shape cluster.Shape
		want  cluster.GPUClass
	}{
		"no device":                      {cluster.Shape{}, ""},
		"whole devices request no class": {cluster.Shape{Need: cluster.Need{Devices: 2}}, ""},
		"a share is Shared":              {cluster.Shape{Need: cluster.Need{Devices: 1, Share: 500}}, cluster.GPUShared},
		"memory is Shared":               {cluster.Shape{Need: cluster.Need{Devices: 1, Memory: 5}}, cluster.GPUShared},
		"a requested class counts":       {cluster.Shape{Need: cluster.Need{Devices: 1, Share: 500}, Isolation: cluster.Isolation{GPU: cluster.GPUDeviceExclusive}}, cluster.GPUDeviceExclusive},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.shape.GPUClass(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCores(t *testing.T) {
	for milli, want := range map[int64]int64{0: 1, 1: 1, 1000: 1, 1001: 2, 8000: 8} {
		s := cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: milli}}}
		if got := s.Cores(); got != want {
			t.Errorf("%dm are %d cores, want %d", milli, got, want)
		}
	}
}

func TestSortLabels(t *testing.T) {
	got := cluster.SortLabels(map[string]string{"b": "2", "a": "1", "c": "3"})
	if diff := cmp.Diff([]cluster.Label{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}, {Key: "c", Value: "3"}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestRequirementMatches(t *testing.T) {
	labels := map[string]string{"zone": "a", "size": "12", "word": "x"}
	tests := map[string]struct {
		r    cluster.Requirement
		want bool
	}{
		"in":                        {cluster.Requirement{Key: "zone", Operator: cluster.In, Values: []string{"b", "a"}}, true},
		"not in the list":           {cluster.Requirement{Key: "zone", Operator: cluster.In, Values: []string{"b"}}, false},
		"in, but absent":            {cluster.Requirement{Key: "none", Operator: cluster.In, Values: []string{""}}, false},
		"notIn":                     {cluster.Requirement{Key: "zone", Operator: cluster.NotIn, Values: []string{"a"}}, false},
		"absent satisfies notIn":    {cluster.Requirement{Key: "none", Operator: cluster.NotIn, Values: []string{"a"}}, true},
		"exists":                    {cluster.Requirement{Key: "zone", Operator: cluster.Exists}, true},
		"does not exist":            {cluster.Requirement{Key: "zone", Operator: cluster.DoesNotExist}, false},
		"greater":                   {cluster.Requirement{Key: "size", Operator: cluster.Gt, Values: []string{"11"}}, true},
		"less":                      {cluster.Requirement{Key: "size", Operator: cluster.Lt, Values: []string{"12"}}, false},
		"a label that is no number": {cluster.Requirement{Key: "word", Operator: cluster.Gt, Values: []string{"1"}}, false},
		"greater, but absent":       {cluster.Requirement{Key: "none", Operator: cluster.Gt, Values: []string{"1"}}, false},
		"greater than two values":   {cluster.Requirement{Key: "size", Operator: cluster.Gt, Values: []string{"1", "2"}}, false},
		"no such operator":          {cluster.Requirement{Key: "zone", Operator: "Like"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.r.Matches(labels); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if (cluster.Term{}).Matches(labels) {
		t.Error("an empty term matched")
	}
	if (cluster.Term{{Key: "zone", Operator: cluster.Exists}, {Key: "none", Operator: cluster.Exists}}).Matches(labels) {
		t.Error("a term matched with one requirement unmet")
	}
}

func TestTolerates(t *testing.T) {
	taint := cluster.Taint{Key: "gpu", Value: "only", Effect: cluster.NoSchedule}
	tests := map[string]struct {
		toleration cluster.Toleration
		want       bool
	}{
		"equal":           {cluster.Toleration{Key: "gpu", Value: "only"}, true},
		"another value":   {cluster.Toleration{Key: "gpu", Operator: "Equal", Value: "x"}, false},
		"exists":          {cluster.Toleration{Key: "gpu", Operator: "Exists"}, true},
		"another key":     {cluster.Toleration{Key: "cpu", Operator: "Exists"}, false},
		"everything":      {cluster.Toleration{Operator: "Exists"}, true},
		"the same effect": {cluster.Toleration{Operator: "Exists", Effect: cluster.NoSchedule}, true},
		"another effect":  {cluster.Toleration{Operator: "Exists", Effect: cluster.NoExecute}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tt.toleration.Tolerates(taint); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestTierRank(t *testing.T) {
	if !(cluster.TierGuaranteed.Rank() < cluster.TierStandard.Rank() && cluster.TierStandard.Rank() < cluster.TierScavenger.Rank()) {
		t.Error("tiers are out of order")
	}
	if cluster.Tier("").Rank() != cluster.TierStandard.Rank() {
		t.Error("a queue without a tier is not Standard")
	}
	if fmt.Sprint(cluster.Bound, cluster.Pending, cluster.Nominated, cluster.Releasing) != "Bound Pending Nominated Releasing" {
		t.Error("states have other names")
	}
}
