// Package workload makes the objects that run the replicas of a model: a Deployment for replicas
// on one node each, and a LeaderWorkerSet for each replica on several nodes.
package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/launch"
	"github.com/berth-project/berth/internal/model"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Labels of the objects and pods of a model, beside feed.LabelModel.
const (
	LabelForm      = "berth.dev/form" // the key of the form
	LabelManagedBy = "app.kubernetes.io/managed-by"
	Manager        = "berth-controller"
	// LabelReplica is the name of a replica on several nodes.
	LabelReplica = "berth.dev/model-replica"
	// LabelServes is "true" on pods that answer requests.
	LabelServes = "berth.dev/serves"
)

// Options are what all workloads of a cluster have in common.
type Options struct {
	SchedulerName string // of models that name none
	// DevicesEnforced is set if a container gets the devices that were chosen for it, and not
	// those that the kubelet chooses.
	DevicesEnforced bool
}

// Replicas are replicas of one model that have the same form.
type Replicas struct {
	Model       *v1alpha1.Model
	Spec        *model.Spec
	Context     int // tokens of a sequence; 0: as many as the model supports
	Form        *model.Form
	Alternative *cluster.Alternative
	Resource    string            // the resource name of the devices; "" if there are none
	Devices     int               // of each node, if the form takes whole nodes
	Selector    map[string]string // labels of the node group, if the form is on one
}

// Key returns a text that identifies the form, for names and labels. It does not depend on the
// number of replicas.
func (r *Replicas) Key() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", r.Alternative.Name, r.Resource))
	return hex.EncodeToString(sum[:4])
}

// OnSeveralNodes reports whether a replica has several tasks.
func (r *Replicas) OnSeveralNodes() bool { return len(r.Alternative.Tasks) > 1 }

// Name returns the name of the Deployment.
func (r *Replicas) Name() string {
	if r.Spec.Place.WholeNodes {
		return r.Model.Name
	}
	return r.Model.Name + "-" + r.Key()
}

// labels returns the labels of all objects of the replicas.
func (r *Replicas) labels() map[string]string {
	return map[string]string{feed.LabelModel: r.Model.Name, LabelForm: r.Key(), LabelManagedBy: Manager}
}

// ownedMeta returns the metadata of an object that the model owns.
func ownedMeta(m *v1alpha1.Model, name string, labels map[string]string) metav1.ObjectMeta {
	owner := metav1.NewControllerRef(m, schema.GroupVersionKind{Group: v1alpha1.Group, Version: v1alpha1.Version, Kind: v1alpha1.KindModel})
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: name, Labels: labels, OwnerReferences: []metav1.OwnerReference{*owner}}
}

// launch returns how the server is started. workers are the addresses of all pods of the replica but
// the first.
func (o Options) launch(r *Replicas, workers []string) (*launch.Server, error) {
	if err := CheckName(r.Model, r.Spec); err != nil {
		return nil, err
	}
	tasks := r.Alternative.Tasks
	need := &tasks[0].Shape.Need
	return launch.Of(&launch.Replica{
		Object: r.Model, Spec: r.Spec, Context: r.Context, Form: r.Form,
		Device: r.deviceType(need), Parts: o.DevicesEnforced && !need.None() && r.wholeDevices(need) == 0,
		Leader: "$(LWS_LEADER_ADDRESS)", Rank: "$(LWS_WORKER_INDEX)", Workers: workers,
		Uneven: slices.ContainsFunc(tasks, func(t *cluster.Task) bool { return t.Shape.Need.Devices != need.Devices }),
	})
}

// deviceTypes are the types of devices by the domains of their resource names.
var deviceTypes = map[string]string{"nvidia.com": "cuda", "amd.com": "rocm", "gpu.intel.com": "oneapi", "habana.ai": "gaudi", "huawei.com": "cann"}

// deviceType returns the type of the devices; "" if the replicas have none.
func (r *Replicas) deviceType(n *cluster.Need) string {
	if n.None() {
		return ""
	}
	domain, _, _ := strings.Cut(r.Resource, "/")
	switch {
	case deviceTypes[domain] != "":
		return deviceTypes[domain]
	case len(n.Types) == 1:
		return n.Types[0]
	}
	return r.Resource
}

// Deployment returns the Deployment of replicas on one node each. An error is a *launch.Problem.
func (o Options) Deployment(r *Replicas, count int32) (*appsv1.Deployment, error) {
	server, err := o.launch(r, nil)
	if err != nil {
		return nil, err
	}
	template, err := o.template(r, server, r.Alternative.Tasks[0], role{serves: true})
	if err != nil {
		return nil, err
	}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: ownedMeta(r.Model, r.Name(), r.labels()),
		Spec: appsv1.DeploymentSpec{
			Replicas: new(count),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{feed.LabelModel: r.Model.Name, LabelForm: r.Key()}},
			Template: *template,
			// The devices of a pod are free for the next one only after it has ended.
			Strategy:                appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(0)), MaxUnavailable: new(intstr.FromInt32(1))}},
			ProgressDeadlineSeconds: new(int32(progressDeadline)), RevisionHistoryLimit: new(int32(3)),
		},
	}, nil
}

