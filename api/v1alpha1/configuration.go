package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SchedulerConfiguration changes the default profile: which plugins run, with
// what weight and arguments.
type SchedulerConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// ReplaceDefaults drops the default profile: only the plugins listed here run.
	ReplaceDefaults bool           `json:"replaceDefaults,omitempty"`
	Plugins         []PluginConfig `json:"plugins,omitempty"`
}

// PluginConfig is one plugin's place in the profile.
type PluginConfig struct {
	Name string `json:"name"`
	// Weight of its scores and of what it says that victims cost, from 1 to 100000; the profile's unless given.
	Weight *int `json:"weight,omitempty"`
	// Disabled takes the plugin out of the profile.
	Disabled bool `json:"disabled,omitempty"`
	// Arguments are the plugin's own; it refuses those it does not know.
	Arguments runtime.RawExtension `json:"arguments,omitempty"`
}
