package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/feed"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// workload makes the pods of a workload of the kind.
func (t tree) workload(kind schema.GroupKind) {
	spec, name := t.in("spec"), t.meta.Name
	switch kind.Kind {
	case "Deployment", "StatefulSet":
		if kind.Kind == "Deployment" {
			name = t.stem("deployment")
		}
		if p := spec.template("template"); p != nil {
			first, claims := spec.number(0, "ordinals", "start"), spec.names("volumeClaimTemplates")
			for i := range t.count(spec.number(1, "replicas"), "spec", "replicas") {
				claimVolumes(t.add(name+"-"+strconv.FormatInt(first+int64(i), 10), p, nil, nil), claims)
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

// The annotations of JobSets and LeaderWorkerSets by which each of their parts has a domain of its
// own.
const (
	exclusiveJobs   = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	exclusiveByNode = "alpha.jobset.sigs.k8s.io/node-selector" // by labels and taints of nodes, which an administrator sets
	exclusiveGroups = "leaderworkerset.sigs.k8s.io/exclusive-topology"
)

func (t tree) jobSet(spec tree) {
	const prefix = "jobset.sigs.k8s.io/"
	name := t.meta.Name
	var claims []string
	for _, policy := range spec.list("volumeClaimPolicies") {
		claims = append(claims, policy.names("templates")...)
	}
	for _, r := range spec.list("replicatedJobs") {
		job := r.in("template", "spec")
		p := job.template("template")
		if p == nil {
			continue
		}
		annotations, _, _ := unstructured.NestedStringMap(r.at, "template", "metadata", "annotations")
		level := cmp.Or(annotations[exclusiveJobs], t.meta.Annotations[exclusiveJobs])
		_, here := annotations[exclusiveByNode]
		_, everywhere := t.meta.Annotations[exclusiveByNode]
		pods := job.number(1, "parallelism")
		pods = min(pods, job.number(pods, "completions"))
		for k := range t.count(r.number(1, "replicas"), "spec", "replicatedJobs") {
			of, first := fmt.Sprintf("%s-%s-%d", name, r.text("name"), k), len(t.pods)
			t.jobPods(of, t.count(pods, "spec", "replicatedJobs"), true, p, map[string]string{
				prefix + "jobset-name": name, prefix + "replicatedjob-name": r.text("name"), prefix + "job-index": strconv.Itoa(k), batchv1.JobNameLabel: of,
			})
			for _, pod := range t.pods[first:] {
				claimVolumes(pod, claims)
			}
			if level != "" {
				t.exclusiveJob(of, level, here || everywhere, t.pods[first:])
			}
		}
	}
}

// exclusiveJob gives the pods of one Job of a JobSet a domain of their own. The controller then creates
// the first pod of each Job before the others, so that the JobSet is no gang; each of its Jobs is.
func (t tree) exclusiveJob(job, level string, byNode bool, pods []*corev1.Pod) {
	const selector, taint = "alpha.jobset.sigs.k8s.io/namespaced-job", "alpha.jobset.sigs.k8s.io/no-schedule"
	for _, p := range pods {
		if byNode {
			if p.Spec.NodeSelector == nil {
				p.Spec.NodeSelector = map[string]string{}
			}
			p.Spec.NodeSelector[selector] = cmp.Or(t.meta.Namespace, corev1.NamespaceDefault) + "_" + job
			p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})
			continue
		}
		exclusive(p, "jobset.sigs.k8s.io/job-key", t.keyOf(job), level, true)
		if p.Annotations == nil {
			p.Annotations = map[string]string{}
		}
		p.Annotations[exclusiveJobs] = level
		p.Annotations[feed.LabelGroupName], p.Annotations[feed.LabelGroupMinMember] = job, strconv.Itoa(len(pods))
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
	level, claims := t.meta.Annotations[exclusiveGroups], spec.names("leaderWorkerTemplate", "volumeClaimTemplates")
	size := t.count(spec.number(1, "leaderWorkerTemplate", "size"), "spec", "leaderWorkerTemplate", "size")
	for g := range t.count(spec.number(1, "replicas"), "spec", "replicas") {
		for w := range size {
			p, of := workers, fmt.Sprintf("%s-%d-%d", name, g, w)
			if w == 0 {
				p, of = leader, fmt.Sprintf("%s-%d", name, g)
			}
			pod := t.add(of, p, map[string]string{prefix + "name": name, prefix + "group-index": strconv.Itoa(g), prefix + "worker-index": strconv.Itoa(w)}, nil)
			claimVolumes(pod, claims)
			if level != "" {
				exclusive(pod, prefix+"group-key", t.keyOf(fmt.Sprintf("%s-%d", name, g)), level, false)
			}
		}
	}
}

func (t tree) rayCluster(spec tree) {
	name := t.meta.Name
	labels := func(group string) map[string]string {
		out := map[string]string{"ray.io/cluster": name, "ray.io/group": group}
		for _, key := range []string{"kai.scheduler/queue", "volcano.sh/queue-name"} { // the operator copies them to pods
			if v := t.meta.Labels[key]; v != "" {
				out[key] = v
			}
		}
		return out
	}
	add := func(of string, p *corev1.PodTemplateSpec, group string) *corev1.Pod {
		pod := t.add(of, p, labels(group), nil)
		if class := t.meta.Labels["ray.io/priority-class-name"]; class != "" && pod != nil && pod.Spec.PriorityClassName == "" {
			pod.Spec.PriorityClassName = class
		}
		return pod
	}
	if p := spec.template("headGroupSpec", "template"); p != nil {
		if head := add(name+"-head", p, "headgroup"); head != nil && spec.flag("enableInTreeAutoscaling") {
			head.Spec.Containers = append(head.Spec.Containers, spec.autoscaler())
		}
	}
	for _, g := range spec.list("workerGroupSpecs") {
		p := g.template("template")
		if p == nil || g.flag("suspend") {
			continue
		}
		least := g.number(0, "minReplicas")
		replicas := max(least, min(g.number(least, "replicas"), g.number(maxExpanded, "maxReplicas")))
		for i := range t.count(replicas*max(0, min(g.number(1, "numOfHosts"), maxExpanded)), "spec", "workerGroupSpecs") {
			add(fmt.Sprintf("%s-%s-worker-%d", name, g.text("groupName"), i), p, g.text("groupName"))
		}
	}
}

// autoscaler returns the container that the operator of Ray adds to the head of a cluster that scales
// by itself, with what it requests unless the spec says otherwise.
func (t tree) autoscaler() corev1.Container {
	own := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("512Mi")}
	out := corev1.Container{Name: "autoscaler", Resources: corev1.ResourceRequirements{Requests: own, Limits: own}}
	if given := t.in("autoscalerOptions", "resources").at; given != nil {
		var r corev1.ResourceRequirements
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(given, &r); err != nil {
			t.r.errorf(nil, "spec.autoscalerOptions.resources cannot be read: %v", err)
		} else {
			out.Resources = r
		}
	}
	return out
}

// volcanoJob makes the pods of a job of Volcano, and its PodGroup, which the controller makes too.
func (t tree) volcanoJob(spec tree) {
	name, total, least := t.meta.Name, int64(0), map[string]any{}
	tasks := spec.list("tasks")
	for k, task := range tasks {
		replicas := int64(t.count(task.number(1, "replicas"), "spec", "tasks"))
		total += replicas
		least[taskName(task, k)] = task.number(replicas, "minAvailable")
	}
	group := map[string]any{"minMember": spec.number(total, "minAvailable"), "minTaskMember": least}
	for _, key := range []string{"queue", "priorityClassName", "networkTopology"} {
		if v, found := spec.at[key]; found {
			group[key] = v
		}
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "spec": group}}
	u.SetName(name)
	u.SetNamespace(t.meta.Namespace)
	u.SetCreationTimestamp(t.meta.CreationTimestamp)
	t.groups = append(t.groups, u)
	for k, task := range tasks {
		p, of := task.template("template"), taskName(task, k)
		if p == nil {
			continue
		}
		if len(task.in("dependsOn").at) > 0 {
			t.unread("dependsOn of tasks")
		}
		for i := range t.count(task.number(1, "replicas"), "spec", "tasks") {
			pod := t.add(fmt.Sprintf("%s-%s-%d", name, of, i), p, map[string]string{"volcano.sh/job-name": name}, map[string]string{
				"scheduling.k8s.io/group-name": name, "volcano.sh/task-spec": of, "volcano.sh/task-index": strconv.Itoa(i),
			})
			spec.volcanoDefaults(pod)
			if policy := task.text("topologyPolicy"); policy != "" && policy != "none" {
				t.unread("topologyPolicy of tasks")
			}
		}
	}
}

// volcanoDefaults sets what the job says for all its pods.
func (t tree) volcanoDefaults(p *corev1.Pod) {
	if p == nil {
		return
	}
	s := &p.Spec
	s.PriorityClassName, s.SchedulerName = cmp.Or(s.PriorityClassName, t.text("priorityClassName")), cmp.Or(s.SchedulerName, t.text("schedulerName"))
	for i, v := range t.list("volumes") {
		claim := v.text("volumeClaimName")
		if claim == "" && v.in("volumeClaim").at != nil {
			claim = fmt.Sprintf("%s-volume-%d", t.meta.Name, i)
		}
		if claim != "" {
			s.Volumes = append(s.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		}
	}
}

// taskName returns the name of task k of a job of Volcano.
func taskName(task tree, k int) string { return cmp.Or(task.text("name"), "default"+strconv.Itoa(k)) }

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
