package edit

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/manifest"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// editGang returns the arguments that change a gang of pods: fields of its pods, and of the object that
// describes it. It returns nil if they would not make exactly this change.
func (m Manifests) editGang(was, is *cluster.Job) []string {
	g := m.gangOf(was)
	if g == nil {
		return nil
	}
	out := g.minimum(was, is)
	for i, t := range was.Alternatives[0].Tasks {
		if i >= len(is.Alternatives[0].Tasks) || is.Alternatives[0].Tasks[i].Name != t.Name {
			return nil // pods are removed by what made them
		}
		a := &assignments{object: podID(was, t.Name)}
		(&podEdit{assignments: a, object: g.pods[i]}).edit(single(was, t), single(is, is.Alternatives[0].Tasks[i]))
		out = append(out, a.out...)
	}
	if !g.becomes(is, out, m.Bundle) {
		return nil
	}
	return out
}

func podID(j *cluster.Job, task string) string { return "pod/" + j.Namespace + "/" + task }

// single returns the job with one task only.
func single(j *cluster.Job, t *cluster.Task) *cluster.Job {
	out := *j
	out.Alternatives = []cluster.Alternative{{Min: 1, Tasks: []*cluster.Task{t}}}
	return &out
}

// gang is the objects of a gang.
type gang struct {
	pods   []*corev1.Pod // of its tasks
	id     string        // of the object that describes it; "" if there is none
	object any
}

// gangOf returns the objects of the gang; nil if the bundle does not have a pod for each task.
func (m Manifests) gangOf(j *cluster.Job) *gang {
	g := &gang{}
	pods := map[string]*corev1.Pod{}
	for _, p := range m.Bundle.Pods {
		if convert.CoreNamespace(&p.ObjectMeta) == j.Namespace {
			pods[p.Name] = p
		}
	}
	for _, t := range j.Alternatives[0].Tasks {
		p := pods[t.Name]
		if p == nil {
			return nil
		}
		g.pods = append(g.pods, p)
	}
	parts := strings.SplitN(j.ID, "/", 4) // the rest is a group of a set, or a part
	if len(parts) < 3 {
		return nil
	}
	if id := strings.Join(parts[:3], "/"); m.Bundle.Object(id) != nil {
		g.id, g.object = id, m.Bundle.Object(id)
	}
	return g
}

// minimum returns the arguments that change the minimum of the gang.
func (g *gang) minimum(was, is *cluster.Job) []string {
	now := is.Alternatives[0].Min
	if was.Alternatives[0].Min == now {
		return nil
	}
	a := &assignments{object: g.id}
	switch o := g.object.(type) {
	case *schedulingv1alpha2.PodGroup:
		a.set("spec.schedulingPolicy.gang.minCount", now)
	case *unstructured.Unstructured:
		if o.GetKind() == "PodGroup" {
			a.set("spec.minMember", now)
		}
	case nil:
		for i, p := range g.pods {
			of := &assignments{object: podID(was, was.Alternatives[0].Tasks[i].Name)}
			for _, key := range []string{feed.LabelGroupMinMember, "scheduling.volcano.sh/group-min-member", "gang.scheduling.koordinator.sh/min-available"} {
				if p.Labels[key] != "" {
					of.set("metadata.labels."+key, valueText(now))
				}
				if p.Annotations[key] != "" {
					of.set("metadata.annotations."+key, valueText(now))
				}
			}
			a.out = append(a.out, of.out...)
		}
	}
	return a.out
}

func jsonOf(s *cluster.Shape) string {
	text, err := json.Marshal(s)
	if err != nil {
		return err.Error() // no shape has a value that JSON does not have
	}
	return string(text)
}

// becomes reports whether the gang is the given one after the fields are set.
func (g *gang) becomes(is *cluster.Job, arguments []string, b *manifest.Bundle) bool {
	copied := &manifest.Bundle{}
	of := map[string][]string{} // the fields to set, by object
	for i := 1; i < len(arguments); i += 2 {
		object, _, _ := strings.Cut(arguments[i], ".spec.")
		object, _, _ = strings.Cut(object, ".metadata.")
		of[object] = append(of[object], arguments[i])
	}
	set := func(b *manifest.Bundle, id string) bool {
		for _, a := range of[id] {
			if b.Set(a) != nil {
				return false
			}
		}
		return true
	}
	for _, p := range g.pods {
		one := &manifest.Bundle{Pods: []*corev1.Pod{p.DeepCopy()}}
		if !set(one, convert.PodID(p)) {
			return false
		}
		copied.Pods = append(copied.Pods, one.Pods...)
	}
	switch o := g.object.(type) {
	case *schedulingv1alpha2.PodGroup:
		copied.PodGroups = append(copied.PodGroups, o.DeepCopy())
	case *batchv1.Job:
		copied.BatchJobs = append(copied.BatchJobs, o.DeepCopy())
	case *unstructured.Unstructured:
		copied.Groups = append(copied.Groups, o.DeepCopy())
	}
	if !set(copied, g.id) {
		return false
	}
	f := feed.New(feed.Options{Dump: b.Environment(), DevicesEnforced: true})
	for _, o := range b.Namespaces {
		f.PutNamespace(o)
	}
	for _, o := range b.PriorityClasses {
		f.PutPriorityClass(o)
	}
	for _, o := range b.Queues {
		f.PutQueue(o)
	}
	deliver(copied.PodGroups, f.PutPodGroup)
	deliver(copied.BatchJobs, f.PutJob)
	deliver(copied.Groups, f.PutGroup)
	if slices.ContainsFunc(copied.Pods, func(p *corev1.Pod) bool { return len(p.Spec.ResourceClaims) > 0 }) {
		deliver(b.DeviceClasses, f.PutDeviceClass)
		deliver(b.Slices, f.PutResourceSlice)
		deliver(b.Claims, f.PutResourceClaim)
	}
	deliver(copied.Pods, f.PutPod)
	changes, _ := f.Settle()
	shapes := map[string]*cluster.Shape{}
	matches := false
	for _, c := range changes {
		switch c := c.(type) {
		case cluster.JobPut:
			form, want := &c.Job.Alternatives[0], &is.Alternatives[0]
			for _, t := range form.Tasks { // of a pod on its own
				shapes[t.Name] = t.Shape
			}
			matches = c.Job.ID == is.ID && form.Min == want.Min && c.Job.Priority == is.Priority && c.Job.Preemptible == is.Preemptible &&
				c.Job.PreemptionDelay == is.PreemptionDelay && reflect.DeepEqual(form.Topology, want.Topology) &&
				slices.EqualFunc(form.Subgroups, want.Subgroups, func(a, b cluster.Subgroup) bool { return reflect.DeepEqual(a, b) }) &&
				(len(c.Job.Affinity) == 0 && len(is.Affinity) == 0 || reflect.DeepEqual(c.Job.Affinity, is.Affinity))
		case cluster.TaskPut:
			shapes[c.Task.Name] = c.Task.Shape
		}
	}
	return matches && !slices.ContainsFunc(is.Alternatives[0].Tasks, func(t *cluster.Task) bool {
		return shapes[t.Name] == nil || jsonOf(shapes[t.Name]) != jsonOf(t.Shape)
	})
}

// deliver passes the objects to a Feed, of which only the result of Settle counts.
func deliver[T any](list []T, put func(T) ([]cluster.Change, []feed.Note)) {
	for _, o := range list {
		put(o)
	}
}
