package cluster

import (
	"slices"
	"strconv"
)

// Operator compares a label with values.
type Operator string

// The operators, as Kubernetes has them.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
)

// Operators lists every operator.
var Operators = []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt}

// Requirement is one condition on labels.
type Requirement struct {
	Key      string   `json:"key,omitempty"`
	Operator Operator `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// Matches reports whether the labels satisfy the requirement. A label that is
// absent satisfies NotIn and DoesNotExist; Gt and Lt compare integers and fail
// on anything else.
func (r *Requirement) Matches(labels map[string]string) bool {
	v, ok := labels[r.Key]
	switch r.Operator {
	case In:
		return ok && slices.Contains(r.Values, v)
	case NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case Exists:
		return ok
	case DoesNotExist:
		return !ok
	case Gt, Lt:
		if !ok || len(r.Values) != 1 {
			return false
		}
		have, err1 := strconv.ParseInt(v, 10, 64)
		want, err2 := strconv.ParseInt(r.Values[0], 10, 64)
		if err1 != nil || err2 != nil {
			return false
		}
		if r.Operator == Gt {
			return have > want
		}
		return have < want
	}
	return false
}

// Term is a conjunction: all its requirements must hold. An empty term matches nothing.
type Term []Requirement

// Matches reports whether all requirements hold.
func (t Term) Matches(labels map[string]string) bool {
	for i := range t {
		if !t[i].Matches(labels) {
			return false
		}
	}
	return len(t) > 0
}

// Preference is a weighted term; a negative weight pushes away.
type Preference struct {
	Weight int32 `json:"weight,omitempty"`
	Term   Term  `json:"term,omitempty"`
}

// JobTerm ties a job to other jobs, by their labels, within a domain of nodes
// that share the value of the label Within ("" is the node itself).
type JobTerm struct {
	Selector Term   `json:"selector,omitempty"`
	Within   string `json:"within,omitempty"`
	Anti     bool   `json:"anti,omitempty"`
	Weight   int32  `json:"weight,omitempty"` // 0: required; otherwise a preference of this weight
	// Namespaces to look in; empty: the job's own.
	Namespaces []string `json:"namespaces,omitempty"`
}

// Domain is the node's value for the topology label, and whether it has one.
func (n *Node) Domain(within string) (string, bool) {
	if within == "" {
		return n.Name, true
	}
	v, ok := n.Labels[within]
	return v, ok
}

// Effect is what a taint does to tasks that do not tolerate it.
type Effect string

// The taint effects.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Effects lists every effect.
var Effects = []Effect{NoSchedule, PreferNoSchedule, NoExecute}

// Taint keeps tasks off a node.
type Taint struct {
	Key    string `json:"key,omitempty"`
	Value  string `json:"value,omitempty"`
	Effect Effect `json:"effect,omitempty"`
}

// Toleration lets a task past taints. Operator is Equal (or "") or Exists; an
// empty key with Exists tolerates everything, an empty effect every effect.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   Effect `json:"effect,omitempty"`
}

// Tolerates reports whether the toleration covers the taint.
func (t *Toleration) Tolerates(taint Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Operator == "Exists" {
		return t.Key == "" || t.Key == taint.Key
	}
	return t.Key == taint.Key && t.Value == taint.Value
}
