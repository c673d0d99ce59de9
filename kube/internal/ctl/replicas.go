package ctl

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/podkind"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/workload"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// models are the Models of inputs in which replicas without a node are jobs of their own, with all
// forms that they may take, and not pods in one form.
type models struct {
	fleet *model.Fleet
	list  []*servedModel
}

// servedModel is a Model, and what its replicas without a node request.
type servedModel struct {
	object   *v1alpha1.Model
	existing []existing
	problem  error         // why it cannot be served, whatever the cluster; nil if it can
	plan     *model.Result // its jobs are the replicas without a node; nil if there is a problem
}

// id returns the name of the set of the replicas.
func (m *servedModel) id() string { return convert.ModelID(m.object) }

// of returns what is known of the Model; nil if it is being deleted.
func (x *models) of(o *v1alpha1.Model) *servedModel {
	for _, m := range x.list {
		if m.object.Namespace == o.Namespace && m.object.Name == o.Name {
			return m
		}
	}
	return nil
}

// plans returns the plans of all models that have one.
func (x *models) plans() []*model.Result {
	var out []*model.Result
	for _, m := range x.list {
		if m.plan != nil {
			out = append(out, m.plan)
		}
	}
	return out
}

// reader returns a reader of Models for the inputs.
func (p *program) reader(in *inputs) *modelsource.Reader {
	return &modelsource.Reader{
		Feed: in.Feed(), SchedulerNames: p.flags.names, Profiles: p.flags.profiled, Directory: p.flags.modelsDirectory,
		NoDirectory: "no directory of models is named (--models-directory)",
	}
}

// buildModels is like build, and replaces the pods of models that have no node by the replicas that
// the models request.
func (p *program) buildModels(w *world) (*inputs, error) {
	in, err := p.fillModels(w)
	if err != nil {
		return nil, err
	}
	p.writeNotes(in, w)
	return in, nil
}

// noteProblems writes which models are left out because they cannot be served.
func (p *program) noteProblems(in *inputs, w *world) {
	for _, m := range in.models.list {
		if m.problem == nil {
			continue
		}
		what := "is left out"
		if waiting(w, m) > 0 {
			what = "is simulated by its pods as they are"
		}
		fmt.Fprintf(p.answers.Stderr(), "note: %s %s: %s\n", m.id(), what, modelsource.ProblemText(m.problem))
	}
}

// fillModels is like fill, and replaces the pods of models that have no node by the replicas that
// the models request.
func (p *program) fillModels(w *world) (*inputs, error) {
	if err := w.checkModels(); err != nil {
		return nil, err
	}
	list, errs := w.models()
	for _, err := range errs {
		if !p.noted {
			fmt.Fprintf(p.answers.Stderr(), "note: %v\n", err)
		}
	}
	list = slices.DeleteFunc(list, func(m *v1alpha1.Model) bool { return m.DeletionTimestamp != nil })
	in, err := p.fillReplicas(w, list, nil)
	if err != nil {
		return nil, err
	}
	// The pods of a model of which the forms are not known stay as they are.
	kept := map[*v1alpha1.Model]bool{}
	for _, m := range in.models.list {
		if m.problem != nil && waiting(w, m) > 0 {
			kept[m.object] = true
		}
	}
	if len(kept) == 0 {
		return in, nil
	}
	return p.fillReplicas(w, list, kept)
}

