package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/berth-project/berth/kube/internal/workload"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var models = schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "models"}

// Reasons of conditions, beside the reasons of refusals.
const (
	reasonInvalid     = "ModelInvalid"
	reasonFeasible    = "Feasible"
	reasonSelected    = "GroupSelected"
	reasonPlaced      = "Placed"
	reasonWaiting     = "WaitingForScheduler"
	reasonScaledDown  = "NoReplicas"
	reasonReady       = "Ready"
	reasonStarting    = "Starting"
	reasonFailed      = "ReplicaFailed"
	reasonNotPlaced   = "NotPlaced"
	reasonWriteFailed = "WriteFailed"
)

// maxListed is how many replicas a status lists at most. An object has at most 1.5 MiB.
const maxListed = 1000

// maxMessage is the longest message of a condition that is written, in bytes.
const maxMessage = 4096

// status returns the status of the model. failed is why its objects could not be written; nil if
// they were.
func (p *plan) status(failed error) v1alpha1.ModelStatus {
	m := p.model
	out := m.Status
	out.Conditions = slices.Clone(m.Status.Conditions)
	out.ObservedGeneration = m.Generation
	out.Selector = feed.LabelModel + "=" + m.Name
	out.CurrentReplicas, out.ReadyReplicas, out.NodesPerReplica = int32(len(p.existing)), 0, 0
	for i := range p.existing {
		r := &p.existing[i]
		if r.ready() {
			out.ReadyReplicas++
		}
		out.NodesPerReplica = max(out.NodesPerReplica, int32(len(r.pods)))
	}
	out.Replicas = p.replicaStatus(m.Status.Replicas)
	out.Replicas = out.Replicas[:min(len(out.Replicas), maxListed)]
	switch {
	case p.spec == nil: // a node group is chosen once, and kept while the model is not valid
	case p.spec.Place.WholeNodes:
		p.groupStatus(&out)
	default:
		out.Group, out.GroupName = nil, ""
	}
	p.workloadStatus(&out)
	p.estimateStatus(&out)
	p.conditions(&out, failed)
	return out
}

// groupStatus notes the node group.
func (p *plan) groupStatus(out *v1alpha1.ModelStatus) {
	if p.group == nil {
		return
	}
	key := *p.group
	nodes := p.spec.NodesPerReplica
	if nodes == 0 {
		nodes = len(p.formOnGroup().Tasks)
	}
	out.Group = &v1alpha1.ModelGroup{Product: key.Product, Count: key.Count, Memory: *resource.NewQuantity(key.Memory<<20, resource.BinarySI), Resource: key.Resource, NodesPerReplica: nodes}
	if key.Replicas > 1 {
		out.Group.Sharing = &v1alpha1.Sharing{Strategy: key.Strategy, Replicas: key.Replicas}
	}
	out.GroupName = fmt.Sprintf("%s, %s each", key, quantity.Memory(cluster.Bytes(key.Memory<<20)))
	out.NodesPerReplica = int32(nodes)
}

// formOnGroup returns the form on the node group.
func (p *plan) formOnGroup() *cluster.Alternative {
	for i := range p.answer.Forms {
		if g := groupOf(&p.answer.Forms[i], p.group); g != nil && *g == *p.group {
			return &p.answer.Forms[i]
		}
	}
	return &p.answer.Forms[0]
}

// replicaStatus lists the replicas. A replica keeps its number as long as it has one of its pods.
func (p *plan) replicaStatus(was []v1alpha1.ModelReplica) []v1alpha1.ModelReplica {
	numbers, taken := map[string]int{}, map[int]bool{}
	for _, r := range was {
		for _, name := range r.Pods {
			numbers[name] = r.Replica
		}
	}
	out := make([]v1alpha1.ModelReplica, len(p.existing))
	known := make([]bool, len(p.existing))
	for i := range p.existing {
		r := &p.existing[i]
		out[i] = p.oneReplica(r)
		for _, pod := range r.pods {
			if n, found := numbers[pod.Name]; found && !taken[n] && !known[i] {
				out[i].Replica, known[i], taken[n] = n, true, true
			}
		}
	}
	next := 0
	for i := range out {
		if known[i] {
			continue
		}
		for taken[next] {
			next++
		}
		out[i].Replica, taken[next] = next, true
	}
	slices.SortFunc(out, func(a, b v1alpha1.ModelReplica) int { return a.Replica - b.Replica })
	return out
}

