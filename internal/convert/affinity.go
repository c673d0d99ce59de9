package convert

import (
	"maps"
	"slices"
	"strconv"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
)

const maxAffinityWeight = 100

var tolerationOperators = []string{"Equal", "Exists"}

func makeTolerations(list []v1alpha1.Toleration, at path, r reporter) []cluster.Toleration {
	var out []cluster.Toleration
	for i, t := range list {
		at := at.Add(i)
		checkEnum(t.Operator, tolerationOperators, at.Add("operator"), r)
		checkEnum(t.Effect, cluster.Effects, at.Add("effect"), r)
		switch {
		case t.Key != "":
			checkKey(t.Key, at.Add("key"), r)
		case t.Operator != "Exists":
			r.errorf(at, "a toleration without a key tolerates everything only with operator: Exists")
		}
		if t.Operator == "Exists" && t.Value != "" {
			r.errorf(at.Add("value"), "operator Exists compares no value; leave it out")
		}
		out = append(out, cluster.Toleration{Key: t.Key, Operator: t.Operator, Value: t.Value, Effect: cluster.Effect(t.Effect)})
	}
	return out
}

// makeTerm makes a term of the conditions, all of which a node must meet.
func makeTerm(list []v1alpha1.Requirement, at path, r reporter) cluster.Term {
	at = at.Add("matchExpressions")
	if len(list) == 0 {
		r.errorf(at, "a term without conditions matches nothing; add one such as {key: rack, operator: In, values: [r1]}")
	}
	out := make(cluster.Term, 0, len(list))
	for i, q := range list {
		out = append(out, makeRequirement(q, at.Add(i), r))
	}
	return out
}

func makeRequirement(q v1alpha1.Requirement, at path, r reporter) cluster.Requirement {
	checkKey(q.Key, at.Add("key"), r)
	if q.Operator == "" {
		r.errorf(at, "say the operator: %s", phrase.Either(cluster.Operators))
	}
	checkEnum(q.Operator, cluster.Operators, at.Add("operator"), r)
	switch op := cluster.Operator(q.Operator); op {
	case cluster.In, cluster.NotIn:
		if len(q.Values) == 0 {
			r.errorf(at, "operator %s needs values", op)
		}
	case cluster.Exists, cluster.DoesNotExist:
		if len(q.Values) > 0 {
			r.errorf(at.Add("values"), "operator %s compares no values; leave them out", op)
		}
	case cluster.Gt, cluster.Lt:
		if len(q.Values) != 1 {
			r.errorf(at, "operator %s needs one value, a whole number", op)
		} else if _, err := strconv.ParseInt(q.Values[0], 10, 64); err != nil {
			r.errorf(at.Add("values", 0), "operator %s needs a whole number, have %s", op, phrase.Quote(q.Values[0]))
		}
	}
	return cluster.Requirement{Key: q.Key, Operator: cluster.Operator(q.Operator), Values: slices.Clone(q.Values)}
}

// makeAffinity sets the terms of the shape about nodes and returns the terms about
// other jobs.
func makeAffinity(a *v1alpha1.Affinity, s *cluster.Shape, at path, r reporter) []cluster.JobTerm {
	if a == nil {
		return nil
	}
	s.Required = makeRequired(a.Required, at.Add("required"), r)
	s.Preferred = makePreferred(a.Preferred, at.Add("preferred"), r)
	var out []cluster.JobTerm
	for i, j := range a.Jobs {
		out = append(out, makeJobTerm(j, at.Add("jobs", i), r))
	}
	return out
}

func makeRequired(list []v1alpha1.NodeTerm, at path, r reporter) []cluster.Term {
	var out []cluster.Term
	for i, t := range list {
		out = append(out, makeTerm(t.MatchExpressions, at.Add(i), r))
	}
	return out
}

func makePreferred(list []v1alpha1.PreferredTerm, at path, r reporter) []cluster.Preference {
	var out []cluster.Preference
	for i, p := range list {
		at := at.Add(i)
		if p.Weight == 0 || p.Weight < -maxAffinityWeight || p.Weight > maxAffinityWeight {
			r.errorf(at.Add("weight"), "want a weight from -%d to %d and not 0, have %d", maxAffinityWeight, maxAffinityWeight, p.Weight)
		}
		out = append(out, cluster.Preference{Weight: p.Weight, Term: makeTerm(p.MatchExpressions, at, r)})
	}
	return out
}

func makeJobTerm(j v1alpha1.JobTerm, at path, r reporter) cluster.JobTerm {
	switch {
	case j.Weight < 0:
		r.errorf(at.Add("weight"), "want a weight from 1 to %d, have %d; to keep away write anti: true", maxAffinityWeight, j.Weight)
	case j.Weight > maxAffinityWeight:
		r.errorf(at.Add("weight"), "want a weight from 1 to %d, or none where it is required, have %d", maxAffinityWeight, j.Weight)
	}
	if j.Within != "" {
		checkKey(j.Within, at.Add("within"), r)
	}
	checkDistinct(j.Namespaces, "namespace", at.Add("namespaces"), r)
	return cluster.JobTerm{
		Selector: makeSelector(&j.Selector, at.Add("selector"), r),
		Within:   j.Within, Anti: j.Anti, Weight: j.Weight, Namespaces: slices.Clone(j.Namespaces),
	}
}

// makeSelector makes a term about labels of jobs.
func makeSelector(s *v1alpha1.JobSelector, at path, r reporter) cluster.Term {
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		r.errorf(at, "say which jobs: matchLabels or matchExpressions")
	}
	checkLabels(s.MatchLabels, at.Add("matchLabels"), r)
	out := matchLabels(s.MatchLabels)
	for i, q := range s.MatchExpressions {
		out = append(out, makeRequirement(q, at.Add("matchExpressions", i), r))
	}
	return out
}

// matchLabels returns a term that requires each of the labels, sorted by key.
func matchLabels(labels map[string]string) cluster.Term {
	var out cluster.Term
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, cluster.Requirement{Key: k, Operator: cluster.In, Values: []string{labels[k]}})
	}
	return out
}
