package manifest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Now is the newest time in the input, in nanoseconds: when an object was made,
// or until when a queue's use is known; 0 if there is none. It stands for the
// present where nobody says when that is, so that equal input gives equal output.
func (b *Bundle) Now() int64 {
	now := int64(0)
	for _, o := range b.Nodes {
		now = max(now, created(&o.ObjectMeta))
	}
	for _, o := range b.CoreNodes {
		now = max(now, created(&o.ObjectMeta))
	}
	for _, o := range b.Jobs {
		now = max(now, created(&o.ObjectMeta))
	}
	for _, o := range b.Pods {
		now = max(now, created(&o.ObjectMeta))
	}
	for _, o := range b.Queues {
		now = max(now, created(&o.ObjectMeta))
		for _, u := range o.Status.Usage {
			now = max(now, nanoseconds(u.To.Time))
		}
	}
	return now
}

// created is an object's age, in nanoseconds; 0 where it has none.
func created(m *metav1.ObjectMeta) int64 { return nanoseconds(m.CreationTimestamp.Time) }

// nanoseconds counts time as the books do; 0 where it is unknown.
func nanoseconds(t time.Time) int64 {
	if t.IsZero() || t.Year() < 1970 || t.Year() > 2200 { // beyond, nanoseconds do not count
		return 0
	}
	return t.UnixNano()
}