// oneReplica returns the entry of a replica, without its number.
func (p *plan) oneReplica(r *replica) v1alpha1.ModelReplica {
	out := v1alpha1.ModelReplica{State: string(r.health), Form: p.chosen[r.form]}
	for i, pod := range r.pods {
		task := modelTaskOf(pod)
		out.Pods = append(out.Pods, pod.Name)
		if i == 0 { // the time by which the scheduler orders replicas, and retires one of equal ones
			out.Created = cmp.Or(task.Created, new(pod.CreationTimestamp))
		}
		if pod.Spec.NodeName == "" {
			continue
		}
		place := v1alpha1.TaskPlacement{Task: p.taskName(r, i), Node: pod.Spec.NodeName}
		var visible []int
		if text := pod.Annotations[feed.AnnotationVisibleDevices]; text != "" {
			for _, field := range strings.Split(text, ",") {
				var n int
				if _, err := fmt.Sscan(field, &n); err == nil {
					visible = append(visible, n)
				}
			}
		}
		place.Devices = visible
		layers, total := layersOf(pod, task)
		out.OffloadedLayers, out.TotalLayers = out.OffloadedLayers+layers, out.TotalLayers+total
		out.Placements = append(out.Placements, place)
	}
	return out
}

// taskName returns the name of the task that the pod with this index is.
func (p *plan) taskName(r *replica, i int) string {
	for k := range p.answer.Forms {
		if a := &p.answer.Forms[k]; a.Name == p.chosen[r.form] && i < len(a.Tasks) {
			return a.Tasks[i].Name
		}
	}
	return fmt.Sprintf("server-%d", i)
}

// modelTaskOf returns what the pod says of its task. It is empty if the pod says nothing that can be
// read.
func modelTaskOf(pod *corev1.Pod) (task feed.ModelTask) {
	if json.Unmarshal([]byte(pod.Annotations[feed.AnnotationModelTask]), &task) != nil {
		return feed.ModelTask{}
	}
	return task
}

// layersOf returns how many layers of the pod are on devices, and how many its task has.
func layersOf(pod *corev1.Pod, task feed.ModelTask) (on, total int) {
	var held []cluster.Holding
	if task.Need.Layers == nil || json.Unmarshal([]byte(pod.Annotations[feed.AnnotationDevices]), &held) != nil {
		return 0, 0
	}
	for _, h := range held {
		on += h.Layers
	}
	return on, task.Need.Layers.Total
}

// workloadStatus lists the objects that run replicas.
func (p *plan) workloadStatus(out *v1alpha1.ModelStatus) {
	out.Workloads = nil
	for _, d := range p.deployments {
		out.Workloads = append(out.Workloads, v1alpha1.ModelWorkload{Kind: d.GetKind(), Name: d.GetName(), Form: p.chosen[d.GetLabels()[workload.LabelForm]], Replicas: int32(replicasOf(d))})
	}
	for _, s := range p.sets {
		out.Workloads = append(out.Workloads, v1alpha1.ModelWorkload{Kind: workload.LWS.Kind, Name: s.GetName(), Form: p.chosen[s.GetLabels()[workload.LabelForm]], Replicas: 1})
	}
	slices.SortFunc(out.Workloads, func(a, b v1alpha1.ModelWorkload) int { return strings.Compare(a.Name, b.Name) })
}

