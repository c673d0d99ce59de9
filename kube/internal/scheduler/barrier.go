package scheduler

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/berth-project/berth/kube/internal/feed"
	"github.com/berth-project/berth/kube/internal/watch"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// barrier keeps a new leader from deciding before it knows what the earlier leader has written.
//
// The watch of a process may be behind: bindings that the earlier leader sent in its last moments
// may not have been delivered, and the room of these pods would be given to others as well.
// The API server would accept that, since a binding is checked against its own pod only.
// Therefore all pods are read once after the lease was taken, in a way that shows every earlier
// write. Nothing else needs to be read: volumes and claims that were allocated meanwhile cannot
// be allocated again, because the API server compares their versions.
type barrier struct {
	client kubernetes.Interface
	log    *slog.Logger
	wake   func() // is called when a read has ended
	passed bool
	end    context.CancelFunc // of the read that is running; nil if none is
	done   sync.WaitGroup

	mu   sync.Mutex
	read []watch.Event // what was read
	full bool          // all pods were read
}

// reset makes the next leadership begin with a read.
func (b *barrier) reset() {
	if b.passed = false; b.end == nil {
		return
	}
	b.end()
	b.done.Wait()
	b.end, b.read, b.full = nil, nil, false
}

// pass reports whether decisions may be made. The first time it does, it returns the pods that
// were read after the lease was taken. Until then it reads them in the background.
func (b *barrier) pass() (pods []watch.Event, passed bool) {
	if b.passed {
		return nil, true
	}
	if b.end == nil {
		ctx, end := context.WithCancel(context.Background())
		b.end = end
		b.done.Go(func() { b.readPods(ctx) })
	}
	b.mu.Lock()
	pods, passed = b.read, b.full
	b.mu.Unlock()
	if passed {
		b.reset()
		b.passed = true
		return pods, true
	}
	return nil, false
}

// pageSize is how many pods are read with one request.
const pageSize = 500

// readPods reads all pods. If a request fails, it begins anew.
func (b *barrier) readPods(ctx context.Context) {
	for {
		pods, err := b.list(ctx)
		if err == nil {
			b.mu.Lock()
			b.read, b.full = pods, true
			b.mu.Unlock()
			b.wake()
			return
		}
		if ctx.Err() == nil {
			b.log.Warn("The pods cannot be read, and nothing is decided before.", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// list returns all pods as they are now. Without a resource version, the API server answers with
// the result of all writes that it has confirmed.
func (b *barrier) list(ctx context.Context) ([]watch.Event, error) {
	var out []watch.Event
	for o := (metav1.ListOptions{Limit: pageSize}); ; {
		page, err := b.client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, o)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			pod, err := feed.Strip(&page.Items[i])
			if err != nil {
				return nil, err
			}
			out = append(out, watch.Event{Object: pod})
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return out, nil
		}
	}
}
