package manifest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/phrase"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// expansion makes the pods of one workload.
type expansion struct {
	meta   *metav1.ObjectMeta
	id     string
	random bool // the controller ends the names of the pods with random letters
	shared bool // other workloads in the namespace have the same name
	r      reporter
	pods   []*corev1.Pod
	groups []*unstructured.Unstructured // objects that describe the groups of the pods, if controllers make them too
	notes  convert.Notes
}

// unread notes that a field or a value of the workload is not read.
func (x *expansion) unread(what string) {
	message := "with " + what + ", which berth does not read"
	if !slices.ContainsFunc(x.notes, func(n convert.Note) bool { return n.Message == message }) {
		x.notes = append(x.notes, convert.Note{Severity: convert.Ignored, Message: message})
	}
}

// add makes a pod of the template, and returns it. It returns nil if there are too many pods.
func (x *expansion) add(name string, t *corev1.PodTemplateSpec, labels, annotations map[string]string) *corev1.Pod {
	if len(x.pods) > maxExpanded {
		return nil
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
	pin(&p.Spec)
	x.pods = append(x.pods, p)
	return p
}

// pin replaces the node that the spec names by a condition on the node, so that the pod is pending.
func pin(s *corev1.PodSpec) {
	if s.NodeName == "" {
		return
	}
	only := corev1.NodeSelectorRequirement{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{s.NodeName}}
	s.NodeName = ""
	if s.Affinity == nil {
		s.Affinity = &corev1.Affinity{}
	}
	if s.Affinity.NodeAffinity == nil {
		s.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	a := s.Affinity.NodeAffinity
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil || len(a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms) == 0 {
		a.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}}
	}
	terms := a.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = append(terms[i].MatchFields, only)
	}
}

// claimVolumes gives the pod a volume for each of the claims that the controller makes for it. Volumes
// of the same names are replaced.
func claimVolumes(p *corev1.Pod, names []string) {
	if p == nil {
		return
	}
	for _, name := range names {
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name + "-" + p.Name},
		}})
	}
}

// exclusive adds affinity to the pod so that pods with the same value of the label are in one domain of
// the level, and pods with other values of it are in other domains. If everywhere is set, pods of all
// namespaces count.
func exclusive(p *corev1.Pod, label, value, level string, everywhere bool) {
	if p == nil {
		return
	}
	if p.Labels == nil {
		p.Labels = map[string]string{}
	}
	p.Labels[label] = value
	term := func(conditions ...metav1.LabelSelectorRequirement) corev1.PodAffinityTerm {
		out := corev1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchExpressions: conditions}, TopologyKey: level}
		if everywhere {
			out.NamespaceSelector = &metav1.LabelSelector{}
		}
		return out
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	a := p.Spec.Affinity
	if a.PodAffinity == nil {
		a.PodAffinity = &corev1.PodAffinity{}
	}
	if a.PodAntiAffinity == nil {
		a.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		term(metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpIn, Values: []string{value}}))
	a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		term(metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpExists},
			metav1.LabelSelectorRequirement{Key: label, Operator: metav1.LabelSelectorOpNotIn, Values: []string{value}}))
}

// keyOf returns a value of a label that differs between groups.
func (x *expansion) keyOf(group string) string {
	sum := sha256.Sum256([]byte(x.meta.Namespace + "/" + group))
	return hex.EncodeToString(sum[:16])
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
	x.jobPods(x.stem("job"), x.count(pods, "spec", "parallelism"), indexed, &o.Spec.Template, map[string]string{batchv1.JobNameLabel: o.Name})
	yes := true
	for _, p := range x.pods {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: o.Name, Controller: &yes}}
	}
}

// stem returns how the names of pods begin of which the controller ends the names with random letters.
// The kind is a part of it if another workload makes pods of the same name.
func (x *expansion) stem(kind string) string {
	x.random = true
	if x.shared {
		return x.meta.Name + "-" + kind
	}
	return x.meta.Name
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
	v, _, _ := unstructured.NestedFieldNoCopy(t.at, steps...)
	m, _ := v.(map[string]any)
	return tree{t.expansion, m}
}

func (t tree) number(otherwise int64, steps ...string) int64 {
	v, found, err := unstructured.NestedFieldNoCopy(t.at, steps...)
	if n, is := v.(int64); err == nil && found && is {
		return n
	}
	if x, is := v.(float64); err == nil && found && is && x == float64(int64(x)) {
		return int64(x)
	}
	if err == nil && found && v != nil {
		t.r.errorf(nil, "%s: want a whole number, have %s", strings.Join(steps, "."), phrase.Quote(fmt.Sprint(v)))
	}
	return otherwise
}

// flag reports whether the field is true.
func (t tree) flag(steps ...string) bool {
	v, _, _ := unstructured.NestedBool(t.at, steps...)
	return v
}

// names returns the names in the metadata of the objects in the list.
func (t tree) names(steps ...string) []string {
	var out []string
	for _, e := range t.list(steps...) {
		if name := e.text("metadata", "name"); name != "" {
			out = append(out, name)
		}
	}
	return out
}

func (t tree) text(steps ...string) string {
	s, _, _ := unstructured.NestedString(t.at, steps...)
	return s
}

func (t tree) list(steps ...string) []tree {
	v, _, _ := unstructured.NestedFieldNoCopy(t.at, steps...)
	list, _ := v.([]any)
	var out []tree
	for _, e := range list {
		m, _ := e.(map[string]any)
		out = append(out, tree{t.expansion, m})
	}
	return out
}

// template decodes the pod template at the path. It returns nil if there is none.
func (t tree) template(steps ...string) *corev1.PodTemplateSpec {
	m := t.in(steps...).at
	if m == nil {
		return nil
	}
	out := &corev1.PodTemplateSpec{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m, out, true)
	if unknown, is := runtime.AsStrictDecodingError(err); is {
		for _, e := range unknown.Errors() {
			t.unread("the " + phrase.Clip(strings.ReplaceAll(e.Error(), `"`, "")) + " of a pod template")
		}
	} else if err != nil {
		t.r.errorf(nil, "the pod template cannot be read: %v", err)
		return nil
	}
	return out
}
