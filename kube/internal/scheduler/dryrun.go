package scheduler

import (
	"log/slog"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/live"
	"github.com/berth-project/berth/kube/internal/metrics"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// dryRun has what a dry run would have sent. The State follows the cluster nevertheless: a pod that
// another scheduler binds is where that one has bound it, a pod that would be bound and is not
// for some time is pending again, and a pod that would be evicted runs on.
type dryRun struct {
	leader  *live.Leader
	objects *objects
	metrics *metrics.Metrics
	log     *slog.Logger
	hold    time.Duration // how long a pod that would be bound counts as such

	bound   map[types.UID]wouldBind
	refused []cluster.Change // facts about evictions that were decided
}

// wouldBind is a binding that was decided.
type wouldBind struct {
	fact  cluster.BindFailed // that it was not sent
	until time.Time          // when the State is told
}

// notBinding keeps a binding that is not sent, to compare it with what another scheduler does.
func (d *dryRun) notBinding(c *cluster.Assign, pod, node string) {
	d.log.Info("A pod would be bound.", "pod", pod, "node", node)
	if d.bound == nil {
		d.bound = map[types.UID]wouldBind{}
	}
	d.bound[types.UID(c.UID)] = wouldBind{cluster.BindFailed{Task: c.Task, UID: c.UID, Attempt: c.Attempt}, time.Now().Add(d.hold)}
}

// notEvicting tells the State that an eviction was not carried out. The pod is not chosen again for
// some time, so that the log does not repeat it with every session.
func (d *dryRun) notEvicting(c *cluster.Evict, pod, cause string) {
	d.log.Info("A pod would be evicted.", "pod", pod, "cause", cause)
	d.refused = append(d.refused, cluster.EvictionRefused{Task: c.Task, UID: c.UID, Attempt: c.Attempt, ProtectedUntil: time.Now().Add(d.hold).UnixNano()})
}

// compare logs and counts whether another scheduler has bound the pod to the node that this one
// would have chosen. It is called before the event is applied.
func (d *dryRun) compare(e watch.Event) {
	pod, isPod := e.Object.(*corev1.Pod)
	if !isPod {
		return
	}
	would, decided := d.bound[pod.UID]
	known := d.objects.pods[pod.UID]
	if e.Deleted || pod.Spec.NodeName != "" {
		delete(d.bound, pod.UID)
	}
	key, isTask := d.objects.tasks[pod.UID]
	if e.Deleted || pod.Spec.NodeName == "" || !isTask || known == nil || known.Spec.NodeName != "" {
		return
	}
	t, result, node := d.leader.State().Task(cluster.TaskRef{Job: key.Job, Name: key.Task}), metrics.Later, ""
	if decided && t != nil && t.Status == cluster.Assumed && t.Attempt == would.fact.Attempt {
		if node, result = t.Node.Name, metrics.Same; node != pod.Spec.NodeName {
			result = metrics.Other
		}
	}
	d.metrics.Compared(result)
	d.log.Info("Another scheduler has bound a pod.", "pod", nameOf(pod).String(), "node", pod.Spec.NodeName, "would", node, "result", result)
}

// due returns the facts that make the State equal to the cluster again: nothing that was decided
// was carried out.
func (d *dryRun) due(now time.Time) []cluster.Change {
	facts := d.refused
	d.refused = nil
	for uid, b := range d.bound { // the order has no effect: the facts are about different tasks
		if b.until.Before(now) {
			delete(d.bound, uid)
			facts = append(facts, b.fact)
		}
	}
	return facts
}
