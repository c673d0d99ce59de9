package anonymize

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/manifest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// groupKeys are labels and annotations of pods with the name of their group.
var groupKeys = []string{
	feed.LabelGroupName, "pod-group-name", "scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name",
	"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/name", "gang.scheduling.koordinator.sh/name",
	"jobset.sigs.k8s.io/jobset-name", "leaderworkerset.sigs.k8s.io/name", "training.kubeflow.org/job-name", "ray.io/cluster",
}

// partKeys are labels and annotations with the name of a part of the group.
var partKeys = []string{
	"kai.scheduler/subgroup-name", "volcano.sh/task-spec", "jobset.sigs.k8s.io/replicatedjob-name", "training.kubeflow.org/replica-type", "ray.io/group",
}

// queueKeys are labels and annotations with the name of a queue.
var queueKeys = []string{"kai.scheduler/queue", "scheduling.volcano.sh/queue-name", "volcano.sh/queue-name", feed.AnnotationDefaultQueue}

// numberKeys are annotations with a number.
var numberKeys = []string{
	feed.LabelGroupMinMember, "scheduling.volcano.sh/group-min-member", "volcano.sh/task-index", "gang.scheduling.koordinator.sh/min-available",
	batchv1.JobCompletionIndexAnnotation, "gpu-fraction", "gpu-memory", "gpu-fraction-num-devices",
}

// levelKeys are annotations with the name of a label of nodes.
var levelKeys = []string{"alpha.jobset.sigs.k8s.io/exclusive-topology", "leaderworkerset.sigs.k8s.io/exclusive-topology"}

// wordKeys are labels and annotations with one of a few words.
var wordKeys = []string{"kai.scheduler/preemptibility", "volcano.sh/preemptable", "alpha.jobset.sigs.k8s.io/node-selector"}

// words are the values of these, and of fields of objects that describe groups.
var words = []string{
	"true", "false", "preemptible", "non-preemptible", "InOrder", "AnyOrder", "LeaderReady", "LeaderCreated", "WaitForWorkersReady", "AtStartup",
}

// groupValue returns the value of a label or an annotation that is about a group, and false if the key
// is not about one.
func (n *Names) groupValue(key, value string) (string, bool) {
	switch {
	case slices.Contains(groupKeys, key):
		return n.workloads.of(value), true
	case slices.Contains(partKeys, key):
		return n.parts.of(value), true
	case slices.Contains(queueKeys, key):
		return n.queues.of(value), true
	case slices.Contains(wordKeys, key) && slices.Contains(words, value):
		return value, true
	}
	return "", false
}

// groupAnnotations adds the annotations that are about groups and parts of devices.
func (n coreObjects) groupAnnotations(o *corev1.Pod, out map[string]string) {
	for _, key := range slices.Concat(groupKeys, partKeys, queueKeys, wordKeys) {
		if v := o.Annotations[key]; v != "" {
			if alias, known := n.groupValue(key, v); known {
				out[key] = alias
			}
		}
	}
	for _, key := range numberKeys {
		if text := o.Annotations[key]; text != "" {
			out[key] = unreadable
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				out[key] = strconv.FormatFloat(v, 'f', -1, 64)
			}
		}
	}
	for _, key := range levelKeys {
		if v := o.Annotations[key]; v != "" {
			out[key] = n.key(v)
		}
	}
	var held []cluster.Holding
	if json.Unmarshal([]byte(o.Annotations[feed.AnnotationDevices]), &held) == nil {
		for i := range held {
			held[i].Device = n.uuids.of(held[i].Device)
		}
		out[feed.AnnotationDevices] = jsonText(held)
	}
	if numbers := feed.NumberedDevices(o.Annotations); len(numbers) > 0 {
		type device struct {
			Minor int `json:"minor"`
		}
		out[feed.AnnotationKoordinator] = jsonText(map[string][]device{"gpu": each(numbers, func(i int) device { return device{i} })})
	}
	for _, key := range feed.AnnotationsListed {
		entries := strings.FieldsFunc(o.Annotations[key], func(c rune) bool { return c == ':' || c == ';' })
		text := ""
		for _, e := range entries {
			if uuid, _, found := strings.Cut(e, ","); found {
				text += n.uuids.of(uuid) + ",NVIDIA,0,0:"
			}
		}
		if text != "" {
			out[key] = text + ";"
		}
	}
}

// registered adds the annotations with the devices that HAMi and Volcano list.
func (n coreObjects) registered(o *corev1.Node, out map[string]string) {
	type device struct {
		ID     string `json:"id"`
		Memory int64  `json:"devmem"`
		Type   string `json:"type"`
		NUMA   int    `json:"numa"`
		Health bool   `json:"health"`
	}
	for _, key := range []string{convert.AnnotationHAMi, convert.AnnotationVolcano} {
		if list, err := convert.RegisteredDevices(o.Annotations[key]); err == nil && len(list) > 0 {
			out[key] = jsonText(each(list, func(d cluster.Device) device {
				return device{n.uuids.of(d.UUID), int64(d.Memory >> 20), d.Product, d.NUMA, !d.Lost}
			}))
		}
	}
}

