package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// SchedulerConfiguration changes the default profile: which plugins are used, in which
// order, with which weights and arguments. It may have several profiles.
type SchedulerConfiguration struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// ReplaceDefaults drops the default profile: only the plugins that are listed here are
	// used, in this order. NodeResourcesFit and IsolationFilter must be among them.
	ReplaceDefaults bool `json:"replaceDefaults,omitempty"`
	// Packing selects how tasks are packed: best-fit, fgd, fill-value, packing, per-resource
	// or random. It replaces the plugins of the default profile that do this. Unless given, it is per-resource.
	Packing string `json:"packing,omitempty"`
	// Plugins are the changes to the default profile, at most one entry for each plugin. A
	// plugin of the default profile keeps its position, and any other plugin is added at the
	// end, unless before, after or position is given.
	Plugins []PluginConfig `json:"plugins,omitempty"`
	// Profiles are several variants of the profile, by the name that pods and jobs give in
	// spec.schedulerName. The first one also decides about workloads that name none of them.
	// All profiles have one order of queues and jobs. Unless given, there is one profile, and
	// schedulerName selects nothing.
	Profiles []ProfileConfig `json:"profiles,omitempty"`
}

// ProfileConfig is one of several profiles.
type ProfileConfig struct {
	// SchedulerName is the name of the profile. Each profile has another one.
	SchedulerName string `json:"schedulerName"`
	// Packing selects how the profile packs tasks. Unless given, it is that of the configuration.
	Packing string `json:"packing,omitempty"`
	// Plugins are the changes to the profile that plugins of the configuration describe, at
	// most one entry for each plugin. A field that an entry sets replaces the one of the entry
	// for the same plugin there. A plugin that orders queues and jobs or that evicts tasks
	// must be the same in all profiles, so it is configured there and not here.
	Plugins []PluginConfig `json:"plugins,omitempty"`
}

// The values of PluginConfig.Position.
const (
	PositionFirst = "First"
	PositionLast  = "Last"
)

// PluginConfig configures one plugin of the profile. At most one of before, after and
// position may be given. Plugins that name the same position keep the order in which
// they are written.
type PluginConfig struct {
	// Name is the name of the plugin, such as NodeResourcesFitPlus.
	Name string `json:"name"`
	// Weight multiplies the plugin's scores and its costs of victims, from 1 to 100000. The
	// default is the weight in the profile.
	Weight *int `json:"weight,omitempty"`
	// Before puts the plugin directly before the plugin with this name.
	Before string `json:"before,omitempty"`
	// After puts the plugin directly after the plugin with this name.
	After string `json:"after,omitempty"`
	// Position puts the plugin at the beginning or the end of the profile: First or Last.
	Position string `json:"position,omitempty"`
	// Disabled removes the plugin from the profile.
	Disabled bool `json:"disabled,omitempty"`
	// Arguments are passed to the plugin. An argument that it does not have is an error.
	Arguments runtime.RawExtension `json:"arguments,omitempty"`
}