// estimateStatus notes how much memory a replica needs, in the form of the first replica that has a
// node or a place, or else in the first form.
func (p *plan) estimateStatus(out *v1alpha1.ModelStatus) {
	out.Estimate = nil
	if p.answer.Result == nil {
		return
	}
	f := p.estimatedForm()
	if f == nil || f.PerDevice == 0 {
		return
	}
	e := &v1alpha1.ModelEstimate{Form: f.Name, PerDevice: *mebibytes(f.PerDevice)}
	for _, part := range []struct {
		name string
		size cluster.Bytes
	}{{"weights", f.Parts.Weights}, {"KV cache", f.Parts.KVCache}, {"activations", f.Parts.Activations}, {"graphs", f.Parts.Graph}, {"overhead", f.Parts.Overhead}} {
		if part.size > 0 {
			e.Parts = append(e.Parts, v1alpha1.MemoryPart{Name: part.name, Memory: *mebibytes(part.size)})
		}
	}
	if s := p.spec.Source; s != nil {
		e.Assumed = s.Assumed
	}
	out.Estimate = e
}

// mebibytes returns an amount of memory in MiB, rounded up.
func mebibytes(b cluster.Bytes) *resource.Quantity {
	return resource.NewQuantity(int64((b+1<<20-1)>>20<<20), resource.BinarySI)
}

func (p *plan) estimatedForm() *model.Form {
	for i := range p.existing {
		if name := p.chosen[p.existing[i].form]; p.existing[i].placed && name != "" {
			return p.answer.Result.FormOf(&cluster.Alternative{Name: name})
		}
	}
	for i := range p.answer.Replicas {
		return p.answer.Result.FormOf(p.answer.Replicas[i].Form)
	}
	if len(p.answer.Forms) == 0 {
		return nil
	}
	return p.answer.Result.FormOf(&p.answer.Forms[0])
}

// refusal returns why a replica is not placed; nil if none was refused.
func (p *plan) refusal() *wire.Refusal {
	for i := range p.answer.Replicas {
		if r := p.answer.Replicas[i].Refusal; r != nil {
			return r
		}
	}
	return nil
}

// conditions sets the conditions.
func (p *plan) conditions(out *v1alpha1.ModelStatus, failed error) {
	set := func(kind string, status bool, reason, message string) {
		c := metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: cut(message), ObservedGeneration: p.model.Generation}
		if status {
			c.Status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&out.Conditions, c)
	}
	if p.invalid != nil {
		text := modelsource.ProblemText(p.invalid)
		set(v1alpha1.ConditionAdmitted, false, reasonInvalid, text)
		set(v1alpha1.ConditionPlaced, false, reasonInvalid, text)
		set(v1alpha1.ConditionReady, false, reasonInvalid, text)
		return
	}
	refusal, desired, placed := p.refusal(), p.spec.Replicas, p.placed()
	if refusal != nil && refusal.Permanent {
		set(v1alpha1.ConditionAdmitted, false, refusal.Reason, refusal.Message)
	} else {
		set(v1alpha1.ConditionAdmitted, true, reasonFeasible, "The nodes of the cluster can serve the model.")
	}
	if p.spec.Place.WholeNodes {
		p.groupCondition(out, set, refusal)
	} else {
		meta.RemoveStatusCondition(&out.Conditions, v1alpha1.ConditionGroupSelected)
	}
	p.claimCondition(out, set)
	switch {
	case failed != nil:
		set(v1alpha1.ConditionPlaced, false, reasonWriteFailed, failed.Error())
	case desired == 0:
		set(v1alpha1.ConditionPlaced, true, reasonScaledDown, "No replicas are requested.")
	case placed >= desired:
		set(v1alpha1.ConditionPlaced, true, reasonPlaced, fmt.Sprintf("All %d replicas have nodes.", desired))
	case refusal != nil:
		set(v1alpha1.ConditionPlaced, false, refusal.Reason, fmt.Sprintf("%d of %d replicas have nodes: %s", placed, desired, refusal.Message))
	default:
		set(v1alpha1.ConditionPlaced, false, reasonWaiting, fmt.Sprintf("%d of %d replicas have nodes; there is room for the others.%s", placed, desired, p.unschedulable()))
	}
	p.readyCondition(out, set, desired)
}

