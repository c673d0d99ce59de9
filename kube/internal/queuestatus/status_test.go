package queuestatus

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/live"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	before = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	after  = before.Add(time.Hour)
)

// spell returns the status as JSON.
func spell(t *testing.T, status *v1alpha1.QueueStatus) string {
	t.Helper()
	out, err := json.Marshal(status)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestStatus(t *testing.T) {
	in := Input{
		Shares: &live.QueueShares{Queues: []live.QueueShare{
			{Name: "idle", Revision: 5},
			{
				Name: "busy", Revision: 5, PendingJobs: 2,
				Quota:   cluster.Resources{{Name: "cpu", Value: cluster.Unlimited}, {Name: "nvidia.com/gpu", Value: 4000}},
				Share:   cluster.Resources{{Name: "nvidia.com/gpu", Value: 2500}},
				Used:    cluster.Resources{{Name: "memory", Value: 3 << 30}, {Name: "nvidia.com/gpu:H100", Value: 500}},
				Pending: cluster.Resources{{Name: "habana.ai/gaudi", Value: 8000}, {Name: "pods", Value: 2}},
			},
			{Name: "orphan", Parent: "gone", Revision: 5, Loose: true},
			{Name: "below", Parent: "orphan", Revision: 5, Loose: true},
			{Name: "x", Parent: "y", Revision: 5, Loose: true},
			{Name: "y", Parent: "x", Revision: 5, Loose: true},
			{Name: "corrected", Revision: 9},
		}},
		Invalid: map[string]Invalid{"wrong": {5, "spec.tier: unknown"}, "corrected": {8, "spec.tier: unknown"}, "long": {5, strings.Repeat("é", 2000)}},
	}
	condition := func(at time.Time, status, reason, message string) string {
		return `"conditions":[{"type":"Active","status":"` + status + `","observedGeneration":3,"lastTransitionTime":"` + at.Format(time.RFC3339) + `","reason":"` + reason + `","message":"` + message + `"}]`
	}
	active := condition(after, "True", "QueueActive", "")
	idle := `"observedGeneration":3,"pendingJobs":0,`
	for name, want := range map[string]string{
		"idle":      "{" + idle + active + "}",
		"busy":      `{"observedGeneration":3,"quota":{"cpu":"unlimited","nvidia.com/gpu":"4"},"share":{"nvidia.com/gpu":"2500m"},"allocated":{"cpu":"0","memory":"3Gi","nvidia.com/gpu":"0","nvidia.com/gpu:H100":"500m"},"pending":{"habana.ai/gaudi":"8","pods":"2"},"pendingJobs":2,` + active + "}",
		"orphan":    "{" + idle + condition(after, "False", "ParentMissing", "queue gone, the parent of queue orphan, does not exist or is invalid; jobs of the queue are not placed until it exists") + "}",
		"below":     "{" + idle + condition(after, "False", "ParentMissing", "queue gone, the parent of queue orphan, does not exist or is invalid; jobs of the queue are not placed until it exists") + "}",
		"x":         "{" + idle + condition(after, "False", "ParentCycle", "queue x is above itself; one of the queues above it needs another parent") + "}",
		"wrong":     `{"observedGeneration":3,` + condition(after, "False", "QueueInvalid", "spec.tier: unknown") + "}",
		"long":      `{"observedGeneration":3,` + condition(after, "False", "QueueInvalid", strings.Repeat("é", 1023)+"…") + "}",
		"corrected": "{" + idle + active + "}",
	} {
		o := &v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 3, ResourceVersion: "5"}}
		got, known := newQueues(&in).status(o, after)
		if !known {
			t.Errorf("queue %s is not known", name)
			continue
		}
		if diff := cmp.Diff(want, spell(t, got)); diff != "" {
			t.Errorf("queue %s (-want +got):\n%s", name, diff)
		}
	}
	if got, known := newQueues(&in).status(&v1alpha1.Queue{ObjectMeta: metav1.ObjectMeta{Name: "unseen"}}, after); known {
		t.Errorf("a queue that State has not seen has the status %s", spell(t, got))
	}
}

// The generation of a version that State has not seen does not count, and the time of a
// condition changes with its status only.
func TestStatusOfANewerVersion(t *testing.T) {
	in := Input{Shares: &live.QueueShares{Queues: []live.QueueShare{{Name: "a", Revision: 5}}}}
	o := &v1alpha1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Generation: 4, ResourceVersion: "6"},
		Status: v1alpha1.QueueStatus{ObservedGeneration: 3, Conditions: []metav1.Condition{
			{Type: "Active", Status: "True", Reason: "QueueActive", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(before)},
			{Type: "Other", Status: "True", Reason: "R", LastTransitionTime: metav1.NewTime(before)},
		}},
	}
	got, _ := newQueues(&in).status(o, after)
	if got.ObservedGeneration != 3 || got.Conditions[0].ObservedGeneration != 3 {
		t.Errorf("a version that State has not seen is observed: %s", spell(t, got))
	}
	if len(got.Conditions) != 2 || !got.Conditions[0].LastTransitionTime.Equal(&o.Status.Conditions[0].LastTransitionTime) {
		t.Errorf("the conditions are %s", spell(t, got))
	}
	in.Shares.Queues[0].Revision = 6
	if got, _ = newQueues(&in).status(o, after); got.ObservedGeneration != 4 || got.Conditions[0].ObservedGeneration != 4 {
		t.Errorf("a version that State has seen is not observed: %s", spell(t, got))
	}
	if o.Status.Conditions[0].ObservedGeneration != 3 {
		t.Error("the object was changed")
	}
}
