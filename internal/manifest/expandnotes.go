package manifest

import (
	"maps"
	"slices"

	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// notes returns notes about workloads: which of them have no pods, how many pods were made, and what
// is not read of them.
func (b expander) notes() []string {
	var out []string
	unmade, held := b.unmade()
	if note := unmadeText(unmade); note != "" {
		out = append(out, "workloads "+note)
	}
	for _, why := range slices.Sorted(maps.Keys(held)) {
		out = append(out, "workloads that are "+why+", without pods in the input, and therefore not placed: "+held[why].text())
	}
	if note := b.expandedNote(); note != "" {
		out = append(out, note)
	}
	return b.namespaces().note(b.unread().note(out, "workload"), "namespace")
}

// admissionKeys are annotations of namespaces by which the API server adds node selectors and
// tolerations to pods. The pods of a dump have these already.
var admissionKeys = []string{
	"openshift.io/node-selector", "scheduler.alpha.kubernetes.io/node-selector", "scheduler.alpha.kubernetes.io/defaultTolerations", "scheduler.alpha.kubernetes.io/tolerationsWhitelist",
}

// namespaces returns what is not read of namespaces in which pods were made.
func (b expander) namespaces() tallies {
	made, out := map[string]bool{}, tallies{}
	for p := range b.expanded {
		made[convert.CoreNamespace(&p.ObjectMeta)] = true
	}
	for _, n := range b.Namespaces {
		for _, key := range admissionKeys {
			if made[n.Name] && n.Annotations[key] != "" {
				out.add(n.Name, convert.Notes{{Severity: convert.Ignored, Message: "with the annotation " + key + ", which berth does not apply to the pods that --expand makes"}}, convert.Ignored)
			}
		}
	}
	return out
}

// unmadeNote says which workloads have no pods; "" if none.
func (b expander) unmadeNote() string {
	unmade, _ := b.unmade()
	return unmadeText(unmade)
}

func unmadeText(unmade []any) string {
	counts := skipped{}
	for _, o := range unmade {
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

// unread returns what is not read of workloads that have not ended.
func (b expander) unread() tallies {
	out := tallies{}
	add := func(id string, o metav1.Object) {
		for _, key := range convert.UnreadKeys(o.GetLabels(), o.GetAnnotations()) {
			out.add(id, convert.Notes{{Severity: convert.Ignored, Message: "with " + key + ", which berth does not read"}}, convert.Ignored)
		}
	}
	for _, j := range b.BatchJobs {
		if j.Status.CompletionTime == nil && metav1.GetControllerOfNoCopy(j) == nil {
			add(groupID[*batchv1.Job]("batchjob")(j), j)
		}
	}
	for _, o := range slices.Concat(b.Workloads, b.Groups) {
		if kind := o.GroupVersionKind().GroupKind(); makesPods(kind) && !hasEnded(o) && metav1.GetControllerOfNoCopy(o) == nil {
			add(groupID[*unstructured.Unstructured](workloadSource(kind))(o), o)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.expansions)) {
		out.add(id, b.expansions[id].notes, convert.Ignored)
	}
	return out
}
