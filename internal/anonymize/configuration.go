package anonymize

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"k8s.io/apimachinery/pkg/runtime"
)

// argumentsOf has, for each plugin of Berth with arguments, what replaces the names in these.
// The arguments of other plugins are not copied.
var argumentsOf = map[string]func(*Names, map[string]any){
	"DeviceOrder":             func(*Names, map[string]any) {},
	"DoubleBooking":           func(*Names, map[string]any) {},
	"FairShare":               func(n *Names, a map[string]any) { replaceTexts(a, "divide", n.resource) },
	"NodeResourcesFitPlus":    func(n *Names, a map[string]any) { replaceKeys(a, "resources", n.resource) },
	"ScarceResourceAvoidance": (*Names).scarceResources,
	"spot-instance-manager":   (*Names).spotLabel,
	"StaleGang":               func(*Names, map[string]any) {},
	"TaskOrder":               func(n *Names, a map[string]any) { replaceTexts(a, "first", n.roles.of) },
}

func (n *Names) scarceResources(a map[string]any) {
	replaceTexts(a, "resources", n.resource)
	replaceKeys(a, "weights", n.resource)
}

func (n *Names) spotLabel(a map[string]any) {
	key, given := a["spotLabelKey"].(string)
	if !given {
		key = "kai.scheduler/instance-type"
	} else {
		a["spotLabelKey"] = n.key(key)
	}
	if value, ok := a["spotLabelValue"].(string); ok {
		a["spotLabelValue"] = n.value(key, value)
	} else {
		n.spotValue(key, a)
	}
}

// spotValue sets the value of the label of spot instances if it is not given and the key is,
// because the default value of the plugin may be replaced on nodes.
func (n *Names) spotValue(key string, a map[string]any) {
	const value = "spot"
	if alias := n.value(key, value); alias != value {
		a["spotLabelValue"] = alias
	}
}

// replaceTexts replaces the texts in the list with the name.
func replaceTexts(a map[string]any, name string, replace func(string) string) {
	list, _ := a[name].([]any)
	for i := range list {
		if text, ok := list[i].(string); ok {
			list[i] = replace(text)
		}
	}
}

// replaceKeys replaces the keys of the map with the name.
func replaceKeys(a map[string]any, name string, replace func(string) string) {
	m, ok := a[name].(map[string]any)
	if !ok {
		return
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[replace(k)] = v
	}
	a[name] = out
}

func (n *Names) configuration(o *v1alpha1.SchedulerConfiguration) *v1alpha1.SchedulerConfiguration {
	return &v1alpha1.SchedulerConfiguration{
		TypeMeta: berthKind(v1alpha1.KindSchedulerConfiguration), ReplaceDefaults: o.ReplaceDefaults, Packing: o.Packing, Plugins: each(o.Plugins, n.plugin),
		Profiles: each(o.Profiles, func(p v1alpha1.ProfileConfig) v1alpha1.ProfileConfig {
			return v1alpha1.ProfileConfig{SchedulerName: n.schedulers.of(p.SchedulerName), Packing: p.Packing, Plugins: each(p.Plugins, n.plugin)}
		}),
	}
}

func (n *Names) plugin(p v1alpha1.PluginConfig) v1alpha1.PluginConfig {
	out := v1alpha1.PluginConfig{Name: p.Name, Weight: p.Weight, Before: p.Before, After: p.After, Position: p.Position, Disabled: p.Disabled}
	var arguments map[string]any
	if replace := argumentsOf[p.Name]; replace != nil && json.Unmarshal(p.Arguments.Raw, &arguments) == nil && arguments != nil {
		replace(n, arguments)
		out.Arguments = runtime.RawExtension{Raw: []byte(jsonText(arguments))}
	}
	return out
}

// foreignArguments returns the plugins of which the arguments are not copied, sorted.
func foreignArguments(o *v1alpha1.SchedulerConfiguration) []string {
	found := map[string]bool{}
	see := func(list []v1alpha1.PluginConfig) {
		for _, p := range list {
			if raw := string(p.Arguments.Raw); argumentsOf[p.Name] == nil && raw != "" && raw != "null" && raw != "{}" {
				found[p.Name] = true
			}
		}
	}
	see(o.Plugins)
	for _, p := range o.Profiles {
		see(p.Plugins)
	}
	return slices.Sorted(maps.Keys(found))
}
