// Package feed turns Kubernetes objects, as informers deliver them, into facts about a
// cluster.State.
//
// Objects of one name are delivered in order; objects of different names and kinds in any
// order. A Feed keeps what it needs of the newest version of each object. The facts that it
// returns depend only on these versions and not on the order in which they arrived: after
// the same objects, the State is the same. A repeated or an older version changes nothing.
//
// A Feed has no client, no clock and no goroutine, and decides nothing. It does not modify
// the objects that it is given. It is not safe for concurrent use.
package feed

import (
	"cmp"
	"maps"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/dra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Labels and annotations that Berth reads on Kubernetes objects, in addition to those of
// package v1alpha1.
const (
	// LabelGroupName names the gang of a pod, as a label or an annotation.
	LabelGroupName = "berth.dev/group-name"
	// LabelGroupMinMember is the minimum of that gang, as a label or an annotation.
	LabelGroupMinMember = "berth.dev/group-min-member"
	// AnnotationDefaultQueue of a namespace is the queue of its pods that name none.
	AnnotationDefaultQueue = "berth.dev/default-queue"
	// AnnotationDevices of a pod lists the devices that it holds, as a JSON list of
	// cluster.Holding. A binding sets it.
	AnnotationDevices = "berth.dev/devices"
)

// ReasonBindingRefused is the reason of the condition PodScheduled of a pod for which there is
// room, and that could not be bound: the API server or a webhook refused it, or what the pod
// claims could not be allocated. Autoscalers do not react to it: more nodes would not help.
const ReasonBindingRefused = "BindingRefused"

// ForeignQueue is the queue of pods that other schedulers placed. No object can have this
// name, so that the queue is never known and the pods count for no queue.
const ForeignQueue = "(foreign)"

// Options configure a Feed.
type Options struct {
	// SchedulerNames are the values of spec.schedulerName of the pods that are placed. Other
	// pods are foreign: they are facts only while they are on a node.
	SchedulerNames []string
	// Profiles is set if each scheduler name is the name of a profile, which decides about the
	// pods that name it.
	Profiles bool
	// DevicesEnforced is set if a container gets the devices that were chosen for it, and not
	// those that the kubelet chooses. Only then may pods request a part of a device.
	DevicesEnforced bool
	// RejectionPause is for how long no task of the same shape is placed on a node that
	// rejected a pod, in nanoseconds after the rejection; 0: not at all.
	RejectionPause int64
	// Dump is set if the objects are those of a dump, of which it has what the conversion of one
	// object depends on in the others. No objects arrive later: the functions that put objects
	// return notes only, and Settle returns the facts about pods. All pods are placed, whatever
	// scheduler they name, and no plugin of Kubernetes filters nodes, so that affinity between
	// pods is part of jobs.
	Dump *convert.Environment
	// Replicas is set if pods count only while they have a node, and the health of the replicas of
	// models is reported: for a program that itself decides about replicas without a node.
	Replicas bool
	// Health is set if the health of the replicas of models is reported. Replicas includes it.
	Health bool
	// Match evaluates the selectors of claims and device classes. If it is nil, they are not
	// evaluated, and a claim counts for nothing until it is allocated.
	Match dra.Matcher
}

// Note is what a user should know about how an object was read.
type Note struct {
	Kind, Namespace, Name string
	convert.Note
}

// Feed keeps the newest version of each object. Use New.
type Feed struct {
	*dynamic
	options  Options
	env      convert.Environment // of informers: DeviceResources, PodsCounted and Profiles only, so that shapes do not depend on nodes
	versions versions
	pods     map[types.NamespacedName]*pod
	jobs     map[string]*job // by ID; each has at least one member
	groups   map[groupKey]*group
	waiting  map[groupKey]map[types.NamespacedName]*pod // by the group that their minimum depends on
	queues   map[string]*cluster.Queue
	low      map[string]string // by queue: the nearest queue of the Scavenger tier
	defaults map[string]string // by namespace: its default queue
	classes  map[string]int32  // by name: the priority of a class
	sizes    map[groupKey]int  // of a dump: how many pods each group has; set by Settle
	settling bool              // Settle was called, for a dump
	inner    map[string]bool   // of a dump: queues that have others below them; nil until it is needed
}

// New returns a Feed to which no object was delivered yet.
func New(options Options) *Feed {
	options.SchedulerNames = slices.Clone(options.SchedulerNames)
	var profiles []string
	if options.Profiles {
		profiles = options.SchedulerNames
	}
	f := &Feed{
		options: options,
		// Nodes of Kubernetes offer devices only under names that always mean devices. The
		// kubelet always reports how many pods it takes; kube-scheduler, too, places no pod
		// on a node that does not.
		env:      convert.Environment{DeviceResources: map[string]bool{}, PodsCounted: true, Profiles: profiles},
		versions: newVersions(),
		pods:     map[types.NamespacedName]*pod{},
		jobs:     map[string]*job{},
		groups:   map[groupKey]*group{},
		waiting:  map[groupKey]map[types.NamespacedName]*pod{},
		queues:   map[string]*cluster.Queue{},
		low:      map[string]string{},
		defaults: map[string]string{},
		classes:  map[string]int32{},
	}
	if options.Dump != nil {
		f.env = *options.Dump
	}
	f.dynamic = newDynamic(f)
	return f
}

// EnvironmentOf returns what the conversion of an object depends on in the objects that were
// delivered to the feed. It must not be changed.
func EnvironmentOf(f *Feed) *convert.Environment {
	env := f.env
	env.Scavengers = f.low
	return &env
}

// DefaultQueue returns the queue of the pods of the namespace that name none; "" for the default.
func DefaultQueue(f *Feed, namespace string) string { return f.defaults[namespace] }

// Pod returns the name and UID of the pod that the task stands for, and false if there is
// none.
func (f *Feed) Pod(task cluster.TaskRef) (name types.NamespacedName, uid types.UID, found bool) {
	j := f.jobs[task.Job]
	if j == nil || task.Alternative != 0 {
		return name, "", false
	}
	p := j.members[task.Name]
	if j.single && task.Name == singleTask {
		p = j.anyMember()
	}
	if p != nil {
		return p.name, types.UID(p.uid), true
	}
	return name, "", false
}

// settleAll returns the facts about all jobs that differ from what was reported, in the
// order of their IDs. If namespace is not "", it considers only the jobs of the namespace.
func (f *Feed) settleAll(namespace string) []cluster.Change {
	var out []cluster.Change
	for _, id := range slices.Sorted(maps.Keys(f.jobs)) {
		if j := f.jobs[id]; namespace == "" || j.namespace == namespace {
			out = append(out, f.settle(j)...)
		}
	}
	return out
}

// namedNotes returns the notes with the name of the object that they are about.
func namedNotes(kind string, m *metav1.ObjectMeta, list convert.Notes) []Note {
	var out []Note
	for _, n := range list {
		out = append(out, Note{kind, m.Namespace, m.Name, n})
	}
	return out
}

// nameOf returns the namespace and name of an object that has a namespace.
func nameOf(m *metav1.ObjectMeta) types.NamespacedName {
	return types.NamespacedName{Namespace: cmp.Or(m.Namespace, corev1.NamespaceDefault), Name: m.Name}
}
