package engine_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// decided lists the changes that an outcome may have.
var decided = []reflect.Type{
	reflect.TypeFor[cluster.SessionOpened](), reflect.TypeFor[cluster.Decided](), reflect.TypeFor[cluster.Assign](), reflect.TypeFor[cluster.Nominate](),
	reflect.TypeFor[cluster.Evict](), reflect.TypeFor[cluster.Move](), reflect.TypeFor[cluster.Withdraw](), reflect.TypeFor[cluster.Overdue](),
	reflect.TypeFor[cluster.Retire](), reflect.TypeFor[cluster.ChooseGroup](), reflect.TypeFor[cluster.Displace](), reflect.TypeFor[cluster.Tear](),
	reflect.TypeFor[cluster.Park](), reflect.TypeFor[cluster.Earmark](),
}

// references lists the fields of a type through which its values may change: pointers to types
// of other packages, except shapes, and everything else that copies of a value share.
func references(t reflect.Type, path string, seen map[reflect.Type]bool) []string {
	if seen[t] {
		return nil
	}
	if t == reflect.TypeFor[cluster.Change]() {
		var out []string
		for _, kind := range decided {
			out = append(out, references(kind, path+" "+kind.Name(), seen)...)
		}
		return out
	}
	switch t.Kind() {
	case reflect.Pointer:
		if t == reflect.TypeFor[*cluster.Shape]() {
			return nil // shapes never change
		}
		if t.Elem().PkgPath() != reflect.TypeFor[engine.Outcome]().PkgPath() {
			return []string{path + " " + t.String()}
		}
		return references(t.Elem(), path, seen)
	case reflect.Slice, reflect.Array:
		return references(t.Elem(), path, seen)
	case reflect.Struct:
		seen[t] = true
		var out []string
		for i := range t.NumField() {
			f := t.Field(i)
			out = append(out, references(f.Type, path+"."+f.Name, seen)...)
		}
		return out
	case reflect.Map, reflect.Func, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
		return []string{path + " " + t.String()}
	}
	return nil
}

// TestOutcomesAreValues checks that outcomes do not refer to the State, since they are read while
// the State changes.
func TestOutcomesAreValues(t *testing.T) {
	tests := map[string]struct {
		of   reflect.Type
		want []string
	}{
		"what a session returns": {reflect.TypeFor[engine.Outcome](), nil},
		"events of handlers":     {reflect.TypeFor[*engine.Event](), []string{".Job *cluster.Job", ".Task *cluster.Task", ".Node *cluster.Node"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, references(tt.of, "", map[reflect.Type]bool{})); diff != "" {
				t.Errorf("references (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDecisionsHaveTheirOwnClaims checks that changing the claims of a decision does not change
// the State: of a placement, of a binding of a nominated task, and of an eviction.
func TestDecisionsHaveTheirOwnClaims(t *testing.T) {
	s := with(twoNodes(), enginetest.Job("old").Devices(2).Preemptible().On("a"), enginetest.Job("other").Devices(1).On("b"), enginetest.Job("new").Devices(2).Priority(1))
	e := enginetest.Engine(fit(), enginetest.AllowAllVictims(), roomMaker(engine.Preempt))
	var actions []engine.Action
	for range 2 {
		for _, d := range run(t, e, s).Decisions {
			actions = append(actions, d.Action)
			before := slices.Clone(s.Task(d.Task).Claims)
			for i := range d.Claims {
				d.Claims[i].Device = -1
			}
			if diff := cmp.Diff(before, s.Task(d.Task).Claims); diff != "" || len(before) == 0 {
				t.Errorf("%s of %s changes with its decision: %s", d.Action, d.Task.ID(), diff)
			}
		}
		apply(t, s, left(s.Job("job/old").Tasks()[0]))
	}
	if diff := cmp.Diff([]engine.Action{engine.EvictTask, engine.Nominate, engine.Bind}, actions); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}
