// Package report tells users what became of their pods: it writes the condition
// PodScheduled and the nominated node into the status of pods.
//
// Only the latest report of each pod is sent. A report that cannot be sent is tried again
// until a later one replaces it or the pod is gone.
package report

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// Report is what the status of a pod is to say. A field that is nil does not change.
type Report struct {
	Pod       types.NamespacedName
	UID       types.UID
	Condition *Condition
	// Version is the resource version of the pod that the report is about. If the pod has changed,
	// it is read, and what still applies to it is sent: a condition and a nominated node only if the
	// pod is still not bound. A request that a paused process sends after another process has
	// become the leader therefore cannot undo what that one wrote.
	Version string
	// NominatedNode is the node on which room is being freed for the pod; "" for none. A pod
	// with a nominated node does not make autoscalers add nodes.
	NominatedNode *string
	// Annotations are set, or removed if the value is nil. The API server accepts them with
	// the status.
	Annotations map[string]*string
}

// Condition is the condition PodScheduled of a pod that is not placed.
type Condition struct {
	Reason  string // Unschedulable, or another reason of Kubernetes
	Message string
	// Since is since when the condition is false; the zero time means from now on.
	Since time.Time
}

// merge returns the report with what a later one changes.
func (r Report) merge(later Report) Report {
	r.Version = later.Version
	if later.Condition != nil {
		r.Condition = later.Condition
	}
	if later.NominatedNode != nil {
		r.NominatedNode = later.NominatedNode
	}
	if len(later.Annotations) > 0 {
		all := maps.Clone(r.Annotations)
		if all == nil {
			all = map[string]*string{}
		}
		maps.Copy(all, later.Annotations)
		r.Annotations = all
	}
	return r
}

// attemptsAtOnce is how often a report is sent without a pause if the pod changes meanwhile.
const attemptsAtOnce = 3

// Options of a Reporter.
type Options struct {
	Client kubernetes.Interface
	// Held reports whether this process still is the leader. Nothing is sent if not.
	Held    func() bool
	Workers int           // how many requests may be under way at the same time; 0 means 4
	Timeout time.Duration // how long one request may take; 0 means 10 s
}

// Reporter sends reports. Its methods are safe for concurrent use.
type Reporter struct {
	options Options
	queue   workqueue.TypedRateLimitingInterface[types.UID]
	working sync.WaitGroup
	ctx     context.Context // of all requests
	cancel  context.CancelFunc
	mu      sync.Mutex
	waiting map[types.UID]Report
}

// New returns a Reporter, which runs until Stop is called.
func New(o Options) *Reporter {
	if o.Workers == 0 {
		o.Workers = 4
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	r := &Reporter{
		options: o, waiting: map[types.UID]Report{},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[types.UID](50*time.Millisecond, 10*time.Second)),
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	for range o.Workers {
		r.working.Go(r.work)
	}
	return r
}

// Put sends the report soon. What an earlier report says that was not sent yet is replaced.
func (r *Reporter) Put(n Report) {
	r.mu.Lock()
	r.waiting[n.UID] = r.waiting[n.UID].merge(n).named(n)
	r.mu.Unlock()
	r.queue.Add(n.UID)
}

// named returns the report with the pod of another one.
func (r Report) named(of Report) Report {
	r.Pod, r.UID = of.Pod, of.UID
	return r
}

// Waiting returns how many pods have a report that was not sent yet.
func (r *Reporter) Waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.waiting)
}

// Stop drops all reports that were not sent, and returns when no request is under way.
func (r *Reporter) Stop() {
	r.mu.Lock()
	clear(r.waiting)
	r.mu.Unlock()
	r.cancel()
	r.queue.ShutDown()
	r.working.Wait()
}

