package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// barrier keeps a new leader from deciding before it knows what the earlier leader has written.
//
// The watch of a process may be behind: bindings and allocations that the earlier leader sent in
// its last moments may not have been delivered, and the room or the devices of these pods would be
// given to others as well. The API server would accept that, since a binding is checked against
// its own pod only, and an allocation against its own claim. Therefore all pods and ResourceClaims
// are read once after the lease was taken, in a way that shows every earlier write. Nothing else
// needs to be read: a volume cannot be bound twice, because the API server compares its version.
//
// An object that the barrier has read and the watch never delivers would stay for ever: it was
// deleted before the watch listed the objects anew. As long as there are such objects, the
// barrier reads again from time to time, and reports those as deleted that it does not find.
type barrier struct {
	client kubernetes.Interface
	log    *slog.Logger
	wake   func() // is called when a read has ended
	passed bool
	end    context.CancelFunc // of the read that is running; nil if none is
	done   sync.WaitGroup
	// unconfirmed are the objects that the watch has not delivered, and again is when to read
	// them again.
	unconfirmed map[types.UID]watch.Event
	again       time.Time

	mu   sync.Mutex
	read []watch.Event // what was read
	full bool          // all of it was read
}

// reset makes the next leadership begin with a read.
func (b *barrier) reset() {
	b.passed = false
	b.stop()
}

// stop ends the read that is running.
func (b *barrier) stop() {
	if b.end == nil {
		return
	}
	b.end()
	b.done.Wait()
	b.end, b.read, b.full = nil, nil, false
}

// pass reports whether decisions may be made. When it does so first, and whenever the objects
// were read again, it returns the pods and claims that were read. Until then it reads them in the
// background.
func (b *barrier) pass(now time.Time) (list []watch.Event, passed bool) {
	if b.passed && (len(b.unconfirmed) == 0 || now.Before(b.again)) {
		return nil, true
	}
	if b.end == nil {
		ctx, end := context.WithCancel(context.Background())
		b.end = end
		b.done.Go(func() { b.readAll(ctx) })
	}
	b.mu.Lock()
	list, full := b.read, b.full
	b.mu.Unlock()
	if !full {
		return nil, b.passed
	}
	b.stop()
	b.passed, b.again = true, now.Add(confirmTime)
	return b.withDeleted(list), true
}

// confirmTime is how far the watch may be behind before the objects are read again that it has
// not delivered.
const confirmTime = 10 * time.Second

// withDeleted adds the deletion of each object that was read before, that the watch has not
// delivered, and that is not in the list.
func (b *barrier) withDeleted(list []watch.Event) []watch.Event {
	if len(b.unconfirmed) == 0 {
		return list
	}
	found := make(map[types.UID]bool, len(list))
	for _, e := range list {
		found[uidOf(e.Object)] = true
	}
	var out []watch.Event               // deletions are first: another object may have the name by now
	for uid, e := range b.unconfirmed { // the order has no effect
		if !found[uid] {
			out = append(out, watch.Event{Object: e.Object, Deleted: true})
			delete(b.unconfirmed, uid)
		}
	}
	return append(out, list...)
}

// expect notes that the watch has not delivered the object.
func (b *barrier) expect(e watch.Event) {
	if b.unconfirmed == nil {
		b.unconfirmed = map[types.UID]watch.Event{}
	}
	b.unconfirmed[uidOf(e.Object)] = e
}

// confirm notes that the watch has delivered the object.
func (b *barrier) confirm(e watch.Event) {
	if len(b.unconfirmed) > 0 {
		delete(b.unconfirmed, uidOf(e.Object))
	}
}

// uidOf returns the UID of an object of Kubernetes; "" if it is none.
func uidOf(o any) types.UID {
	if m, is := o.(metav1.Object); is {
		return m.GetUID()
	}
	return ""
}

// pageSize is how many objects are read with one request.
const pageSize = 500

// readAll reads all pods and claims. If a request fails, it begins anew.
func (b *barrier) readAll(ctx context.Context) {
	for {
		list, err := b.list(ctx)
		if err == nil {
			b.mu.Lock()
			b.read, b.full = list, true
			b.mu.Unlock()
			b.wake()
			return
		}
		if ctx.Err() == nil {
			b.log.Warn("The pods and ResourceClaims cannot be read, and a new leader decides nothing before.", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// list returns all claims and pods as they are now. Pods are read first: a pod is bound after its
// claims were allocated, so that the claims of all pods that are bound in the list are allocated.
func (b *barrier) list(ctx context.Context) ([]watch.Event, error) {
	pods, err := listPages(func(o metav1.ListOptions) (*corev1.PodList, error) {
		return b.client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, o)
	}, func(l *corev1.PodList) []corev1.Pod { return l.Items })
	if err != nil {
		return nil, err
	}
	claims, err := listPages(func(o metav1.ListOptions) (*resourcev1.ResourceClaimList, error) {
		return b.client.ResourceV1().ResourceClaims(corev1.NamespaceAll).List(ctx, o)
	}, func(l *resourcev1.ResourceClaimList) []resourcev1.ResourceClaim { return l.Items })
	if err != nil && !apierrors.IsNotFound(err) { // the API server does not have the kind in this version
		return nil, err
	}
	return append(claims, pods...), nil
}

// listPages reads a list page by page, and returns an event for each of its objects. Without a
// resource version, the API server answers with the result of all writes that it has confirmed.
func listPages[L metav1.ListInterface, T any, P interface {
	*T
	runtime.Object
}](list func(metav1.ListOptions) (L, error), items func(L) []T) ([]watch.Event, error) {
	var out []watch.Event
	for o := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := list(o)
		if err != nil {
			return nil, err
		}
		for i := range items(page) {
			out = append(out, watch.Event{Object: feed.Strip(P(&items(page)[i]))})
		}
		if o.Continue = page.GetContinue(); o.Continue == "" {
			return out, nil
		}
	}
}
