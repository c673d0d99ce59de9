package controller

import (
	"cmp"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/workload"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// replica is a replica that exists: a pod, or the pods of a LeaderWorkerSet.
type replica struct {
	workload string // the name of its Deployment or LeaderWorkerSet
	several  bool   // it is on several nodes
	form     string // the key of its form
	pods     []*corev1.Pod
	placed   bool // all its pods have a node
	health   cluster.Health
	job      string // the ID of its job in the State, if it is placed
}

// replicas returns the replicas of a model that exist, the oldest first. Pods that have ended or
// are being deleted are none.
func (x *objects) replicas(namespace string) []replica {
	if x == nil {
		return nil
	}
	var out []replica
	groups := map[string]*replica{}
	for name, set := range x.sets {
		if set.GetDeletionTimestamp() == nil {
			groups[name] = &replica{workload: name, several: true, form: formOfSet(set), job: "lws/" + namespace + "/" + name + "/0"}
		}
	}
	for _, p := range x.pods {
		if p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if name := p.Labels[workload.LabelReplica]; name != "" {
			if g := groups[name]; g != nil {
				g.pods = append(g.pods, p)
			}
			continue
		}
		out = append(out, replica{
			form: p.Labels[workload.LabelForm], pods: []*corev1.Pod{p}, placed: p.Spec.NodeName != "", health: feed.Health(p), job: "pod/" + namespace + "/" + p.Name,
		})
	}
	for name, g := range groups {
		slices.SortFunc(g.pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
		size := sizeOf(x.sets[name])
		g.placed = len(g.pods) == size
		g.health = cluster.HealthRunning
		for _, p := range g.pods {
			g.placed = g.placed && p.Spec.NodeName != ""
			if h := feed.Health(p); h != cluster.HealthRunning && g.health != cluster.HealthFailed {
				g.health = h
			}
		}
		if len(g.pods) < size && g.health == cluster.HealthRunning {
			g.health = cluster.HealthStarting
		}
		out = append(out, *g)
	}
	for i := range out {
		if !out[i].several {
			out[i].workload = x.deploymentOf(out[i].form)
		}
	}
	slices.SortFunc(out, func(a, b replica) int {
		return cmp.Or(cmp.Compare(a.created(), b.created()), strings.Compare(a.name(), b.name()))
	})
	return out
}

// deploymentOf returns the name of the Deployment of the form; "" if there is none.
func (x *objects) deploymentOf(form string) string {
	for name, d := range x.deployments {
		if formOf(d) == form {
			return name
		}
	}
	return ""
}

// formOf returns the key of the form of a Deployment. Its selector cannot be changed, unlike its
// labels.
func formOf(d *appsv1.Deployment) string {
	if d.Spec.Selector == nil {
		return ""
	}
	return d.Spec.Selector.MatchLabels[workload.LabelForm]
}

// formOfSet returns the key of the form of a LeaderWorkerSet.
func formOfSet(set *unstructured.Unstructured) string {
	form, _, _ := unstructured.NestedString(set.Object, "spec", "leaderWorkerTemplate", "leaderTemplate", "metadata", "labels", workload.LabelForm)
	return form
}

// ready reports whether the replica has nodes and answers requests.
func (r *replica) ready() bool { return r.placed && r.health == cluster.HealthRunning }

// created returns when the first pod of the replica was created, in seconds since 1970.
func (r *replica) created() int64 {
	if len(r.pods) == 0 {
		return 0
	}
	return r.pods[0].CreationTimestamp.Unix()
}

// name returns the name of the first pod, or of the LeaderWorkerSet.
func (r *replica) name() string {
	if r.several {
		return r.workload
	}
	return r.pods[0].Name
}

// sizeOf returns how many pods a replica of the LeaderWorkerSet has.
func sizeOf(set *unstructured.Unstructured) int {
	size, found, err := unstructured.NestedInt64(set.Object, "spec", "leaderWorkerTemplate", "size")
	if !found || err != nil {
		return 1
	}
	return int(size)
}
