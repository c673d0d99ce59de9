package ctl

import (
	"fmt"

	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/modelsource"
	corev1 "k8s.io/api/core/v1"
)

// whyModel answers why the model, or one of its replicas, is placed where it is or is pending. The
// answer about a model is about its first replica that is pending.
func (p *program) whyModel(w *world, r reference, output string) error {
	o, number, err := w.findModel(r)
	if err != nil {
		return err
	}
	in, err := p.buildModels(w)
	if err != nil {
		return err
	}
	m := in.models.of(o)
	if m == nil {
		return fmt.Errorf("model/%s/%s is being deleted", o.Namespace, o.Name)
	}
	id, err := m.workload(in, number)
	if err != nil {
		return err
	}
	p.noteProblems(in, w)
	if n := waiting(w, m); n > 0 && in.State.Job(id) == nil {
		fmt.Fprintf(p.answers.Stderr(), "note: %s has %s without a node; the answer is about the replicas that the model requests, in all their forms\n", m.id(), english.Count(n, "pod"))
	}
	in.trials.subject = m.id()
	return p.answers.Why(in.cluster(), id, output)
}

// workload returns the ID of the job of the replica with this number, or of the set of all replicas.
func (m *servedModel) workload(in *inputs, number int) (string, error) {
	if m.problem != nil {
		return "", fmt.Errorf("%s cannot be served: %s", m.id(), modelsource.ProblemText(m.problem))
	}
	if len(in.State.View().Sets().Jobs(m.id())) == 0 {
		return "", fmt.Errorf("%s has no replicas, and requests none (spec.replicas is 0)", m.id())
	}
	if number == anyReplica {
		return m.id(), nil
	}
	if id := m.plan.ReplicaID(number); in.State.Job(id) != nil {
		return id, nil
	}
	for _, e := range m.existing {
		if e.number != number {
			continue
		}
		if key, isTask := in.Task(e.pods[0].UID); isTask && in.State.Job(key.Job) != nil {
			return key.Job, nil
		}
		return "", fmt.Errorf("replica %d of %s is pod/%s/%s, which is not scheduled by Berth", number, m.id(), e.pods[0].Namespace, e.pods[0].Name)
	}
	return "", fmt.Errorf("%s has no replica %d; it has %s, numbered from 0", m.id(), number, english.Count(len(in.State.View().Sets().Jobs(m.id())), "replica"))
}

// waiting returns how many pods of the model have no node.
func waiting(w *world, m *servedModel) int {
	n := 0
	for _, o := range w.pods() {
		if o.Spec.NodeName == "" && o.Namespace == m.object.Namespace && o.Labels[feed.LabelModel] == m.object.Name {
			n++
		}
	}
	return n
}

// notePodOfModel says that the pod has the form that was chosen for it, if it is of a model and has
// no node.
func (p *program) notePodOfModel(w *world, o *corev1.Pod) {
	list, _ := w.models()
	if m := ownerOf(list, o); m != nil && o.Spec.NodeName == "" {
		fmt.Fprintf(p.answers.Stderr(), "note: the pod has the form that was chosen for a replica of model/%s/%s; \"%s why model/%s -n %s\" tries all forms\n", m.Namespace, m.Name, name, m.Name, m.Namespace)
	}
}
