package cluster

import (
	"slices"
	"strconv"
)

// Operator says how a Requirement compares a label with its values.
type Operator string

// The operators, which mean the same as in Kubernetes.
const (
	In           Operator = "In"
	NotIn        Operator = "NotIn"
	Exists       Operator = "Exists"
	DoesNotExist Operator = "DoesNotExist"
	Gt           Operator = "Gt"
	Lt           Operator = "Lt"
)

// Operators lists all operators.
var Operators = []Operator{In, NotIn, Exists, DoesNotExist, Gt, Lt}

// Requirement is one condition on labels.
type Requirement struct {
	Key      string   `json:"key,omitempty"`
	Operator Operator `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// Matches reports whether the labels satisfy the requirement. An absent label
// satisfies NotIn and DoesNotExist. Gt and Lt compare integers; they do not match if
// the label or the value is not an integer, or if there is not exactly one value.
// An unknown operator matches nothing.
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

// Term is a list of requirements, all of which must hold. An empty term matches nothing.
type Term []Requirement

// Matches reports whether the labels satisfy all requirements. It is false for an
// empty term.
func (t Term) Matches(labels map[string]string) bool {
	for i := range t {
		if !t[i].Matches(labels) {
			return false
		}
	}
	return len(t) > 0
}

// Preference is a term with a weight. A node that matches a term with a negative
// weight scores lower.
type Preference struct {
	Weight int32 `json:"weight,omitempty"`
	Term   Term  `json:"term,omitempty"`
}

// JobTerm is an affinity or anti-affinity of a job to other jobs, which are selected
// by their labels. It is about the nodes of one domain: those with the same value of
// the label Within, or the single node if Within is "".
type JobTerm struct {
	Selector Term   `json:"selector,omitempty"` // labels of the other jobs
	Within   string `json:"within,omitempty"`   // the topology label; "": the node itself
	Anti     bool   `json:"anti,omitempty"`     // the jobs must be in different domains, not in the same
	Weight   int32  `json:"weight,omitempty"`   // 0: the term is required; otherwise it is a preference of this weight
	// Namespaces are the namespaces of the other jobs; empty: the job's own namespace.
	Namespaces []string `json:"namespaces,omitempty"`
}

// ReplicaLabel is the key of a label that a replica of a model has if its tasks must be on
// different nodes. The value is the ID of its job.
const ReplicaLabel = "berth.dev/replica"

// KeepsReplicaApart reports whether the term keeps the tasks of a replica of a model on
// different nodes. No other job matches such a term.
func (t *JobTerm) KeepsReplicaApart() bool {
	return t.Anti && t.Weight == 0 && t.Within == "" && len(t.Selector) == 1 && t.Selector[0].Key == ReplicaLabel
}

// Domain returns the node's value of the topology label, and whether the node has
// that label. The domain for "" is the node itself.
func (n *Node) Domain(within string) (string, bool) {
	if within == "" {
		return n.Name, true
	}
	v, ok := n.Labels[within]
	return v, ok
}

// Effect is what a taint does to tasks that do not tolerate it.
type Effect string

// The effects of taints, which mean the same as in Kubernetes.
const (
	NoSchedule       Effect = "NoSchedule"
	PreferNoSchedule Effect = "PreferNoSchedule"
	NoExecute        Effect = "NoExecute"
)

// Effects lists all effects.
var Effects = []Effect{NoSchedule, PreferNoSchedule, NoExecute}

// Taint keeps tasks that do not tolerate it away from a node.
type Taint struct {
	Key    string `json:"key,omitempty"`
	Value  string `json:"value,omitempty"`
	Effect Effect `json:"effect,omitempty"`
}

// Toleration lets a task be placed in spite of taints. Operator is Equal (or "") or
// Exists. An empty key with Exists tolerates all taints, and an empty effect tolerates
// all effects.
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
