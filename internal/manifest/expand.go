package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
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
	for _, o := range b.unmade() {
		b.expand(o, &errs)
	}
	return errs.Err()
}

// expand adds the pods of one workload.
func (b expander) expand(o any, errs *Errors) {
	x := &expansion{r: b.reporter(o, errs)}
	switch o := o.(type) {
	case *batchv1.Job:
		x.meta, x.id = &o.ObjectMeta, groupID[*batchv1.Job]("batchjob")(o)
		x.batchJob(o)
	case *unstructured.Unstructured:
		x.meta = &metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), CreationTimestamp: o.GetCreationTimestamp()}
		x.id = groupID[*unstructured.Unstructured](workloadSource(o.GroupVersionKind().GroupKind()))(o)
		x.fields(o.Object).workload(o.GroupVersionKind().GroupKind())
	}
	if len(b.expanded)+len(x.pods) > maxExpanded {
		x.r.errorf(namePath, "with %s, --expand makes more than %d pods; split the input", x.id, maxExpanded)
		return
	}
	if b.expanded == nil {
		b.expanded = map[*corev1.Pod]string{}
	}
	src := b.sources[o]
	for _, p := range x.pods {
		b.Pods = append(b.Pods, p)
		b.expanded[p] = x.id
		if src != nil {
			b.remember(p, src)
		}
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
	had := len(b.Pods)
	b.Pods = slices.DeleteFunc(b.Pods, func(p *corev1.Pod) bool { return b.expanded[p] == id })
	maps.DeleteFunc(b.expanded, func(_ *corev1.Pod, of string) bool { return of == id })
	if had == len(b.Pods) && !slices.Contains(b.unmade(), at.object) {
		return nil
	}
	var errs Errors
	b.expand(at.object, &errs)
	return errs.Err()
}

// unmade returns the workloads of which there are no pods, in the order of their kinds and places.
func (b expander) unmade() []any {
	var out []any
	if len(b.BatchJobs)+len(b.Workloads)+len(b.Groups) == 0 {
		return nil
	}
	owners, labelled := map[string]bool{}, map[string]bool{} // by kind or label, namespace and name
	byNamespace := map[string][]labels.Set{}
	for _, p := range b.Pods {
		ns := convert.CoreNamespace(&p.ObjectMeta)
		byNamespace[ns] = append(byNamespace[ns], labels.Set(p.Labels))
		for _, ref := range p.OwnerReferences {
			owners[ref.Kind+"/"+ns+"/"+ref.Name] = true
		}
		for _, key := range memberLabels {
			if v := p.Labels[key]; v != "" {
				labelled[key+"/"+ns+"/"+v] = true
			}
		}
	}
	for _, j := range b.BatchJobs {
		ns := convert.CoreNamespace(&j.ObjectMeta)
		of := slices.ContainsFunc(j.OwnerReferences, func(r metav1.OwnerReference) bool { return r.Controller != nil && *r.Controller })
		if !of && !owners["Job/"+ns+"/"+j.Name] && !labelled[batchv1.JobNameLabel+"/"+ns+"/"+j.Name] && j.Status.Succeeded+j.Status.Failed == 0 && (j.Spec.Suspend == nil || !*j.Spec.Suspend) {
			out = append(out, j)
		}
	}
	for _, o := range slices.Concat(b.Workloads, b.Groups) {
		kind, ns := o.GroupVersionKind().GroupKind(), o.GetNamespace()
		if ns == "" {
			ns = corev1.NamespaceDefault
		}
		if !makesPods(kind) || metav1.GetControllerOfNoCopy(o) != nil {
			continue
		}
		made := owners[kind.Kind+"/"+ns+"/"+o.GetName()]
		for _, key := range memberLabels {
			made = made || memberKinds[key] == kind && labelled[key+"/"+ns+"/"+o.GetName()]
		}
		if s := selectorOf(o); s != nil {
			made = made || slices.ContainsFunc(byNamespace[ns], func(set labels.Set) bool { return s.Matches(set) })
		}
		if !made {
			out = append(out, o)
		}
	}
	return out
}

// memberLabels are the labels of pods with the name of the workload that made them.
var memberLabels = []string{
	batchv1.JobNameLabel, "job-name", "jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "training.kubeflow.org/job-name", "ray.io/cluster", "volcano.sh/job-name",
}

