package engine

import (
	"reflect"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// TestPatternsSpellEveryField: every field that a hook may read makes a difference, so that nodes
// that differ in it are not judged together. A new field must be spelt, or be listed here.
func TestPatternsSpellEveryField(t *testing.T) {
	left := map[string][]string{
		"Node":       {"Name", "Labels", "Artifacts", "Tasks", "Resources", "Devices"}, // of Tasks, the number is spelt; Resources and Devices are below
		"Device":     {"UUID", "ID", "Index", "DeviceSpec", "Use"},                     // Index is the position, and DeviceSpec is below
		"DeviceSpec": {"ProductResource", "Fraction"},                                  // they follow from what is spelt
		"Ledger":     nil, "DeviceUse": nil,
	}
	node := func() *cluster.Node {
		return &cluster.Node{
			Resources: []cluster.Ledger{{Name: "cpu"}, {Name: "memory"}},
			Devices:   []cluster.Device{{DeviceSpec: &cluster.DeviceSpec{}}, {DeviceSpec: &cluster.DeviceSpec{}}, {DeviceSpec: &cluster.DeviceSpec{}}},
		}
	}
	spell := func(n *cluster.Node) string { return string(spellUse(spellSpec(nil, n, []string{"zone"}), n)) }
	empty := spell(node())
	for _, tt := range []struct {
		name string
		of   func(*cluster.Node) reflect.Value
	}{
		{"Node", func(n *cluster.Node) reflect.Value { return reflect.ValueOf(n).Elem() }},
		{"Ledger", func(n *cluster.Node) reflect.Value { return reflect.ValueOf(&n.Resources[1]).Elem() }},
		{"Device", func(n *cluster.Node) reflect.Value { return reflect.ValueOf(&n.Devices[1]).Elem() }},
		{"DeviceSpec", func(n *cluster.Node) reflect.Value { return reflect.ValueOf(n.Devices[1].DeviceSpec).Elem() }},
		{"DeviceUse", func(n *cluster.Node) reflect.Value { return reflect.ValueOf(&n.Devices[1].Use).Elem() }},
	} {
		fields := tt.of(node()).Type()
		for i := range fields.NumField() {
			f := fields.Field(i)
			if !f.IsExported() || slices.Contains(left[tt.name], f.Name) {
				continue
			}
			n := node()
			change(t, tt.of(n).Field(i))
			if spell(n) == empty {
				t.Errorf("%s.%s makes no difference", tt.name, f.Name)
			}
		}
	}
	n := node()
	n.Tasks = []*cluster.Task{{}}
	if spell(n) == empty {
		t.Error("the number of tasks makes no difference")
	}
	n = node()
	if n.Labels = map[string]string{"zone": ""}; spell(n) == empty {
		t.Error("a label without a value makes no difference")
	}
	n = node()
	if n.Labels, n.Name = map[string]string{"rack": "r1"}, "n"; spell(n) != empty {
		t.Error("a label that no hook reads makes a difference")
	}
}

// change gives the value another one than the zero value.
func change(t *testing.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				change(t, v.Field(i))
				return
			}
		}
	default:
		t.Fatalf("no value of %s is known", v.Type())
	}
}
