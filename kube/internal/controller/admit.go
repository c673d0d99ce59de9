package controller

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/launch"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"k8s.io/apimachinery/pkg/types"
)

// Verdict is the answer to a request to create or change a model.
type Verdict struct {
	// Problem is what is wrong with the model, whatever the nodes are; "" if nothing is.
	Problem string
	// Infeasible is why no node of the cluster can ever serve the model; "" if some can. The nodes
	// of groups that are scaled from zero are not known.
	Infeasible string
	Reason     string // the code of Infeasible
	// Warning is what a user should know about the model, which is allowed; "" if that is nothing.
	Warning string
}

// noGroup begins the message about a model that can never be placed. It is API.
const noGroup = "No suitable node group found: insufficient capacity or no matching configurations after filtering."

// maxForms is how many forms of a replica are tried in the answer to one request. An answer must not
// take long, because other requests wait for it.
const maxForms = 200

// Admit returns whether the model can be served. old is the model before a change; nil if the model
// is new. A model of which only the number of replicas changes can always be served. Any other change
// is checked for one replica, and not denied if the model as it was cannot be served now either.
func (w *World) Admit(o, old *v1alpha1.Model) (Verdict, error) {
	if old == nil {
		return w.admit(o, o.Spec.Replicas)
	}
	if onlyReplicas(o, old) {
		return Verdict{}, nil
	}
	one := new(1) // how many replicas the model has was decided when they were requested
	v, err := w.admit(o, one)
	if err != nil || v.Infeasible == "" {
		return v, err
	}
	was, err := w.admit(old, one)
	if err == nil && was.Infeasible != "" {
		return Verdict{Warning: v.Infeasible}, nil
	}
	return v, err
}

// admit returns whether the model could be served with this number of replicas if it were new.
func (w *World) admit(o *v1alpha1.Model, replicas *int) (Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := *o
	own.Status, own.Spec.Replicas = v1alpha1.ModelStatus{}, replicas
	s, err := w.spec(&own)
	if err != nil {
		return Verdict{Problem: modelsource.ProblemText(err)}, nil
	}
	s.ID += "~" // the replicas that exist do not matter; no model has this name
	c := w.cluster()
	c.Once, c.MaxForms = true, maxForms
	a, err := w.tryOne(&c, s)
	if err != nil {
		return Verdict{}, err
	}
	switch {
	case errors.Is(a.Err, modelset.ErrTooManyForms):
		return Verdict{Warning: fmt.Sprintf("a replica can be placed in more than %d forms, so that the model was not checked; the condition Admitted will say whether nodes can serve it", maxForms)}, nil
	case a.Err != nil:
		return Verdict{Problem: modelsource.ProblemText(a.Err)}, nil
	}
	for i := range a.Replicas {
		if r := a.Replicas[i].Refusal; r != nil && r.Permanent {
			return Verdict{Infeasible: denial(r), Reason: r.Reason}, nil
		}
	}
	p := newPlan(types.NamespacedName{Namespace: own.Namespace, Name: own.Name + "~"}, &own, nil)
	p.spec, p.answer, p.group = s, a, a.Group
	if err := w.fill(p); err != nil {
		if problem := (*launch.Problem)(nil); errors.As(err, &problem) && len(problem.Path) > 1 && problem.Path[1] == "template" {
			return Verdict{Problem: problem.Error()}, nil
		}
		return Verdict{Warning: "no server can be started for the model yet: " + modelsource.ProblemText(err)}, nil
	}
	return Verdict{}, nil
}

// tryOne returns the answer about one replica of the model; the refusals of all have the same cause.
// If it is placed, its nodes may be ones that are in use: only whether it can be placed matters.
func (w *World) tryOne(c *modelset.Cluster, s *model.Spec) (modelset.Answer, error) {
	wants := []modelset.Want{{Spec: s, Missing: min(1, s.Replicas)}}
	few, err := w.sample.Of(c)
	if err != nil {
		return modelset.Answer{}, err
	}
	if few != nil {
		answers, err := few.Decide(wants)
		if err != nil {
			return modelset.Answer{}, err
		}
		if a := answers[0]; a.Err == nil && len(a.Replicas) == 1 && a.Replicas[0].Places != nil {
			return a, nil
		}
	}
	answers, err := c.Decide(wants)
	if err != nil {
		return modelset.Answer{}, err
	}
	return answers[0], nil
}

// denial returns the message about a model that can never be placed: the sentence that tools look
// for, and how many nodes each filter has left.
func denial(r *wire.Refusal) string {
	if strings.HasPrefix(r.Message, noGroup) {
		return r.Message
	}
	return fmt.Sprintf("%s %s", noGroup, r.Message)
}

// onlyReplicas reports whether the specs differ in the number of replicas at most.
func onlyReplicas(a, b *v1alpha1.Model) bool {
	x, y := a.Spec, b.Spec
	x.Replicas, y.Replicas = nil, nil
	return reflect.DeepEqual(x, y)
}
