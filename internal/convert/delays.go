package convert

import (
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxDelay is the longest delay that a workload may have: about 11 years.
const maxDelay = 100_000 * time.Hour

// staleGrace converts the time for which a gang may run below its minimum, to nanoseconds. It
// returns nil if the time is not given, which means the value of the profile. A negative time
// means without limit. A time above maxDelay is an error.
func staleGrace(d *metav1.Duration, at path, r reporter) *int64 {
	if d == nil {
		return nil
	}
	if d.Duration > maxDelay {
		r.errorf(at, "want %s at most, have %s; a negative time means without limit", maxDelay, d.Duration)
	}
	grace := d.Nanoseconds()
	return &grace
}

// preemptionDelay converts the time for which no task is evicted or moved for a workload, to
// nanoseconds. It returns 0, which means no delay, if the time is not given. A negative time means
// without end. A time above maxDelay is an error.
func preemptionDelay(d *metav1.Duration, at path, r reporter) int64 {
	if d == nil {
		return 0
	}
	if d.Duration > maxDelay {
		r.errorf(at, "want %s at most, such as 5m, have %s; a negative time means without end", maxDelay, d.Duration)
	}
	return delayOf(d.Duration)
}

func delayOf(d time.Duration) int64 {
	if d < 0 {
		return cluster.Forever
	}
	return d.Nanoseconds()
}

// podPreemptionDelay reads the preemption delay from an annotation of the pod, in nanoseconds.
// It returns 0 if there is none, or if it is not valid, which is an error. It has no end if the
// pod, or its priority class, has the preemption policy Never.
func podPreemptionDelay(o *corev1.Pod, env *Environment, r reporter) int64 {
	policy := o.Spec.PreemptionPolicy
	if class := env.priorityClass(o); policy == nil && class != nil {
		policy = class.PreemptionPolicy
	}
	text, given := o.Annotations[v1alpha1.AnnotationPreemptionDelay]
	delay, err := time.ParseDuration(text)
	if wrong := err != nil || delay > maxDelay; given && wrong {
		r.errorf(path{"metadata", "annotations", v1alpha1.AnnotationPreemptionDelay}, "want a time of %s at most, such as 5m, have %s", maxDelay, phrase.Quote(text))
		return 0
	}
	switch {
	case policy != nil && *policy == corev1.PreemptNever:
		return cluster.Forever
	case given:
		return delayOf(delay)
	}
	return 0
}
