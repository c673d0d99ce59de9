package feed

import (
	"cmp"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"github.com/berth-project/berth/internal/podkind"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

const kindPod = "Pod"

// singleTask is the name of the task of a pod that is a job of its own.
const singleTask = "0"

// pod is what is kept of a pod.
type pod struct {
	name    types.NamespacedName
	uid     string
	foreign bool
	member  membership
	isTask  bool // it is a task now; otherwise nothing of it is in State

	labels      map[string]string
	queue       string // the queue that it names; "" for none
	preemptible string // "true", "false", or "" if it does not say
	priority    int32
	delay       int64
	created     int64
	affinity    []cluster.JobTerm // of a dump only; the plugins of Kubernetes read it otherwise
	shape       cluster.Shape     // Preemptible is that of the job, and is set when it is reported

	plain         cluster.Need           // what its containers request; shape.Need has what it claims, too
	claims        []types.NamespacedName // of its ResourceClaims, as far as their names are known
	extended      bool                   // the last of claims was made for what its containers request
	remarks       []string               // on what it claims
	missing       int                    // how many claims of a running pod the dump does not have; each counts as one device
	uncounted     bool                   // they do not count, because the pod has devices of another kind or the node has none
	problem       string                 // why what it claims cannot be counted; "" if it can
	complete      bool                   // all of claims are known
	mayCount      bool                   // devices of claims may count for it
	taskIfValid   bool                   // it is a task if what it claims can be counted
	taskIfInvalid bool                   // it is a task also otherwise
	annotated     []cluster.Holding      // the devices that its annotation lists
	shares        []string               // of a dump: the devices of which it has parts by KAI

	model  string         // the model that it serves; "" if it serves none
	health cluster.Health // of a pod of a model

	place    convert.Placement
	devices  []cluster.Holding
	ended    cluster.Status // cluster.Pending if it has not ended
	rejected int64          // until when its node is avoided; see cluster.TaskGone

	job  *job   // the job that it is a member of; nil if it is no task
	said report // what was reported about it as a member of job
}

// report is what was reported about a task, so that only differences are reported.
type report struct {
	task    *cluster.Task // nil if it was not reported
	place   convert.Placement
	devices []cluster.Holding
	ended   cluster.Status
	// respecified is set if the shape has changed while the pod had no node and could be placed:
	// State may have placed it with another shape.
	respecified bool
	complete    bool // all of its claims were known
}

// task returns the name of the task that the pod is.
func (p *pod) task() string {
	if p.member.single() {
		return singleTask
	}
	return p.name.Name
}

// ref returns the task that the pod is, which must be a member of a job.
func (p *pod) ref() cluster.TaskRef { return cluster.TaskRef{Job: p.job.id, Name: p.task()} }

// PutPod reports a pod as it is now.
//
// A pod becomes a task when no scheduling gate holds it back. It is pending until it has a
// node, is Releasing when it is being deleted, and ends when it has succeeded or failed. A
// foreign pod is a task that is not preemptible while it is on a node. A pod that cannot be
// placed as it requests is no task until it has a node.
func (f *Feed) PutPod(o *corev1.Pod) ([]cluster.Change, []Note) {
	isNew, replaced := f.versions.admit(kindPod, &o.ObjectMeta)
	if !isNew {
		return nil, nil
	}
	p, list := f.readPod(o)
	old := f.pods[p.name]
	f.pods[p.name] = p
	var out []cluster.Change
	if old != nil {
		f.unlinkClaims(old)
		f.unlink(old)
		if replaced {
			out = f.leave(old)
		} else {
			p.job, p.said = old.job, old.said
			if p.job != nil {
				p.job.drop(old)
			}
		}
	}
	f.link(p)
	f.linkClaims(p)
	f.claimDevices(p)
	out = append(out, f.place(p)...)
	if note := p.waits(f.groups[p.group()] != nil); note != nil && f.options.Dump == nil {
		list = append(list, *note)
	}
	if p.problem != "" && !p.foreign {
		list = append(list, p.claimNote())
	}
	others, notes := f.resettlePods(f.sharers(old, p))
	return append(out, others...), append(namedNotes(kindPod, &o.ObjectMeta, list), notes...)
}

// DeletePod reports that the pod was removed. An empty UID means any pod of this name.
func (f *Feed) DeletePod(name types.NamespacedName, uid types.UID) []cluster.Change {
	if !f.versions.remove(kindPod, name, uid) {
		return nil
	}
	p := f.pods[name]
	delete(f.pods, name)
	f.unlink(p)
	f.unlinkClaims(p)
	others, _ := f.resettlePods(f.sharers(p, nil))
	return append(f.leave(p), others...)
}

// readPod returns what is kept of the pod.
func (f *Feed) readPod(o *corev1.Pod) (*pod, convert.Notes) {
	p := &pod{
		name: nameOf(&o.ObjectMeta), uid: string(o.UID),
		foreign: f.options.Dump == nil && !slices.Contains(f.options.SchedulerNames, o.Spec.SchedulerName),
		member:  membership{source: bySelf, name: o.Name, min: 1},
		ended:   endOf(o),
	}
	var own convert.Notes
	if !p.foreign {
		p.member = memberOf(o, &own)
	}
	// Pod returns no job for a pod that is no task now. What the pod requests is needed
	// nevertheless, if it has ended: it then counts for the minimum of its group.
	bare := *o
	bare.Status.Phase, bare.DeletionTimestamp, bare.Spec.SchedulingGates = corev1.PodPending, nil, nil
	j, list := convert.Pod(&bare, &f.env)
	// What convert ignores of a pod, such as volumes and host ports, the plugins of Kubernetes
	// read.
	list = slices.DeleteFunc(list, func(n convert.Note) bool { return n.Severity == convert.Ignored })
	if convert.Gated(o) && f.options.Dump == nil {
		list = append(list, convert.PodNotes(o)...)
	}
	p.labels, p.queue, p.priority, p.delay, p.created = j.Labels, queueOf(o, j.Queue), j.Priority, j.PreemptionDelay, j.Created
	p.shape = *j.Alternatives[0].Tasks[0].Shape
	if f.options.Dump != nil {
		p.affinity = j.Affinity
	} else if key, err := podkind.Key(o); err == nil {
		p.shape.Key = key
	} else {
		list = append(list, convert.Note{Severity: convert.Invalid, Path: field.Path{"spec"}, Message: err.Error()})
	}
	p.preemptible = preemptibility(o, j.Preemptible)
	if f.options.Dump != nil {
		p.missing = f.missingClaims(o)
		own = append(own, p.dumpNotes(o, f.env.Profiles)...)
	}
	list = append(list, f.readDevices(o, p)...)
	p.place, _ = convert.PodPlacement(o)
	p.place.Started = cmp.Or(p.place.Started, boundAt(o))
	p.taskIfValid, p.taskIfInvalid = f.isTask(o, p, list.Invalid()), f.isTask(o, p, true)
	p.mayCount = p.taskIfValid && p.ended == cluster.Pending
	p.rejected = rejectedUntil(o, f.options.RejectionPause)
	if p.foreign {
		p.queue, p.preemptible, p.delay = ForeignQueue, "false", 0
		list = nil
	}
	return p, append(list, own...)
}

// isTask reports whether the pod is a task now. Something else may have given an invalid
// pod a node: then its room is taken, and it is a task.
func (f *Feed) isTask(o *corev1.Pod, p *pod, invalid bool) bool {
	switch {
	case p.ended != cluster.Pending:
		return !p.member.single()
	case o.Spec.NodeName != "":
		return true
	}
	return !p.foreign && !invalid && !convert.Gated(o) && o.DeletionTimestamp == nil && !f.options.Replicas
}

func endOf(o *corev1.Pod) cluster.Status {
	switch o.Status.Phase {
	case corev1.PodSucceeded:
		return cluster.Succeeded
	case corev1.PodFailed:
		return cluster.Failed
	}
	return cluster.Pending
}

// queueOf returns the queue that the pod names, by Berth's label or annotation or by those
// of other schedulers.
func queueOf(o *corev1.Pod, own string) string {
	for _, q := range []string{
		own, o.Labels["kai.scheduler/queue"], o.Labels["runai/queue"], o.Annotations["scheduling.volcano.sh/queue-name"],
		o.Labels["volcano.sh/queue-name"], o.Annotations["volcano.sh/queue-name"],
	} {
		if q != "" {
			return q
		}
	}
	return ""
}

// preemptibility returns "true" or "false", or "" if the pod does not say. own is what
// Berth's label or annotation says, if there is one.
func preemptibility(o *corev1.Pod, own bool) string {
	if o.Labels[v1alpha1.LabelPreemptible] != "" || o.Annotations[v1alpha1.LabelPreemptible] != "" {
		if own {
			return "true"
		}
		return "false"
	}
	switch o.Labels["kai.scheduler/preemptibility"] {
	case "preemptible":
		return "true"
	case "non-preemptible":
		return "false"
	}
	for _, v := range []string{o.Labels["volcano.sh/preemptable"], o.Annotations["volcano.sh/preemptable"]} {
		if v == "true" || v == "false" {
			return v
		}
	}
	return ""
}

// boundAt returns when the pod was bound to its node; 0 if that is not known. It counts as the
// start of a pod that the kubelet has not started.
func boundAt(o *corev1.Pod) int64 {
	for i := range o.Status.Conditions {
		if c := &o.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return convert.Nanoseconds(&c.LastTransitionTime)
		}
	}
	return 0
}

