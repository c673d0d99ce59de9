package backend

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

var versionInRange = regexp.MustCompile(`[0-9]+(?:\.[0-9]+)*`)

// versionsOf returns versions of a backend among which every entry of its settings that can apply
// applies to one: each bound, and one below and one above all bounds. The empty version stands for
// the newest.
func versionsOf(b *Backend) []string {
	out := []string{"", "0.0.1", "999"}
	for _, e := range b.allSettings {
		for _, v := range versionInRange.FindAllString(e.Versions, -1) {
			out = append(out, v, v+".post1")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// modelsOf returns a model of each architecture and each format of weights that an entry names.
func modelsOf(b *Backend) []*estimate.Model {
	out := []*estimate.Model{{}}
	for _, e := range b.allSettings {
		for _, name := range e.Architectures {
			out = append(out, &estimate.Model{Architecture: &estimate.Architecture{Name: name}})
		}
	}
	return out
}

// Each value of each entry of the settings decides something: there is a version, a device, a
// parallelism and a model for which the result is another without it. A value that later
// entries always replace is an error of the file.
func TestNoSettingIsShadowed(t *testing.T) {
	for _, b := range All() {
		var devices []Accelerator
		for _, e := range b.allSettings {
			for _, product := range []string{"A100", "H100"} {
				for _, kind := range append([]string{"cuda"}, e.Types...) {
					for _, memory := range []cluster.Bytes{0, e.LeastMemory.Bytes, e.LeastMemory.Bytes + 1<<30} {
						devices = append(devices, Accelerator{Product: product, Type: kind, Memory: memory})
					}
				}
			}
		}
		slices.SortFunc(devices, func(a, b Accelerator) int {
			return cmp.Or(cmp.Compare(a.Memory, b.Memory), cmp.Compare(a.Product, b.Product), cmp.Compare(a.Type, b.Type))
		})
		devices = slices.Compact(devices)
		tensors := []int{1, 1024}
		for _, e := range b.allSettings {
			tensors = append(tensors, max(1, e.LeastTensor))
		}
		slices.Sort(tensors)
		tensors = slices.Compact(tensors)
		for i := range b.allSettings {
			for _, value := range valuesOf(&b.allSettings[i]) {
				if !decides(t, b, i, value, devices, tensors) {
					t.Errorf("%s: entry %d of the settings (%+v): %s never decides anything", b.Name, i+1, b.allSettings[i].Versions, value)
				}
			}
		}
	}
}

// valuesOf returns the names of the values that an entry sets.
func valuesOf(e *setting) []string {
	var out []string
	v := reflect.ValueOf(e).Elem()
	for i := v.NumField() - 1; i >= 0; i-- {
		f := v.Type().Field(i)
		if f.Name == "Architectures" { // the fields before it, and itself, are conditions
			break
		}
		if f.IsExported() && !v.Field(i).IsZero() {
			out = append(out, f.Name)
		}
	}
	return out
}

// decides reports whether the settings are other ones somewhere without a value of an entry.
func decides(t *testing.T, b *Backend, entry int, value string, devices []Accelerator, tensors []int) bool {
	without := *b
	without.allSettings = slices.Clone(b.allSettings)
	v := reflect.ValueOf(&without.allSettings[entry]).Elem().FieldByName(value)
	v.SetZero()
	for _, version := range versionsOf(b) {
		with, err := b.At(version)
		if err != nil {
			t.Fatal(err)
		}
		other, err := without.At(version)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range modelsOf(b) {
			for _, d := range devices {
				for _, tensor := range tensors {
					x, y := with.on(m, tensor, d), other.on(m, tensor, d)
					if !reflect.DeepEqual(x, y) {
						return true
					}
				}
			}
		}
	}
	return false
}

// The test finds a value that is shadowed.
func TestShadowedSettingIsFound(t *testing.T) {
	b := &Backend{Name: "b", allSettings: parseSettings("b", []setting{
		{Versions: ">=2", BatchTokens: 5}, {Versions: ">=1", BatchTokens: 7}, {Versions: ">=1", Rows: 3},
	})}
	var got []string
	for i := range b.allSettings {
		for _, value := range valuesOf(&b.allSettings[i]) {
			got = append(got, fmt.Sprint(i, value, decides(t, b, i, value, []Accelerator{{Memory: math.MaxInt64}}, []int{1})))
		}
	}
	if want := []string{"0BatchTokensfalse", "1BatchTokenstrue", "2Rowstrue"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