// fillReplicas makes inputs with the replicas of the models. The pods of models in kept stay.
func (p *program) fillReplicas(w *world, list []*v1alpha1.Model, kept map[*v1alpha1.Model]bool) (*inputs, error) {
	replaced := slices.DeleteFunc(slices.Clone(list), func(m *v1alpha1.Model) bool { return kept[m] })
	in, err := p.fill(w.withoutWaiting(replaced), func() feed.Options {
		o := p.flags.feed()
		o.Health = true
		return o
	})
	if err != nil {
		return nil, err
	}
	in.models = &models{fleet: model.NewFleet(in.State.View().Groups())}
	in.models.fleet.WholeDevices = !p.flags.devicesEnforced
	reader := p.reader(in)
	for _, o := range list {
		m := &servedModel{object: o, existing: w.existing(o)}
		in.models.list = append(in.models.list, m)
		in.trials.stand(m.id(), w.likePod(o))
		if m.plan, m.problem = in.plan(reader, m); m.problem != nil {
			continue
		}
		for _, j := range m.plan.Jobs {
			in.trials.adopt(j)
			if err := in.State.Apply(cluster.JobPut{Job: *j}); err != nil {
				return nil, err
			}
			in.trials.replicas = append(in.trials.replicas, j.ID)
		}
		if err := in.State.Apply(cluster.SetScaled{Set: m.id(), Desired: m.plan.Spec.Replicas}); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// plan returns what the replicas of the model without a node request.
func (in *inputs) plan(reader *modelsource.Reader, m *servedModel) (*model.Result, error) {
	spec, err := reader.Spec(m.object)
	if err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	for _, e := range m.existing {
		spec.Existing = append(spec.Existing, model.Replica{Number: e.number})
	}
	plan, err := in.models.fleet.Convert(spec)
	if err != nil {
		return nil, err
	}
	for _, e := range m.existing {
		taken[plan.ReplicaID(e.number)] = true
	}
	plan.Jobs = slices.DeleteFunc(plan.Jobs, func(j *cluster.Job) bool { return taken[j.ID] })
	return plan, nil
}

// likePod returns a pod of the model, which its replicas without a pod are like in what only the
// filters of Kubernetes read; nil if there is none.
func (w *world) likePod(m *v1alpha1.Model) *corev1.Pod {
	var out *corev1.Pod
	for _, o := range w.pods() {
		if o.Namespace == m.Namespace && o.Labels[feed.LabelModel] == m.Name && (out == nil || o.Name < out.Name) {
			out = o
		}
	}
	return out
}

// stand notes the pod that stands for each replica without a pod: like the given pod, which may be
// nil, but without what depends on the form and what Berth itself decides about.
func (t *trials) stand(set string, like *corev1.Pod) {
	out := &corev1.Pod{}
	if like != nil {
		out = withoutNode(like)
		s := &out.Spec
		s.NodeSelector, s.ResourceClaims, s.Affinity = nil, nil, withoutOwnTerms(s.Affinity)
		s.Containers, s.InitContainers = withoutRequests(s.Containers), withoutRequests(s.InitContainers)
		s.Volumes = slices.DeleteFunc(slices.Clone(s.Volumes), func(v corev1.Volume) bool { return v.Ephemeral != nil })
		out.Labels = maps.Clone(out.Labels)
		delete(out.Labels, workload.LabelReplica)
		out.Status = corev1.PodStatus{}
		out.DeletionTimestamp = nil
	}
	_, rest, _ := strings.Cut(set, "/")
	out.Namespace, out.Name, _ = strings.Cut(rest, "/")
	t.standing[set] = out
}

// withoutOwnTerms returns the affinity without the terms about nodes, and without those by which
// berth-controller keeps pods of a model apart, which jobs have as well.
func withoutOwnTerms(a *corev1.Affinity) *corev1.Affinity {
	if a == nil {
		return nil
	}
	out := corev1.Affinity{PodAffinity: a.PodAffinity}
	if a.PodAntiAffinity != nil {
		apart := *a.PodAntiAffinity
		apart.RequiredDuringSchedulingIgnoredDuringExecution = slices.DeleteFunc(slices.Clone(apart.RequiredDuringSchedulingIgnoredDuringExecution), func(x corev1.PodAffinityTerm) bool {
			return x.LabelSelector != nil && len(x.LabelSelector.MatchExpressions) == 0 && len(x.LabelSelector.MatchLabels) == 1 &&
				(x.LabelSelector.MatchLabels[feed.LabelModel] != "" || x.LabelSelector.MatchLabels[workload.LabelReplica] != "")
		})
		out.PodAntiAffinity = &apart
	}
	return &out
}

// withoutRequests returns the containers without what they request, which depends on the form.
func withoutRequests(list []corev1.Container) []corev1.Container {
	out := slices.Clone(list)
	for i := range out {
		out[i].Resources = corev1.ResourceRequirements{}
	}
	return out
}

// standIn returns the pod that stands for a task of a replica with the shape. Conditions that the
// shape has are those of Berth's own filters; tolerations are read by both.
func standIn(like *corev1.Pod, shape *cluster.Shape) *corev1.Pod {
	out := *like
	out.Spec.Tolerations = nil
	for _, x := range shape.Tolerations {
		out.Spec.Tolerations = append(out.Spec.Tolerations, corev1.Toleration{
			Key: x.Key, Operator: corev1.TolerationOperator(x.Operator), Value: x.Value, Effect: corev1.TaintEffect(x.Effect),
		})
	}
	return &out
}

// adopt gives the shapes of a replica without a pod the Key of the pod that stands for it. The
// shapes are copied, as several replicas share them.
func (t *trials) adopt(j *cluster.Job) {
	like := t.standing[j.Set.Name]
	if like == nil {
		return
	}
	copies := map[*cluster.Shape]*cluster.Shape{}
	for a := range j.Alternatives {
		for _, task := range j.Alternatives[a].Tasks {
			if copies[task.Shape] == nil {
				own := *task.Shape
				// The only error is a pod that cannot be encoded, which an API server does not have.
				own.Key, _ = podkind.Key(standIn(like, &own))
				copies[task.Shape] = &own
			}
			task.Shape = copies[task.Shape]
		}
	}
}

// syncReplicas puts a pod into the Store for each task of a replica without a pod, in all forms.
func (t *trials) syncReplicas(v cluster.View) {
	for _, id := range t.replicas {
		j := v.Job(id)
		if j == nil {
			continue
		}
		like := t.standing[id[:strings.LastIndexByte(id, '-')]]
		for a := range j.Alternatives {
			for _, task := range j.Alternatives[a].Tasks {
				key := intree.KeyOf(task)
				if known, isKnown := t.stood[key]; isKnown && slices.Equal(known, task.Shape.Tolerations) {
					continue
				}
				t.stood[key] = task.Shape.Tolerations
				o := standIn(like, task.Shape)
				o.Name, o.UID = strings.TrimPrefix(id, "model/"+o.Namespace+"/")+"-"+task.Name, types.UID("replica-"+id+"/"+task.Name)
				_ = t.store.PutPod(key, o) // the only error is a pod without a UID
			}
		}
	}
}
