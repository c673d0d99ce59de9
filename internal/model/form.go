package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// Form is one way to divide a replica over devices and nodes. Problem says why a form is
// not tried; it is "" for a form that is. If all forms have a problem, some of them are
// tried nevertheless, because a refusal has figures.
type Form struct {
	Name             string
	Tensor, Pipeline int // tensor parallelism and pipeline stages
	Devices          int // per node; 0: as many as the layers need, or none
	Nodes            int
	Group            string             // the node group that it is restricted to; "": any
	PerDevice        cluster.Bytes      // the memory that it needs of each device
	Parts            estimate.Breakdown // of PerDevice; zero if the memory is not estimated
	Host             cluster.Bytes      // the memory that it needs of the node if it has no device; 0: it has devices
	Problem          string

	tasks    []roleTasks
	whole    *cluster.WholeNodes
	fallback bool // it has a problem and is requested nevertheless, so that its refusal has figures
}

// roleTasks is the tasks of a form that have one role. All of them have the same shape, and roles may
// share it.
type roleTasks struct {
	role  string
	count int
	shape *cluster.Shape
}

// firstIndex returns the index of the first of the tasks at k among the tasks of their role.
func (f *Form) firstIndex(k int) int {
	n := 0
	for _, t := range f.tasks[:k] {
		if t.role == f.tasks[k].role {
			n += t.count
		}
	}
	return n
}

// withProblem returns the form with the reason why it is not tried.
func withProblem(f Form, format string, args ...any) Form {
	f.Problem = fmt.Sprintf(format, args...)
	return f
}

// shape returns the shape that all tasks of the model have in common, without devices.
// It requests the given bytes of the node's memory unless the spec sets an amount
// (Memory.Host) or requests more.
func (s *Spec) shape(host cluster.Bytes) cluster.Shape {
	out := cluster.Shape{
		Resources: cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}},
		Selector:  cluster.SortLabels(s.labels()), Tolerations: s.Tolerations, Isolation: s.Isolation,
		Preemptible: s.Preemptible, Profile: s.Profile, Strategy: s.Place.Strategy, Backend: s.Backend.Name, Files: s.Files,
	}
	for _, a := range s.Resources {
		out.Resources = out.Resources.With(a.Name, a.Value)
	}
	if s.Place.InstanceType != "" {
		out.Tolerations = append(slices.Clone(out.Tolerations), cluster.Toleration{Key: taintKey, Operator: "Equal", Value: taintValue, Effect: cluster.NoSchedule})
	}
	switch {
	case s.Memory.Host > 0:
		out.Resources = out.Resources.With(cluster.Memory, int64(s.Memory.Host))
	case s.Resources.Of(cluster.Memory) < int64(host):
		out.Resources = out.Resources.With(cluster.Memory, int64(host))
	}
	return out
}

// labels returns the labels that a node must have: those of the selector, and that of
// the instance type.
func (s *Spec) labels() map[string]string {
	if s.Place.InstanceType == "" {
		return s.Place.Selector
	}
	out := maps.Clone(s.Place.Selector)
	if out == nil {
		out = map[string]string{}
	}
	out[instanceTypeLabel] = s.Place.InstanceType
	return out
}
