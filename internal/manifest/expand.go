package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxExpanded is how many pods of workloads are made at most.
const maxExpanded = 200_000

// workloadKinds are the kinds of which controllers make pods, apart from those that describe groups
// (see feed.GroupKinds) and Jobs.
var workloadKinds = []schema.GroupKind{{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "batch.volcano.sh", Kind: "Job"}}

// workloadSource returns the first part of the ID of a workload or of an object that describes a
// group.
func workloadSource(g schema.GroupKind) string {
	if s := feed.Source(g); s != "" {
		return s
	}
	if g.Group == "batch.volcano.sh" {
		return "volcanojob"
	}
	return strings.ToLower(g.Kind)
}

// expander makes the pods of workloads of a bundle.
type expander struct{ *Bundle }

// all adds the pods that controllers would make of Deployments, StatefulSets, Jobs, JobSets,
// LeaderWorkerSets, jobs of Volcano and of the Training Operator, and RayClusters of which the
// bundle has no pods. The pods have the labels and annotations by which they are grouped.
func (b expander) all() error {
	var errs Errors
	b.expanding = true
	unmade, _ := b.unmade()
	names := b.names()
	for _, o := range unmade {
		b.expand(o, names, &errs)
	}
	return errs.Err()
}

// namesInUse are names by namespace and name.
type namesInUse struct {
	workloads map[[2]string]int // how many Jobs, Deployments and StatefulSets have the name
	pods      map[[2]string]bool
}

func (b expander) names() *namesInUse {
	out := &namesInUse{map[[2]string]int{}, map[[2]string]bool{}}
	for _, o := range b.BatchJobs {
		out.workloads[[2]string{namespaceOf(o), o.Name}]++
	}
	for _, o := range b.Workloads {
		if o.GroupVersionKind().Group == "apps" {
			out.workloads[[2]string{namespaceOf(o), o.GetName()}]++
		}
	}
	for _, p := range b.Pods {
		out.pods[[2]string{namespaceOf(p), p.Name}] = true
	}
	return out
}

// expand adds the pods of one workload. See names.
func (b expander) expand(o any, names *namesInUse, errs *Errors) {
	x := &expansion{r: b.reporter(o, errs)}
	switch o := o.(type) {
	case *batchv1.Job:
		x.meta, x.id = &o.ObjectMeta, groupID[*batchv1.Job]("batchjob")(o)
		x.shared = names.workloads[[2]string{namespaceOf(o), o.Name}] > 1
		x.batchJob(o)
	case *unstructured.Unstructured:
		x.meta = &metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), CreationTimestamp: o.GetCreationTimestamp(), Labels: o.GetLabels(), Annotations: o.GetAnnotations()}
		x.id = groupID[*unstructured.Unstructured](workloadSource(o.GroupVersionKind().GroupKind()))(o)
		x.shared = names.workloads[[2]string{namespaceOf(o), o.GetName()}] > 1
		x.fields(o.Object).workload(o.GroupVersionKind().GroupKind())
	}
	names.give(x)
	if len(b.expanded)+len(x.pods) > maxExpanded {
		x.r.errorf(namePath, "with %s, --expand makes more than %d pods; split the input", x.id, maxExpanded)
		return
	}
	if b.expanded == nil {
		b.expanded, b.expansions = map[*corev1.Pod]string{}, map[string]*expansion{}
	}
	b.expansions[x.id] = x
	src := b.sources[o]
	for _, g := range x.groups {
		if src != nil {
			b.remember(g, src)
		}
	}
	for _, p := range x.pods {
		b.Pods = append(b.Pods, p)
		b.expanded[p] = x.id
		if src != nil {
			b.remember(p, src)
		}
	}
}

// give notes the names of the pods. If there are pods of these names already, the pods of a Deployment or
// a Job get other names.
func (u *namesInUse) give(x *expansion) {
	for x.random && slices.ContainsFunc(x.pods, func(p *corev1.Pod) bool { return u.pods[[2]string{namespaceOf(p), p.Name}] }) {
		for _, p := range x.pods {
			p.Name += "-x"
		}
	}
	for _, p := range x.pods {
		u.pods[[2]string{namespaceOf(p), p.Name}] = true
	}
}