// groups returns the objects that describe groups of pods, with the classes that they name.
func (n coreObjects) groups(b *manifest.Bundle) []any {
	var out []any
	for _, o := range b.Namespaces {
		if q := o.Annotations[feed.AnnotationDefaultQueue]; q != "" {
			x := &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: n.namespaces.of(o.Name)}}
			x.Annotations = map[string]string{feed.AnnotationDefaultQueue: n.queues.of(q)}
			out = append(out, x)
		}
	}
	for _, o := range b.BatchJobs {
		x := &batchv1.Job{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}, ObjectMeta: n.groupMeta(o)}
		x.Spec.Parallelism, x.Spec.Completions = o.Spec.Parallelism, o.Spec.Completions
		if m := o.Spec.CompletionMode; m != nil && *m == batchv1.IndexedCompletion {
			x.Spec.CompletionMode = m
		}
		yes := true
		x.Spec.Suspend = &yes // its pods are in the output
		out = append(out, x)
	}
	for _, o := range b.PodGroups {
		x := &schedulingv1alpha2.PodGroup{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup"}, ObjectMeta: n.groupMeta(o)}
		x.Spec.Priority, x.Spec.PriorityClassName = o.Spec.Priority, n.classes.of(o.Spec.PriorityClassName)
		if g := o.Spec.SchedulingPolicy.Gang; g != nil {
			x.Spec.SchedulingPolicy.Gang = &schedulingv1alpha2.GangSchedulingPolicy{MinCount: g.MinCount}
		}
		if c := o.Spec.SchedulingConstraints; c != nil {
			x.Spec.SchedulingConstraints = &schedulingv1alpha2.PodGroupSchedulingConstraints{Topology: each(c.Topology, func(t schedulingv1alpha2.TopologyConstraint) schedulingv1alpha2.TopologyConstraint {
				return schedulingv1alpha2.TopologyConstraint{Key: n.key(t.Key)}
			})}
		}
		out = append(out, x)
	}
	for _, o := range slices.Concat(b.Groups, manifest.MadeGroups(b)) {
		x := &unstructured.Unstructured{Object: n.groupFields(o.Object)}
		meta := n.groupMeta(o)
		x.SetAPIVersion(o.GetAPIVersion())
		x.SetKind(o.GetKind())
		x.SetName(meta.Name)
		x.SetNamespace(meta.Namespace)
		x.SetCreationTimestamp(meta.CreationTimestamp)
		if gang := "ray.io/gang-scheduling-enabled"; o.GetLabels()[gang] == "true" {
			x.SetLabels(map[string]string{gang: "true"})
		}
		out = append(out, x)
	}
	for _, c := range b.PriorityClasses {
		if n.classes.has(c.Name) { // pods have their priorities themselves
			out = append(out, &schedulingv1.PriorityClass{TypeMeta: metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"}, ObjectMeta: metav1.ObjectMeta{Name: n.classes.of(c.Name)}, Value: c.Value})
		}
	}
	return out
}

func (n coreObjects) groupMeta(o metav1.Object) metav1.ObjectMeta {
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = corev1.NamespaceDefault
	}
	return metav1.ObjectMeta{Name: n.workloads.of(o.GetName()), Namespace: n.namespaces.of(namespace), CreationTimestamp: n.time(o.GetCreationTimestamp())}
}

// structure are the fields of objects that describe groups in which other fields are read.
var structure = []string{
	"spec", "subGroups", "topologyConstraint", "startupPolicy", "replicatedJobs", "template", "dependsOn", "leaderWorkerTemplate", "elasticPolicy", "runPolicy", "schedulingPolicy", "workerGroupSpecs",
}

// replicaSpecs are the fields of training jobs with their parts.
var replicaSpecs = []string{"pytorchReplicaSpecs", "tfReplicaSpecs", "xgbReplicaSpecs", "paddleReplicaSpecs", "jaxReplicaSpecs", "mpiReplicaSpecs"}

// scalars are the fields with numbers, words and truth values that are read.
var scalars = []string{
	"minMember", "minSubGroup", "preemptibility", "startupPolicy", "startupPolicyOrder", "replicas", "parallelism", "completions", "size", "minReplicas", "launcherCreationPolicy", "minAvailable", "enableInTreeAutoscaling", "numOfHosts",
}

// groupFields returns the fields that are read of an object that describes a group.
func (n coreObjects) groupFields(fields map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[key].(type) {
		case map[string]any:
			switch {
			case key == "minTaskMember" || slices.Contains(replicaSpecs, key):
				out[key] = n.groupParts(v, key)
			case slices.Contains(structure, key):
				out[key] = n.groupFields(v)
			}
		case []any:
			if slices.Contains(structure, key) {
				out[key] = each(v, func(e any) any {
					m, _ := e.(map[string]any)
					return n.groupFields(m)
				})
			}
		case string:
			switch key {
			case "queue":
				out[key] = n.queues.of(v)
			case "priorityClassName", "priorityClass":
				out[key] = n.classes.of(v)
			case "name", "parent", "groupName":
				out[key] = n.parts.of(v)
			case "requiredTopologyLevel", "preferredTopologyLevel":
				out[key] = n.key(v)
			default:
				if slices.Contains(scalars, key) && slices.Contains(words, v) {
					out[key] = v
				}
			}
		case int64, float64, bool:
			if slices.Contains(scalars, key) {
				out[key] = v
			}
		}
	}
	return out
}

// groupParts returns a map whose keys are names of parts.
func (n coreObjects) groupParts(parts map[string]any, field string) map[string]any {
	out := map[string]any{}
	for name, v := range parts {
		alias := name
		if field == "minTaskMember" {
			alias = n.parts.of(name)
		} else if lower := strings.ToLower(name); n.parts.of(lower) != lower {
			alias = n.parts.of(lower) // pods have the name of their part in lower case
		}
		if m, is := v.(map[string]any); is {
			out[alias] = n.groupFields(m)
		} else if field == "minTaskMember" {
			switch v.(type) {
			case int64, float64:
				out[alias] = v
			}
		}
	}
	return out
}
