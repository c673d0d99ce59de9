package convert

import (
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// longest bounds times that workloads wait: about 11 years.
const longest = 100_000 * time.Hour

// staleGrace is how long a gang may run below its minimum; nil: it does not say.
func staleGrace(d *metav1.Duration, at path, r reporter) *int64 {
	if d == nil {
		return nil
	}
	if d.Duration > longest {
		r.errorf(at, "want %s at most, have %s; a time below 0 is for good", longest, d.Duration)
	}
	grace := d.Nanoseconds()
	return &grace
}

// preemptionDelay is for how long a workload evicts nothing; 0 where it does not say.
func preemptionDelay(d *metav1.Duration, at path, r reporter) int64 {
	if d == nil {
		return 0
	}
	if d.Duration < 0 || d.Duration > longest {
		r.errorf(at, "want a time from 0 to %s, such as 5m, have %s", longest, d.Duration)
	}
	return d.Nanoseconds()
}

// podDelay is the preemption delay that the pod's annotation says.
func podDelay(o *corev1.Pod, r reporter) int64 {
	text, given := o.Annotations[v1alpha1.AnnotationPreemptionDelay]
	if !given {
		return 0
	}
	delay, err := time.ParseDuration(text)
	if err != nil || delay < 0 || delay > longest {
		r.errorf(path{"metadata", "annotations", v1alpha1.AnnotationPreemptionDelay}, "want a time from 0 to %s, such as 5m, have %s", longest, phrase.Quote(text))
		return 0
	}
	return delay.Nanoseconds()
}