func (r *Reporter) work() {
	for {
		uid, stopped := r.queue.Get()
		if stopped {
			return
		}
		r.mu.Lock()
		n, waits := r.waiting[uid]
		delete(r.waiting, uid)
		r.mu.Unlock()
		// The lease may be renewed late: what is reported is not decided again, so it is kept. A pod
		// that has changed is tried again at once, with its new version.
		sent := !waits
		for attempt := 0; !sent && attempt < attemptsAtOnce && r.options.Held(); attempt++ {
			before := n.Version
			if n, sent = r.send(n); n.Version == before {
				break
			}
		}
		if sent {
			r.queue.Forget(uid)
		} else {
			r.again(n)
		}
		r.queue.Done(uid)
	}
}

// again sends the report later, unless a later report replaces it.
func (r *Reporter) again(n Report) {
	r.mu.Lock()
	later, replaced := r.waiting[n.UID]
	if replaced {
		n = n.merge(later)
	}
	r.waiting[n.UID] = n
	r.mu.Unlock()
	r.queue.AddRateLimited(n.UID)
}

// send reports false if the request is to be sent again, with what is to be sent then.
func (r *Reporter) send(n Report) (rest Report, sent bool) {
	patch, err := n.patch(time.Now())
	if err != nil {
		return n, true // the report consists of texts, which can always be encoded
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.options.Timeout)
	defer cancel()
	pods := r.options.Client.CoreV1().Pods(n.Pod.Namespace)
	_, err = pods.Patch(ctx, n.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsConflict(err) {
		// Another pod has the name now, or the pod has changed, or a webhook answers so.
		pod, err := pods.Get(ctx, n.Pod.Name, metav1.GetOptions{})
		if err != nil {
			return n, apierrors.IsNotFound(err)
		}
		same := pod.UID == n.UID && pod.ResourceVersion == n.Version
		n = n.about(pod)
		return n, n.isEmpty() || same
	}
	// Other answers with 4xx, such as a webhook that forbids the change, would be the same
	// again.
	var status apierrors.APIStatus
	if as, is := err.(apierrors.APIStatus); is {
		status = as
	}
	return n, err == nil || status != nil && status.Status().Code >= 400 && status.Status().Code < 500 && !apierrors.IsTooManyRequests(err) && !apierrors.IsUnauthorized(err)
}

// about returns what is left to report about the pod as it is now.
func (n Report) about(pod *corev1.Pod) Report {
	if pod.UID != n.UID {
		return Report{Pod: n.Pod, UID: n.UID}
	}
	n.Version = pod.ResourceVersion
	if pod.Spec.NodeName != "" {
		n.Condition = nil // the pod is placed
		if n.NominatedNode != nil && *n.NominatedNode != "" {
			n.NominatedNode = nil
		}
	}
	if n.Condition != nil {
		c := *n.Condition
		c.Since = FalseSince(pod)
		n.Condition = &c
	}
	return n
}

// FalseSince returns since when the condition PodScheduled of the pod has been false; the zero time
// if it is not false.
func FalseSince(pod *corev1.Pod) time.Time {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// isEmpty reports whether there is nothing to send.
func (n Report) isEmpty() bool {
	return n.Condition == nil && n.NominatedNode == nil && len(n.Annotations) == 0
}

// patch returns the report as a strategic merge patch. The UID makes the API server refuse
// the patch for another pod of the same name, and the version for a pod that has changed. The
// time of the last transition does not change with the reason.
func (n Report) patch(now time.Time) ([]byte, error) {
	status, metadata := map[string]any{}, map[string]any{"uid": n.UID, "resourceVersion": n.Version}
	if c := n.Condition; c != nil {
		if !c.Since.IsZero() {
			now = c.Since
		}
		status["conditions"] = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: c.Reason, Message: c.Message,
			LastTransitionTime: metav1.NewTime(now),
		}}
	}
	if n.NominatedNode != nil {
		status["nominatedNodeName"] = nil
		if *n.NominatedNode != "" {
			status["nominatedNodeName"] = *n.NominatedNode
		}
	}
	if len(n.Annotations) > 0 {
		metadata["annotations"] = n.Annotations
	}
	return json.Marshal(map[string]any{"metadata": metadata, "status": status})
}
