package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SchedulerConfiguration changes the default profile: which plugins run, in which
// order, with what weight and arguments.
type SchedulerConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// ReplaceDefaults drops the default profile: only the plugins listed here run, in this order.
	ReplaceDefaults bool `json:"replaceDefaults,omitempty"`
	// Plugins are the changes. A plugin that the default profile has keeps its place in
	// it, and any other is added at the end, unless before, after or position says otherwise.
	Plugins []PluginConfig `json:"plugins,omitempty"`
}

// The ends of a profile.
const (
	PositionFirst = "First"
	PositionLast  = "Last"
)

// PluginConfig is one plugin's place in the profile. Of before, after and position it
// has at most one; where several plugins name the same place, they keep the order in
// which they are written.
type PluginConfig struct {
	Name string `json:"name"`
	// Weight of its scores and of what it says that victims cost, from 1 to 100000; the profile's unless given.
	Weight *int `json:"weight,omitempty"`
	// Before puts the plugin directly before the one of this name.
	Before string `json:"before,omitempty"`
	// After puts the plugin directly after the one of this name.
	After string `json:"after,omitempty"`
	// Position puts the plugin at an end of the profile: First or Last.
	Position string `json:"position,omitempty"`
	// Disabled takes the plugin out of the profile.
	Disabled bool `json:"disabled,omitempty"`
	// Arguments are the plugin's own; it refuses those it does not know.
	Arguments runtime.RawExtension `json:"arguments,omitempty"`
}