var memberKinds = map[string]schema.GroupKind{
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

// unmadeNote says which workloads have no pods; "" if none.
func (b expander) unmadeNote() string {
	counts := skipped{}
	for _, o := range b.unmade() {
		kind := "Job"
		if u, is := o.(*unstructured.Unstructured); is {
			kind = u.GetKind()
		}
		counts.add(kind, 1)
	}
	if len(counts) == 0 {
		return ""
	}
	return "without pods in the input, and therefore not placed: " + counts.text() + "; --expand makes their pods"
}

// expandedNote says how many pods were made; "" if none.
func (b expander) expandedNote() string {
	if len(b.expanded) == 0 {
		return ""
	}
	workloads := map[string]bool{}
	for _, id := range b.expanded {
		workloads[id] = true
	}
	return "made of their specs, because of --expand: " + english.Count(len(b.expanded), "pod") + " of " + english.Count(len(workloads), "workload")
}

// expansion makes the pods of one workload.
type expansion struct {
	meta *metav1.ObjectMeta
	id   string
	r    reporter
	pods []*corev1.Pod
}

// add makes a pod of the template.
func (x *expansion) add(name string, t *corev1.PodTemplateSpec, labels, annotations map[string]string) {
	if len(x.pods) > maxExpanded {
		return
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: x.meta.Namespace, Name: name, CreationTimestamp: x.meta.CreationTimestamp, Labels: maps.Clone(t.Labels), Annotations: maps.Clone(t.Annotations),
	}, Spec: *t.Spec.DeepCopy()}
	set := func(to *map[string]string, from map[string]string) {
		if *to == nil && len(from) > 0 {
			*to = map[string]string{}
		}
		maps.Copy(*to, from)
	}
	set(&p.Labels, labels)
	set(&p.Annotations, annotations)
	p.Spec.NodeName = ""
	x.pods = append(x.pods, p)
}

// count checks a number of pods.
func (x *expansion) count(n int64, at ...any) int {
	if n < 0 || n > maxExpanded {
		var p path
		x.r.errorf(p.Add(at...), "want from 0 to %d pods, have %d", maxExpanded, n)
		return 0
	}
	return int(n)
}

func (x *expansion) batchJob(o *batchv1.Job) {
	pods := int64(1)
	if o.Spec.Parallelism != nil {
		pods = int64(*o.Spec.Parallelism)
	}
	if o.Spec.Completions != nil {
		pods = min(pods, int64(*o.Spec.Completions))
	}
	indexed := o.Spec.CompletionMode != nil && *o.Spec.CompletionMode == batchv1.IndexedCompletion
	x.jobPods(o.Name, x.count(pods, "spec", "parallelism"), indexed, &o.Spec.Template, map[string]string{batchv1.JobNameLabel: o.Name})
	yes := true
	for _, p := range x.pods {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: o.Name, Controller: &yes}}
	}
}

// jobPods adds the pods of a Job.
func (x *expansion) jobPods(job string, pods int, indexed bool, t *corev1.PodTemplateSpec, labels map[string]string) {
	for i := range pods {
		var annotations map[string]string
		if indexed {
			annotations = map[string]string{batchv1.JobCompletionIndexAnnotation: strconv.Itoa(i)}
		}
		x.add(job+"-"+strconv.Itoa(i), t, labels, annotations)
	}
}

// tree reads the fields of a workload.
type tree struct {
	*expansion
	at map[string]any
}

func (x *expansion) fields(at map[string]any) tree { return tree{x, at} }

func (t tree) in(steps ...string) tree {
	m, _, _ := unstructured.NestedMap(t.at, steps...)
	return tree{t.expansion, m}
}

func (t tree) number(otherwise int64, steps ...string) int64 {
	v, found, err := unstructured.NestedFieldNoCopy(t.at, steps...)
	if n, is := v.(int64); err == nil && found && is {
		return n
	}
	return otherwise
}

func (t tree) text(steps ...string) string {
	s, _, _ := unstructured.NestedString(t.at, steps...)
	return s
}

func (t tree) list(steps ...string) []tree {
	v, _, _ := unstructured.NestedSlice(t.at, steps...)
	var out []tree
	for _, e := range v {
		m, _ := e.(map[string]any)
		out = append(out, tree{t.expansion, m})
	}
	return out
}

// template decodes the pod template at the path. It returns nil if there is none.
func (t tree) template(steps ...string) *corev1.PodTemplateSpec {
	m, found, err := unstructured.NestedMap(t.at, steps...)
	if err != nil || !found {
		return nil
	}
	out := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, out); err != nil {
		t.r.errorf(nil, "the pod template cannot be read: %v", err)
		return nil
	}
	return out
}

// workload makes the pods of a workload of the kind.
func (t tree) workload(kind schema.GroupKind) {
	spec, name := t.in("spec"), t.meta.Name
	switch kind.Kind {
	case "Deployment", "StatefulSet":
		if p := spec.template("template"); p != nil {
			for i := range t.count(spec.number(1, "replicas"), "spec", "replicas") {
				t.add(name+"-"+strconv.Itoa(i), p, nil, nil)
			}
		}
	case "JobSet":
		t.jobSet(spec)
	case "LeaderWorkerSet":
		t.leaderWorkerSet(spec)
	case "RayCluster":
		t.rayCluster(spec)
	case "Job":
		t.volcanoJob(spec)
	default:
		t.trainingJob(spec)
	}
}