// rejectedUntil returns until when the node of the pod is avoided, because the kubelet
// rejected the pod. The kubelet sets the start time of the pod then. If pause is 0, no node is
// avoided.
func rejectedUntil(o *corev1.Pod, pause int64) int64 {
	at := convert.Nanoseconds(o.Status.StartTime)
	if pause == 0 || o.Status.Phase != corev1.PodFailed || at == 0 || !isRejection(o.Status.Reason) {
		return 0
	}
	return at + pause
}

// isRejection reports whether the reason of a failed pod means that the kubelet did not
// admit it.
func isRejection(reason string) bool {
	switch reason {
	case "UnexpectedAdmissionError", "NodeAffinity", "NodePorts", "TopologyAffinityError", "AppArmor", "InvalidNodeInfo":
		return true
	}
	const prefix = "OutOf" // OutOfcpu, OutOfmemory, OutOfnvidia.com/gpu, …
	return len(reason) > len(prefix) && reason[:len(prefix)] == prefix
}

// waits returns a note if the pod is not considered because its group is not known or
// states no minimum.
func (p *pod) waits(described bool) *convert.Note {
	if p.job == nil || p.job.put != nil || p.ended != cluster.Pending || p.place.Node != "" {
		return nil
	}
	message := "waiting for the object that describes their group"
	if !p.member.object || described {
		message = "waiting because the minimum of their group is not valid"
	}
	return &convert.Note{Severity: convert.Inactive, Path: field.Path{"metadata"}, Message: message, Detail: p.member.source + " " + p.name.Namespace + "/" + p.member.name}
}
