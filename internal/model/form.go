package model

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate"
)

// Form is one way to lay a replica out. Those with a problem were looked at and
// left out, and say why.
type Form struct {
	Name             string
	Tensor, Pipeline int
	Devices          int // of each node; 0: as many as it takes, or none
	Nodes            int
	Group            string        // the only group it is for; "": any
	Each             cluster.Bytes // that it needs of each device
	Parts            estimate.Breakdown
	Problem          string

	tasks    []piece
	whole    *cluster.WholeNodes
	hopeless bool // it has a problem and is requested all the same, to be refused with its numbers
}

// piece is so many equal tasks of a form.
type piece struct {
	role  string
	count int
	shape cluster.Shape
}

// left is the form with the reason why it is left out.
func left(f Form, format string, args ...any) Form {
	f.Problem = fmt.Sprintf(format, args...)
	return f
}

// shape is what all tasks of the model have in common.
func (s *Spec) shape(host cluster.Bytes) cluster.Shape {
	out := cluster.Shape{
		Resources: cluster.Resources{{Name: cluster.CPU}, {Name: cluster.Memory}},
		Selector:  cluster.SortLabels(s.labels()), Tolerations: s.Tolerations, Isolation: s.Isolation,
		Preemptible: s.Preemptible, Strategy: s.Place.Strategy, Backend: s.Backend.Name, Files: s.Files,
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

// labels that nodes must have: those of the selector, and the instance type.
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