// again makes the pods of a workload anew after the workload has changed.
func (b expander) again(id string) error {
	at := b.object(id)
	if !b.expanding || at == nil {
		return nil
	}
	switch at.object.(type) {
	case *batchv1.Job, *unstructured.Unstructured:
	default:
		return nil
	}
	b.Pods = slices.DeleteFunc(b.Pods, func(p *corev1.Pod) bool { return b.expanded[p] == id })
	maps.DeleteFunc(b.expanded, func(_ *corev1.Pod, of string) bool { return of == id })
	delete(b.expansions, id)
	if unmade, _ := b.unmade(); !slices.Contains(unmade, at.object) {
		return nil
	}
	var errs Errors
	b.expand(at.object, b.names(), &errs)
	return errs.Err()
}

// unmade returns the workloads of which there are no pods, in the order of their kinds and places:
// those of which a controller would make pods now, and, by the reason, how many of which it would not.
func (b expander) unmade() (out []any, held map[string]skipped) {
	if len(b.BatchJobs)+len(b.Workloads)+len(b.Groups) == 0 {
		return nil, nil
	}
	held = map[string]skipped{}
	made := b.made()
	add := func(o any, kind string, why string) {
		if why == "" {
			out = append(out, o)
			return
		}
		counts := held[why]
		counts.add(kind, 1)
		held[why] = counts
	}
	for _, j := range b.BatchJobs {
		ns := convert.CoreNamespace(&j.ObjectMeta)
		if b.expansions[groupID[*batchv1.Job]("batchjob")(j)] == nil && !made.ownerIsKnown(j) && !made.owners["Job/"+ns+"/"+j.Name] && !made.labelled[batchv1.JobNameLabel+"/"+ns+"/"+j.Name] && j.Status.Succeeded+j.Status.Failed == 0 {
			add(j, "Job", whyHeld(j.Spec.Suspend != nil && *j.Spec.Suspend, j.Spec.ManagedBy))
		}
	}
	for _, o := range slices.Concat(b.Workloads, b.Groups) {
		kind := o.GroupVersionKind().GroupKind()
		if makesPods(kind) && b.expansions[groupID[*unstructured.Unstructured](workloadSource(kind))(o)] == nil && !made.ownerIsKnown(o) && !made.has(o) && !hasEnded(o) {
			fields := tree{at: o.Object}.in("spec")
			if none, found := fields.at["replicas"].(int64); found && none == 0 {
				continue
			}
			var by *string
			if text := fields.text("managedBy"); text != "" {
				by = &text
			}
			add(o, kind.Kind, whyHeld(fields.flag("suspend") || fields.flag("runPolicy", "suspend"), by))
		}
	}
	return out, held
}

// whyHeld returns why a controller makes no pods of a workload now; "" if it does.
func whyHeld(suspended bool, managedBy *string) string {
	switch {
	case suspended:
		return "suspended"
	case managedBy != nil && *managedBy != batchv1.JobControllerName && *managedBy != "jobset.sigs.k8s.io/jobset-controller":
		return "managed by a controller of their own (managedBy)"
	}
	return ""
}

// hasEnded reports whether the status of the workload says that it has ended, so that no pods are made
// of it again.
func hasEnded(o *unstructured.Unstructured) bool {
	status := tree{at: o.Object}.in("status")
	if status.text("terminalState") != "" {
		return true
	}
	for _, c := range status.list("conditions") {
		switch c.text("type") {
		case "Complete", "Completed", "Succeeded", "Failed":
			if c.text("status") == "True" {
				return true
			}
		}
	}
	switch status.text("state", "phase") { // of a job of Volcano
	case "Completed", "Completing", "Failed", "Aborted", "Aborting", "Terminated", "Terminating":
		return true
	}
	return false
}

// madePods knows which workloads have pods in the input.
type madePods struct {
	workloads map[string]bool // KIND/NAMESPACE/NAME of the workloads
	owners    map[string]bool // KIND/NAMESPACE/NAME of owners of pods
	labelled  map[string]bool // KEY/NAMESPACE/VALUE of memberLabels of pods
	labels    map[string][]labels.Set
	withLabel map[[3]string][]labels.Set // by namespace, key and value
}