// progressDeadline is after how many seconds a Deployment says that it makes no progress. A large
// model takes long to load.
const progressDeadline = 2 * 60 * 60

// LWS is the kind LeaderWorkerSet.
var LWS = schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}

// ReplicaName returns the name of the LeaderWorkerSet of a replica on several nodes.
func ReplicaName(model string, number int) string { return fmt.Sprintf("%s-r%d", model, number) }

// LeaderWorkerSet returns the LeaderWorkerSet of one replica of several pods. An error is a
// *launch.Problem.
func (o Options) LeaderWorkerSet(r *Replicas, name string) (*unstructured.Unstructured, error) {
	tasks := r.Alternative.Tasks
	var workers []string
	for i := 1; i < len(tasks); i++ {
		// The names of pods and services are those of the LeaderWorkerSet controller.
		workers = append(workers, fmt.Sprintf("%s-0-%d.%s-0.%s", name, i, name, r.Model.Namespace))
	}
	server, err := o.launch(r, workers)
	if err != nil {
		return nil, err
	}
	leader, err := o.template(r, server, tasks[0], role{serves: true, replica: name})
	if err != nil {
		return nil, err
	}
	worker, err := o.template(r, server, tasks[1], role{worker: true, serves: server.EachServes, replica: name})
	if err != nil {
		return nil, err
	}
	// Pods that compute together are useless without each other.
	restart := "RecreateGroupOnPodRestart"
	if server.EachServes {
		restart = "None"
	}
	templates := map[string]any{"size": int64(len(tasks)), "restartPolicy": restart}
	for field, t := range map[string]*corev1.PodTemplateSpec{"leaderTemplate": leader, "workerTemplate": worker} {
		if templates[field], err = runtime.DefaultUnstructuredConverter.ToUnstructured(t); err != nil {
			return nil, err
		}
	}
	m := ownedMeta(r.Model, name, r.labels())
	m.Labels[LabelReplica] = name
	metadata, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
	if err != nil {
		return nil, err
	}
	delete(metadata, "creationTimestamp")
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": LWS.GroupVersion().String(), "kind": LWS.Kind, "metadata": metadata,
		"spec": map[string]any{
			"replicas": int64(1), "leaderWorkerTemplate": templates,
			// The headless Service is named NAME-0 and not NAME, which may be another model: replica
			// 1 of the model deepseek is named deepseek-r1.
			"networkConfig": map[string]any{"subdomainPolicy": "UniquePerReplica"},
		},
	}}, nil
}

// Expressible reports whether the alternative can be run: on one node, or as a leader and workers
// of which all have the same request. Only vllm and llamacpp run with more devices on the leader.
func Expressible(a *cluster.Alternative) bool {
	if len(a.Tasks) == 0 {
		return false
	}
	devices := func(i int) int { return a.Tasks[i].Shape.Need.Devices }
	for i := 1; i < len(a.Tasks); i++ {
		if devices(i) != devices(1) {
			return false
		}
	}
	backend := a.Tasks[0].Shape.Backend
	return len(a.Tasks) == 1 || devices(0) == devices(1) || backend == "vllm" || backend == "llamacpp"
}

// groupLabels are the labels by which the nodes of a group are selected, as far as they have them.
var groupLabels = []string{
	cluster.LabelProduct, cluster.LabelCount, cluster.LabelMemory,
	"amd.com/gpu.product-name", "amd.com/gpu.vram", "gpu.intel.com/product", "gpu.intel.com/device.count", "gpu.intel.com/memory.max",
}

// GroupSelector returns the labels of devices that all nodes of the group have.
func GroupSelector(g *cluster.Group) map[string]string {
	out := map[string]string{}
	for _, key := range groupLabels {
		value, has := g.Nodes[0].Labels[key]
		if has && !slices.ContainsFunc(g.Nodes, func(n *cluster.Node) bool { return n.Labels[key] != value }) {
			out[key] = value
		}
	}
	return out
}

// selectorOf returns the labels that a node of the replicas must have.
func (r *Replicas) selectorOf(s *cluster.Shape) map[string]string {
	out := maps.Clone(r.Selector)
	for _, l := range s.Selector {
		if out == nil {
			out = map[string]string{}
		}
		out[l.Key] = l.Value
	}
	return out
}
