package scenario

import (
	"testing"

	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/plugins/standard"
)

// FuzzConfiguration checks that any list of plugins gives either an engine or an
// error. It also fuzzes the code with which the plugins read their arguments.
func FuzzConfiguration(f *testing.F) {
	for _, s := range []string{
		"plugins: []", "plugins: [{name: NodeResourcesFitPlus, weight: 3, arguments: {resources: {cpu: {type: MostAllocated, weight: 2}}}}]",
		"plugins: [{name: ScarceResourceAvoidance, arguments: {resources: [nvidia.com/gpu], reserve: {cpu: 4, memory: 8Gi}}}]",
		"replaceDefaults: true\nplugins: [{name: NodeResourcesFit}, {name: IsolationFilter}]",
		"plugins: [{name: TaintToleration, disabled: true}]", "plugins: [{name: LabelFilter, arguments: {x: 1}}]",
		"plugins: [{name: NodeResourcesFit, arguments: {reserve: {cpu: -1}}}]",
	} {
		f.Add(s)
	}
	registry := standard.Registry()
	for _, name := range registry.Names() {
		f.Add("plugins: [{name: " + name + ", weight: 1, arguments: {weight: 1e400, resources: [a], headroom: 1Gi}}]")
	}
	f.Fuzz(func(t *testing.T, body string) {
		b, err := manifest.Parse("f", []byte("apiVersion: berth.dev/v1alpha1\nkind: SchedulerConfiguration\n"+body))
		if err != nil || b.Configuration() == nil {
			return
		}
		if e, err := Engine(registry, b); (e == nil) == (err == nil) {
			t.Errorf("engine %v, error %v", e, err)
		}
	})
}