// unschedulable returns what berth-scheduler says about a replica for which there is room, as a
// sentence that follows another; "" if it says nothing. It knows more of the pods than the spec says,
// such as the requests of containers that the template adds.
func (p *plan) unschedulable() string {
	for i := range p.existing {
		for _, pod := range p.existing[i].pods {
			for _, c := range pod.Status.Conditions {
				if pod.Spec.NodeName == "" && c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Message != "" {
					return fmt.Sprintf(" Pod %s waits: %s", pod.Name, c.Message)
				}
			}
		}
	}
	return ""
}

func (p *plan) groupCondition(out *v1alpha1.ModelStatus, set func(string, bool, string, string), refusal *wire.Refusal) {
	switch {
	case p.group == nil && refusal != nil:
		set(v1alpha1.ConditionGroupSelected, false, refusal.Reason, refusal.Message)
	case p.group == nil:
		set(v1alpha1.ConditionGroupSelected, false, reasonScaledDown, "The group is chosen when replicas are requested.")
	case refusal != nil && refusal.Reason == groupMissing:
		set(v1alpha1.ConditionGroupSelected, false, groupMissing, refusal.Message)
	default:
		set(v1alpha1.ConditionGroupSelected, true, reasonSelected, fmt.Sprintf("All replicas are on nodes of %s; each takes %d.", out.GroupName, out.Group.NodesPerReplica))
	}
}

func (p *plan) readyCondition(out *v1alpha1.ModelStatus, set func(string, bool, string, string), desired int) {
	ready := int(out.ReadyReplicas)
	text := fmt.Sprintf("%d of %d replicas are ready.", ready, desired)
	if p.unserved != nil {
		text += fmt.Sprintf(" The model has no Service: %s.", p.unserved)
	}
	failed := slices.ContainsFunc(p.existing, func(r replica) bool { return r.health == cluster.HealthFailed })
	switch {
	case ready >= desired:
		set(v1alpha1.ConditionReady, true, reasonReady, text)
	case failed:
		set(v1alpha1.ConditionReady, false, reasonFailed, text+" A container of a replica fails; see the events and logs of its pods.")
	case p.placed() < desired:
		set(v1alpha1.ConditionReady, false, reasonNotPlaced, text)
	default:
		set(v1alpha1.ConditionReady, false, reasonStarting, text)
	}
}

// groupMissing is the reason of a refusal if no node of the chosen group exists.
const groupMissing = string(engine.GroupMissing)

func cut(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(message[:maxMessage-len("…")], "") + "…"
}

// messagePeriod is the least time after which a status is written if only messages have changed. The
// messages about models that wait for room follow what other users do.
const messagePeriod = 30 * time.Second

// onlyMessages reports whether the statuses differ in nothing but messages of conditions, at least
// in one. The progress of NodeClaims is more than a message.
func onlyMessages(a, b *v1alpha1.ModelStatus) bool {
	x := *b
	x.Conditions = slices.Clone(b.Conditions)
	differs := false
	for i := range x.Conditions {
		if was := meta.FindStatusCondition(a.Conditions, x.Conditions[i].Type); was != nil && was.Message != x.Conditions[i].Message && was.Type != v1alpha1.ConditionNodesClaimed {
			x.Conditions[i].Message, differs = was.Message, true
		}
	}
	return differs && equality.Semantic.DeepEqual(a, &x)
}

// writeStatus writes the status if it differs from what the model has, and reports whether it did.
func writeStatus(ctx context.Context, client dynamic.Interface, m *v1alpha1.Model, status *v1alpha1.ModelStatus) (wrote bool, err error) {
	if equality.Semantic.DeepEqual(&m.Status, status) {
		return false, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return false, err
	}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.KindModel, "status": fields,
		"metadata": map[string]any{"namespace": m.Namespace, "name": m.Name, "uid": string(m.UID), "resourceVersion": m.ResourceVersion},
	}}
	_, err = client.Resource(models).Namespace(m.Namespace).UpdateStatus(ctx, o, metav1.UpdateOptions{FieldManager: workload.Manager})
	return err == nil, err
}
