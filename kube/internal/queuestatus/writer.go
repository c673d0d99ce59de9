package queuestatus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"
)

// Resource is the resource of Queue objects.
var Resource = schema.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: "queues"}

// ErrNotServed is reported if the API server does not serve Queue objects.
var ErrNotServed = errors.New("the API server does not serve " + Resource.GroupResource().String() + "; install its CustomResourceDefinition")

// Options of a Writer.
type Options struct {
	Client dynamic.Interface
	// Read returns the newest input. It is called once per interval.
	Read func() (Input, error)
	// Held reports whether this process still holds the lease. It is called immediately
	// before each write.
	Held func() bool
	// Report is called with each error. The time between two errors about the same thing
	// doubles up to five minutes. Nil: errors are not reported.
	Report   func(error)
	Interval time.Duration // the least time between two writes of one status; 0 means 10 s
	Timeout  time.Duration // how long one request may take; 0 means 10 s
	Clock    clock.Clock   // nil means the real clock
}

// Writer writes statuses. Use New.
type Writer struct {
	options Options
	client  dynamic.ResourceInterface
	failure backOff             // of the last pass; zero if it succeeded
	queues  map[string]*backOff // of queues that could not be written, by name
}

// New returns a Writer.
func New(o Options) *Writer {
	if o.Interval == 0 {
		o.Interval = 10 * time.Second
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	return &Writer{options: o, client: o.Client.Resource(Resource), queues: map[string]*backOff{}}
}

// Run writes statuses until the context is done.
func (w *Writer) Run(ctx context.Context) {
	for {
		wait := w.options.Interval
		if w.options.Held() {
			switch err := w.write(ctx); {
			case ctx.Err() != nil:
				return
			case err != nil:
				w.failure.failed(w.options.Clock.Now(), w.options.Interval)
				wait = w.failure.wait
				w.options.Report(err)
			default:
				w.failure = backOff{}
			}
		}
		select {
		case <-w.options.Clock.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// write makes one pass over all queues. It returns an error that concerns all of them.
func (w *Writer) write(ctx context.Context) error {
	in, err := w.options.Read()
	if err != nil {
		return err
	}
	list, err := w.list(ctx)
	if err != nil {
		return err
	}
	slices.SortFunc(list.Items, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	computed, listed := newQueues(&in), map[string]bool{}
	for i := range list.Items {
		u := &list.Items[i]
		listed[u.GetName()] = true
		if b := w.queues[u.GetName()]; b != nil && w.options.Clock.Now().Before(b.until) {
			continue
		}
		switch err := w.writeQueue(ctx, u, computed); {
		case err == nil:
			delete(w.queues, u.GetName())
		case isAboutQueue(err):
			if w.queues[u.GetName()] == nil {
				w.queues[u.GetName()] = &backOff{}
			}
			w.queues[u.GetName()].failed(w.options.Clock.Now(), w.options.Interval)
			w.options.Report(fmt.Errorf("the status of queue %s: %w", u.GetName(), err))
		case errors.Is(err, errNotHeld):
			return nil
		default:
			return fmt.Errorf("the status of queue %s: %w", u.GetName(), err)
		}
	}
	for name := range w.queues {
		if !listed[name] {
			delete(w.queues, name)
		}
	}
	return nil
}

// list returns all queues.
func (w *Writer) list(ctx context.Context) (*unstructured.UnstructuredList, error) {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	list, err := w.client.List(ctx, metav1.ListOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrNotServed
	}
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return list, nil
}

// maxTries is how many times a status is sent in one pass if the object was changed by
// others meanwhile.
const maxTries = 4

var errNotHeld = errors.New("the lease is lost")

// writeQueue writes the status of one queue, unless the object has it already or was
// deleted.
func (w *Writer) writeQueue(ctx context.Context, u *unstructured.Unstructured, computed *queues) error {
	for try := 1; ; try++ {
		changed, err := w.change(u, computed)
		if changed == nil || err != nil {
			return err
		}
		if !w.options.Held() {
			return errNotHeld
		}
		err = w.request(ctx, func(ctx context.Context) error {
			_, err := w.client.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
			return err
		})
		if apierrors.IsConflict(err) && try < maxTries {
			err = w.request(ctx, func(ctx context.Context) error {
				u, err = w.client.Get(ctx, changed.GetName(), metav1.GetOptions{})
				return err
			})
			if err == nil {
				continue
			}
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
}

// change returns the object with the status that it should have, and nil if it has that
// status.
func (w *Writer) change(u *unstructured.Unstructured, computed *queues) (*unstructured.Unstructured, error) {
	var o v1alpha1.Queue
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &o); err != nil {
		return nil, conversionError{err}
	}
	status, known := computed.status(&o, w.options.Clock.Now())
	if !known {
		return nil, nil
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return nil, conversionError{err}
	}
	out := u.DeepCopy()
	merged, _, err := unstructured.NestedMap(out.Object, "status")
	if err != nil {
		return nil, conversionError{err}
	}
	if merged == nil {
		merged = map[string]any{}
	}
	for _, name := range []string{"observedGeneration", "quota", "share", "allocated", "pending", "pendingJobs", "conditions"} {
		if v, found := fields[name]; found {
			merged[name] = v
		} else {
			delete(merged, name)
		}
	}
	if old, _, _ := unstructured.NestedMap(u.Object, "status"); reflect.DeepEqual(old, merged) {
		return nil, nil
	}
	out.Object["status"] = merged
	return out, nil
}

// request calls f with a context for one request.
func (w *Writer) request(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.options.Timeout)
	defer cancel()
	return f(ctx)
}

// conversionError is about an object that cannot be converted.
type conversionError struct{ error }

// isAboutQueue reports whether the error concerns one queue only, so that the others can
// still be written.
func isAboutQueue(err error) bool {
	return errors.As(err, &conversionError{}) || apierrors.IsConflict(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)
}

// longestPause is the longest time between two tries.
const longestPause = 5 * time.Minute

// backOff is the time before the next try. It doubles with each failure.
type backOff struct {
	wait  time.Duration
	until time.Time
}

func (b *backOff) failed(now time.Time, first time.Duration) {
	b.wait = max(first, min(2*b.wait, longestPause))
	b.until = now.Add(b.wait)
}
