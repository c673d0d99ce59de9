package intree

import (
	"slices"
	"strings"

	"github.com/berth-project/berth/engine"
	fwk "k8s.io/kube-scheduler/framework"
)

// The reasons of rejections. The subject of a rejection is the text of the in-tree plugin.
const (
	NodeCordoned         engine.Reason = "NodeCordoned"
	NodeTainted          engine.Reason = "NodeTainted"
	NodeAffinityMismatch engine.Reason = "NodeAffinityMismatch"
	NodeNameMismatch     engine.Reason = "NodeNameMismatch"
	NodeFeatureMissing   engine.Reason = "NodeFeatureMissing"
	HostPortInUse        engine.Reason = "HostPortInUse"
	VolumeInUse          engine.Reason = "VolumeInUse"
	VolumeLimitReached   engine.Reason = "VolumeLimitReached"
	VolumeInOtherZone    engine.Reason = "VolumeInOtherZone"
	VolumeNotBindable    engine.Reason = "VolumeNotBindable"
	DeviceNotAllocatable engine.Reason = "DeviceNotAllocatable"
	TopologySpreadUnmet  engine.Reason = "TopologySpreadUnmet"
	PodAffinityUnmet     engine.Reason = "PodAffinityUnmet"
	PodNotKnown          engine.Reason = "PodNotKnown"
	NodeNotKnown         engine.Reason = "NodeNotKnown"
	FilterFailed         engine.Reason = "FilterFailed"
	ResourceNotOffered   engine.Reason = "ResourceNotOffered"
)

// Reasons documents the reasons of the plugin.
func Reasons() []engine.ReasonDoc { return reasons }

// Reasons implements engine.Documented.
func (p *plugin) Reasons() []engine.ReasonDoc { return reasons }

// The cures of a reason follow from the events that its in-tree plugin registers: Wait and
// Evict if it registers the deletion of pods, Wait if it registers objects of volumes, Grow
// if it registers new nodes, and Relax if only the spec of the pod decides. A test compares them.
// DynamicResources registers the deallocation of claims instead of the deletion of pods.
var reasons = []engine.ReasonDoc{
	doc(NodeCordoned, engine.Grow|engine.Relax, "the node is unschedulable", "The node is unschedulable, and the pod does not tolerate that (NodeUnschedulable)."),
	doc(NodeTainted, engine.Grow|engine.Relax, "the node has a taint that the pod does not tolerate", "The node has a taint that the pod does not tolerate (TaintToleration)."),
	doc(NodeAffinityMismatch, engine.Grow|engine.Relax, "the node does not match the node selector or the node affinity of the pod", "The node does not match the node selector or the required node affinity of the pod (NodeAffinity)."),
	doc(NodeNameMismatch, engine.Grow|engine.Relax, "the pod names another node", "The pod names another node (NodeName)."),
	doc(NodeFeatureMissing, engine.Grow|engine.Relax, "the node lacks a feature that the pod needs", "The node does not declare a feature that the pod needs (NodeDeclaredFeatures)."),
	doc(HostPortInUse, engine.Wait|engine.Evict|engine.Grow|engine.Relax, "a host port of the pod is in use on the node", "A host port of the pod is in use on the node (NodePorts)."),
	doc(VolumeInUse, engine.Wait|engine.Evict|engine.Grow|engine.Relax, "a volume of the pod is in use", "A volume of the pod is in use by another pod and cannot be shared (VolumeRestrictions)."),
	doc(VolumeLimitReached, engine.Wait|engine.Evict|engine.Grow|engine.Relax, "the node cannot attach more volumes", "The node has as many volumes attached as its driver allows (NodeVolumeLimits)."),
	doc(VolumeInOtherZone, engine.Wait|engine.Grow|engine.Relax, "a volume of the pod is in another zone", "A volume of the pod is in another zone than the node, or a claim has no volume yet (VolumeZone)."),
	doc(VolumeNotBindable, engine.Wait|engine.Grow|engine.Relax, "a claim of the pod cannot be bound for the node", "A claim of the pod is not bound, or its volume cannot be used on the node (VolumeBinding)."),
	doc(DeviceNotAllocatable, engine.Wait|engine.Evict|engine.Grow|engine.Relax, "a resource claim of the pod cannot be allocated on the node", "A ResourceClaim of the pod cannot be allocated on the node, or is allocated for another node (DynamicResources)."),
	doc(TopologySpreadUnmet, engine.Wait|engine.Evict|engine.Grow|engine.Relax, "the pod would violate a topology spread constraint", "The pod would violate a topology spread constraint with whenUnsatisfiable DoNotSchedule (PodTopologySpread)."),
	doc(PodAffinityUnmet, engine.Wait|engine.Evict|engine.Grow|engine.Relax, "affinity or anti-affinity between pods excludes the node", "A required affinity or anti-affinity term of the pod, or the anti-affinity of a pod in the domain, excludes the node (InterPodAffinity)."),
	doc(PodNotKnown, engine.Wait, "the pod of the task is not known", "The pod of the task is not known yet, or only another version of it is, so it cannot be checked."),
	doc(NodeNotKnown, engine.Wait|engine.Grow, "the node object is not known", "The node object of Kubernetes is not known yet, so the node cannot be checked."),
	doc(ResourceNotOffered, engine.Wait|engine.Grow|engine.Relax, "the node offers devices only to resource claims", "The pod requests a resource of its containers that the node has as devices of ResourceSlices, and no DeviceClass has the name of the resource as its extendedResourceName. Claim the devices, or set that field."),
	doc(FilterFailed, engine.Wait|engine.Relax, "an in-tree plugin failed", "An in-tree plugin returned an error instead of an answer."),
}

func doc(r engine.Reason, cure engine.Cure, phrase, meaning string) engine.ReasonDoc {
	return engine.ReasonDoc{Reason: r, Cure: cure, Phrase: phrase, About: phrase + ": {subject}", Meaning: meaning}
}

// cureOf returns the documented cure of a reason.
func cureOf(r engine.Reason) engine.Cure {
	at := slices.IndexFunc(reasons, func(d engine.ReasonDoc) bool { return d.Reason == r })
	return reasons[at].Cure
}

// rejection returns a rejection with the documented cure of its reason.
func rejection(r engine.Reason, subject string) *engine.Rejection {
	return &engine.Rejection{Reason: r, Cure: cureOf(r), Subject: subject}
}

// rejectionOf returns the rejection for the status of an in-tree plugin; nil if the status
// is a success or Skip. The texts of a status have no order upstream and are sorted.
func (w *wrapped) rejectionOf(s *fwk.Status) *engine.Rejection {
	if s.IsSuccess() || s.IsSkip() {
		return nil
	}
	texts := slices.Clone(s.Reasons())
	slices.Sort(texts)
	if !s.IsRejected() {
		return rejection(FilterFailed, w.name+": "+strings.Join(texts, ", "))
	}
	return rejection(w.reason, strings.Join(texts, ", "))
}