func (b expander) made() madePods {
	m := madePods{map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string][]labels.Set{}, map[[3]string][]labels.Set{}}
	for _, p := range b.Pods {
		ns := convert.CoreNamespace(&p.ObjectMeta)
		m.labels[ns] = append(m.labels[ns], labels.Set(p.Labels))
		for k, v := range p.Labels {
			at := [3]string{ns, k, v}
			m.withLabel[at] = append(m.withLabel[at], labels.Set(p.Labels))
		}
		for _, ref := range p.OwnerReferences {
			m.owners[ref.Kind+"/"+ns+"/"+ref.Name] = true
		}
		for _, key := range memberLabels {
			if v := p.Labels[key]; v != "" {
				m.labelled[key+"/"+ns+"/"+v] = true
			}
		}
	}
	for _, o := range slices.Concat(b.Workloads, b.Groups) {
		m.workloads[o.GetKind()+"/"+namespaceOf(o)+"/"+o.GetName()] = true
	}
	return m
}

func namespaceOf(o metav1.Object) string { return cmp.Or(o.GetNamespace(), corev1.NamespaceDefault) }

// ownerIsKnown reports whether the workload was made of another one in the input, or of a pod.
func (m madePods) ownerIsKnown(o metav1.Object) bool {
	ref := metav1.GetControllerOfNoCopy(o)
	return ref != nil && (ref.Kind == "Pod" || m.workloads[ref.Kind+"/"+namespaceOf(o)+"/"+ref.Name])
}

// has reports whether there are pods of the workload.
func (m madePods) has(o *unstructured.Unstructured) bool {
	kind, ns := o.GroupVersionKind().GroupKind(), namespaceOf(o)
	made := m.owners[kind.Kind+"/"+ns+"/"+o.GetName()]
	for _, key := range memberLabels {
		made = made || (memberKinds[key] == kind || memberKinds[key] == schema.GroupKind{Group: kind.Group}) && m.labelled[key+"/"+ns+"/"+o.GetName()]
	}
	if s := selectorOf(o); s != nil && !made {
		made = slices.ContainsFunc(m.likely(ns, s), func(set labels.Set) bool { return s.Matches(set) })
	}
	return made
}

// likely returns the labels of the pods that a selector may match: those with one of the labels that
// it requires, or all if it requires none.
func (m madePods) likely(namespace string, s labels.Selector) []labels.Set {
	out := m.labels[namespace]
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		if value, exact := s.RequiresExactMatch(r.Key()); exact {
			if with := m.withLabel[[3]string{namespace, r.Key(), value}]; len(with) < len(out) {
				out = with
			}
		}
	}
	return out
}

// memberLabels are the labels of pods with the name of the workload that made them.
var memberLabels = []string{
	batchv1.JobNameLabel, "job-name", "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "training.kubeflow.org/job-name", "ray.io/cluster", "volcano.sh/job-name",
}

// memberKinds are the kinds of workloads that memberLabels name. Without a kind, it is any of the group.
var memberKinds = map[string]schema.GroupKind{
	"training.kubeflow.org/job-name":   {Group: "kubeflow.org"},
	"jobset.sigs.k8s.io/jobset-name":   {Group: "jobset.x-k8s.io", Kind: "JobSet"},
	"leaderworkerset.sigs.k8s.io/name": {Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"},
	"ray.io/cluster":                   {Group: "ray.io", Kind: "RayCluster"},
	"volcano.sh/job-name":              {Group: "batch.volcano.sh", Kind: "Job"},
}

// makesPods reports whether a controller makes pods of objects of the kind.
func makesPods(k schema.GroupKind) bool { return k.Kind != "PodGroup" }

// selectorOf returns the selector of a Deployment or a StatefulSet; nil if it has none.
func selectorOf(o *unstructured.Unstructured) labels.Selector {
	if o.GroupVersionKind().Group != "apps" {
		return nil
	}
	fields, _, _ := unstructured.NestedMap(o.Object, "spec", "selector")
	var s metav1.LabelSelector
	if fields == nil || runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &s) != nil {
		return nil
	}
	out, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil || out.Empty() {
		return nil
	}
	return out
}

// MadeGroups returns the objects that describe groups of pods which were made of workloads, as their
// controllers would make them.
func MadeGroups(b *Bundle) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, id := range slices.Sorted(maps.Keys(b.expansions)) {
		out = append(out, b.expansions[id].groups...)
	}
	return out
}
