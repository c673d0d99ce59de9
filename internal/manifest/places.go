package manifest

import (
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// Places are the fields of an object of which the positions are kept. Their values may turn out
// to be wrong when all objects are known, which is after the document is dropped.

var namePath = path{"metadata", "name"}

func namePlace[T any](*T) []path { return []path{namePath} }

func nodePlaces(o *v1alpha1.Node) []path {
	if len(o.Status.FreeMemory) > 0 {
		return []path{namePath, {"status", "freeMemory"}}
	}
	return []path{namePath}
}

func queuePlaces(o *v1alpha1.Queue) []path {
	spec := path{"spec"}
	out := []path{{"metadata", "name"}, spec.Add("parent"), spec.Add("quota"), spec.Add("limits")}
	product := func(name string, at path) {
		if strings.Contains(name, ":") {
			out = append(out, at.Add(name))
		}
	}
	for name := range o.Spec.Quota {
		product(string(name), spec.Add("quota"))
	}
	for name := range o.Spec.Limits {
		product(string(name), spec.Add("limits"))
	}
	for name := range o.Spec.OverQuotaWeight {
		product(name, spec.Add("overQuotaWeight"))
	}
	for i := range o.Status.Usage {
		out = append(out, path{"status", "usage", i})
	}
	return out
}

func jobPlaces(o *v1alpha1.Job) []path {
	out := []path{namePath, {"spec", "queue"}, {"spec", "schedulerName"}, {"spec", "tasks"}, {"status", "alternative"}}
	for i := range o.Status.Placements {
		at := path{"status", "placements", i}
		out = append(out, at, at.Add("node"), at.Add("devices"), at.Add("started"))
	}
	return out
}

// modelPlaces includes the fields that name files, which are read later as well.
func modelPlaces(o *v1alpha1.Model) []path {
	spec := path{"spec"}
	out := []path{
		{"metadata", "name"}, spec, spec.Add("queue"), spec.Add("schedulerName"), spec.Add("backendVersion"), spec.Add("source"), spec.Add("draft"), spec.Add("context"),
		spec.Add("parallelism"), spec.Add("parallelism", "tensor"), spec.Add("placement", "instanceType"), spec.Add("placement", "deviceLayers"), spec.Add("placement", "devices"),
		spec.Add("replicas"), {"status", "group"},
	}
	for i := range o.Spec.Adapters {
		out = append(out, spec.Add("adapters", i))
	}
	for i, x := range o.Status.Replicas {
		at := path{"status", "replicas", i}
		out = append(out, at, at.Add("form"))
		for k := range x.Placements {
			out = append(out, at.Add("placements", k), at.Add("placements", k, "node"))
		}
	}
	return out
}

func podPlaces(*corev1.Pod) []path {
	return []path{namePath, {"spec", "nodeName"}, {"spec", "containers"},
		{"metadata", "labels", v1alpha1.LabelQueue}, {"metadata", "annotations", v1alpha1.LabelQueue}}
}