func (t tree) jobSet(spec tree) {
	const prefix = "jobset.sigs.k8s.io/"
	name := t.meta.Name
	for _, r := range spec.list("replicatedJobs") {
		job := r.in("template", "spec")
		p := job.template("template")
		if p == nil {
			continue
		}
		pods := job.number(1, "parallelism")
		pods = min(pods, job.number(pods, "completions"))
		for k := range t.count(r.number(1, "replicas"), "spec", "replicatedJobs") {
			of := fmt.Sprintf("%s-%s-%d", name, r.text("name"), k)
			t.jobPods(of, t.count(pods, "spec", "replicatedJobs"), true, p, map[string]string{
				prefix + "jobset-name": name, prefix + "replicatedjob-name": r.text("name"), prefix + "job-index": strconv.Itoa(k), batchv1.JobNameLabel: of,
			})
		}
	}
}

func (t tree) leaderWorkerSet(spec tree) {
	const prefix = "leaderworkerset.sigs.k8s.io/"
	name := t.meta.Name
	workers := spec.template("leaderWorkerTemplate", "workerTemplate")
	leader := spec.template("leaderWorkerTemplate", "leaderTemplate")
	if leader == nil {
		leader = workers
	}
	if workers == nil {
		return
	}
	size := t.count(spec.number(1, "leaderWorkerTemplate", "size"), "spec", "leaderWorkerTemplate", "size")
	for g := range t.count(spec.number(1, "replicas"), "spec", "replicas") {
		for w := range size {
			p, of := workers, fmt.Sprintf("%s-%d-%d", name, g, w)
			if w == 0 {
				p, of = leader, fmt.Sprintf("%s-%d", name, g)
			}
			t.add(of, p, map[string]string{prefix + "name": name, prefix + "group-index": strconv.Itoa(g), prefix + "worker-index": strconv.Itoa(w)}, nil)
		}
	}
}

func (t tree) rayCluster(spec tree) {
	name := t.meta.Name
	if p := spec.template("headGroupSpec", "template"); p != nil {
		t.add(name+"-head", p, map[string]string{"ray.io/cluster": name, "ray.io/group": "headgroup"}, nil)
	}
	for _, g := range spec.list("workerGroupSpecs") {
		p := g.template("template")
		if p == nil {
			continue
		}
		replicas := g.number(g.number(0, "minReplicas"), "replicas")
		for i := range t.count(replicas*max(0, min(g.number(1, "numOfHosts"), maxExpanded)), "spec", "workerGroupSpecs") {
			t.add(fmt.Sprintf("%s-%s-worker-%d", name, g.text("groupName"), i), p, map[string]string{"ray.io/cluster": name, "ray.io/group": g.text("groupName")}, nil)
		}
	}
}

// volcanoJob makes the pods of a job of Volcano, whose controller makes its PodGroup too. The pods
// state the minimum.
func (t tree) volcanoJob(spec tree) {
	name, total := t.meta.Name, int64(0)
	for _, task := range spec.list("tasks") {
		total += int64(t.count(task.number(1, "replicas"), "spec", "tasks"))
	}
	least := strconv.FormatInt(max(1, min(spec.number(total, "minAvailable"), convert.MaxTasks)), 10)
	for k, task := range spec.list("tasks") {
		p, of := task.template("template"), task.text("name")
		if p == nil {
			continue
		}
		if of == "" {
			of = "default" + strconv.Itoa(k)
		}
		for i := range t.count(task.number(1, "replicas"), "spec", "tasks") {
			annotations := map[string]string{
				"scheduling.k8s.io/group-name": name, "scheduling.volcano.sh/group-min-member": least, "volcano.sh/task-spec": of, "volcano.sh/task-index": strconv.Itoa(i),
			}
			if queue := spec.text("queue"); queue != "" {
				annotations["volcano.sh/queue-name"] = queue
			}
			t.add(fmt.Sprintf("%s-%s-%d", name, of, i), p, map[string]string{"volcano.sh/job-name": name}, annotations)
			if class := spec.text("priorityClassName"); class != "" && len(t.pods) > 0 {
				if s := &t.pods[len(t.pods)-1].Spec; s.PriorityClassName == "" {
					s.PriorityClassName = class
				}
			}
		}
	}
}

// trainingJob makes the pods of a job of the Training Operator or of the MPI Operator.
func (t tree) trainingJob(spec tree) {
	const prefix = "training.kubeflow.org/"
	name := t.meta.Name
	for _, key := range slices.Sorted(maps.Keys(spec.at)) {
		if !strings.HasSuffix(key, "ReplicaSpecs") {
			continue
		}
		types := spec.in(key)
		for _, kind := range slices.Sorted(maps.Keys(types.at)) {
			p, replica := types.template(kind, "template"), strings.ToLower(kind)
			if p == nil {
				continue
			}
			for i := range t.count(types.number(1, kind, "replicas"), "spec", key, kind, "replicas") {
				t.add(fmt.Sprintf("%s-%s-%d", name, replica, i), p, map[string]string{prefix + "job-name": name, prefix + "replica-type": replica, prefix + "replica-index": strconv.Itoa(i)}, nil)
			}
		}
	}
}
