package feed

import (
	"encoding/json"
	"math"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels and annotations of the pods of a model.
const (
	// LabelModel is the name of the model, in the namespace of the pod.
	LabelModel = "berth.dev/model"
	// AnnotationModelTask is what a task of a model requests, as ModelTask in JSON.
	AnnotationModelTask = "berth.dev/model-task"
	// AnnotationVisibleDevices lists the numbers of the devices that the pod holds, such as
	// "0,3". A binding sets it, and a container may read it as a variable.
	AnnotationVisibleDevices = "berth.dev/visible-devices"
)

// ModelTask is what a task of a model requests in addition to what every pod can request. With
// it, the task of a pod has the shape that package model gives it.
type ModelTask struct {
	Model    string           `json:"model"`             // the name of the model, in the namespace of the pod
	Created  *metav1.Time     `json:"created,omitempty"` // when the model was created; jobs are ordered by it
	Priority int32            `json:"priority,omitempty"`
	Need     cluster.Need     `json:"need,omitzero"`
	Strategy cluster.Strategy `json:"strategy"`
	Backend  string           `json:"backend"`
	Files    cluster.Files    `json:"files,omitzero"`
	Cell     string           `json:"cell,omitempty"`
}

// TaskOfModel returns what the shape of a task of a model has in addition to the request of a
// pod.
func TaskOfModel(name string, s *cluster.Shape) ModelTask {
	return ModelTask{Model: name, Need: s.Need, Strategy: s.Strategy, Backend: s.Backend, Files: s.Files, Cell: s.Cell}
}

// ModelSet returns the name of the set that the replicas of a model are in.
func ModelSet(namespace, name string) string { return "model/" + namespace + "/" + name }

// modelTask applies the annotation of a pod of a model, if it has one. plain is what its
// containers request.
func (r *reader) modelTask(p *pod, enforced bool) {
	text := r.pod.Annotations[AnnotationModelTask]
	if text == "" {
		return
	}
	at := annotation(AnnotationModelTask)
	var t ModelTask
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		r.invalid(at, "it cannot be read: %s; berth-controller sets it, leave it out of other pods", err)
		return
	}
	if problem := t.problem(r.pod, &p.shape.Need, enforced); problem != "" {
		r.invalid(at, "%s; berth-controller sets it, leave it out of other pods", problem)
		return
	}
	p.model = t.Model
	p.shape.Need, p.shape.Strategy, p.shape.Backend, p.shape.Files, p.shape.Cell = t.Need, t.Strategy, t.Backend, t.Files, t.Cell
	if t.Created != nil {
		p.created = convert.Nanoseconds(t.Created)
	}
	if t.Priority != 0 {
		p.priority = t.Priority
	}
}

// problem returns why the annotation cannot be that of the pod, whose containers request the plain
// need; "" if it can. A pod must not hold less than it requests of the kubelet.
func (t *ModelTask) problem(o *corev1.Pod, plain *cluster.Need, enforced bool) string {
	need := &t.Need
	part := need.Share > 0 && need.Share < cluster.Whole || need.Memory > 0 || need.Layers != nil
	switch {
	case t.Model == "" || o.Labels[LabelModel] != t.Model:
		return "it is not about the model that the label " + LabelModel + " names"
	case t.Strategy != cluster.Binpack && t.Strategy != cluster.Spread:
		return "its strategy is not known"
	case need.Devices < 0 || need.Devices > cluster.MaxDevices || need.Memory < 0 || need.Memory > cluster.MaxDeviceMemory ||
		need.Share < 0 || need.Share > cluster.Whole || need.SumAtLeast < 0 || need.Layers != nil && need.Layers.Total <= 0:
		return "its need of devices is not valid"
	case part && !enforced:
		return "it requests a part of a device, which cannot be enforced here, because the kubelet chooses the device"
	case part && plain.Devices > 0:
		return "it requests a part of a device, and the containers request whole devices"
	case !part && need.WholeNode && plain.Devices == 0, !part && !need.WholeNode && plain.Devices != need.Devices:
		return "its containers request another number of devices"
	}
	return ""
}

// set returns the set of the job; the zero set if its pods are of no model. The number of
// replicas is not limited, because berth-controller removes those that are too many.
func (j *job) set() cluster.Set {
	p := j.anyMember()
	if !j.single {
		if len(j.tally.models) != 1 {
			return cluster.Set{}
		}
	}
	if p.model == "" {
		return cluster.Set{}
	}
	return cluster.Set{Name: ModelSet(j.namespace, p.model), Desired: math.MaxInt32}
}

// Health returns how a replica is, as far as one of its pods shows.
func Health(o *corev1.Pod) cluster.Health {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return cluster.HealthRunning
		}
	}
	if o.Status.Phase == corev1.PodFailed {
		return cluster.HealthFailed
	}
	for _, list := range [][]corev1.ContainerStatus{o.Status.InitContainerStatuses, o.Status.ContainerStatuses} {
		for i := range list {
			if w := list[i].State.Waiting; w != nil && failing(w.Reason) {
				return cluster.HealthFailed
			}
		}
	}
	return cluster.HealthStarting
}

// failing reports whether a container that waits for this reason has failed and may fail again.
func failing(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "InvalidImageName", "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
		return true
	}
	return false
}

// worseHealth returns the worse of the two.
func worseHealth(a, b cluster.Health) cluster.Health {
	for _, h := range []cluster.Health{cluster.HealthFailed, cluster.HealthStarting} {
		if a == h || b == h {
			return h
		}
	}
	return cluster.HealthRunning
}

// reportsHealth reports whether the health of replicas is reported.
func (o *Options) reportsHealth() bool { return o.Health || o.Replicas }

// replicaHealth returns the health of the replica that the job is, and how many of its layers are
// on devices; both are zero unless its pods are of a model and Options.Health or Options.Replicas is set.
func replicaHealth(f *Feed, j *job) (health cluster.Health, offload cluster.Offload) {
	if !f.options.reportsHealth() {
		return "", cluster.Offload{}
	}
	for _, p := range j.members { // the order has no effect
		if p.model == "" {
			return "", cluster.Offload{}
		}
		if health == "" {
			health = p.health
		}
		health = worseHealth(health, p.health)
		if l := p.shape.Need.Layers; l != nil {
			offload.Total += l.Total
			for _, h := range p.annotated {
				offload.Layers += h.Layers
			}
		}
	}
	return health, offload
}
