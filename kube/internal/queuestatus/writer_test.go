package queuestatus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/crdtest"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"
)

// TestWriter checks the Writer on an API server.
func TestWriter(t *testing.T) {
	cp := controlplane.StartForTest(t, controlplane.Options{})
	run := func(name string, test func(*world)) {
		t.Run(name, func(t *testing.T) { test(newWorld(t, cp)) })
	}
	run("not served", testNotServed)
	crdtest.Install(t, newWorld(t, cp).client)
	run("amounts", testAmounts)
	run("only what changed", testOnlyChanges)
	run("conflicts", testConflicts)
	run("problems", testProblems)
	run("lease", testLease)
	run("one queue fails", testOneFails)
	run("deleted", testDeleted)
	t.Run("server stops", func(t *testing.T) { testServerStops(newWorld(t, cp), cp) })
}

// A definition that is not installed is an error that is reported, and nothing else.
func testNotServed(w *world) {
	if err := w.writer().write(w.Context()); !errors.Is(err, ErrNotServed) {
		w.Errorf("the error is %v", err)
	}
}

func testAmounts(w *world) {
	w.apply(cluster.NodePut{Node: *enginetest.Node("n").CPU(32, "256Gi").GPUs(4, "L4", "24Gi").Build()})
	w.create("org", "")
	w.create("a", "spec: {parent: org, quota: {nvidia.com/gpu: 2}}")
	w.create("b", "spec: {parent: org, quota: {nvidia.com/gpu: 1}, limits: {memory: 8Gi}}")
	w.sync()
	writer := w.writer()
	w.pass(writer)
	check := func(name, quota, share, used, pending string, jobs int32) {
		w.Helper()
		status := w.get(name).Status
		gpu := func(list map[string]string) string { return list["nvidia.com/gpu"] }
		got := fmt.Sprintln(gpu(texts(w, status.Quota)), gpu(texts(w, status.Share)), gpu(texts(w, status.Allocated)), gpu(texts(w, status.Pending)), *status.PendingJobs)
		if want := fmt.Sprintln(quota, share, used, pending, jobs); got != want {
			w.Errorf("queue %s: want %shave %s", name, want, got)
		}
		if c := status.Conditions; len(c) != 1 || c[0].Type != v1alpha1.ConditionActive || c[0].Status != metav1.ConditionTrue || status.ObservedGeneration != 1 {
			w.Errorf("queue %s: %+v", name, status)
		}
	}
	check("org", "3", "0", "0", "", 0)
	check("a", "2", "0", "0", "", 0)

	w.job("a1", "a", 4)
	w.session()
	w.job("b1", "b", 2)
	w.job("b2", "b", 2)
	w.pass(writer)
	check("org", "3", "4", "4", "4", 2)
	check("a", "2", "2500m", "4", "", 0)
	check("b", "1", "1500m", "0", "4", 2)
	if got := texts(w, w.get("b").Status.Pending); got["memory"] != "2Gi" || got["cpu"] != "2" {
		w.Errorf("pending amounts of b: %v", got)
	}
}

// texts returns amounts as they are written in manifests.
func texts[K ~string, V interface{ MarshalJSON() ([]byte, error) }](w *world, list map[K]V) map[string]string {
	w.Helper()
	out := map[string]string{}
	for name, v := range list {
		data, err := v.MarshalJSON()
		if err != nil {
			w.Fatal(err)
		}
		out[string(name)] = string(data[1 : len(data)-1]) // without quotes
	}
	return out
}

// A status that has not changed is not written, and what others wrote in it is kept.
func testOnlyChanges(w *world) {
	created := w.create("a", "spec: {quota: {nvidia.com/gpu: 2}}")
	w.create("b", "")
	usage := crdtest.Object(w, `
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: a}
status:
  usage: [{from: "2026-01-01T00:00:00.25Z", to: "2026-01-01T01:00:00Z", resources: {cpu: 0.50}}]
  conditions: [{type: Other, status: "True", reason: R, message: "", lastTransitionTime: "2026-01-01T00:00:00Z"}]`[1:])
	usage.Object["status"].(map[string]any)["usage"].([]any)[0].(map[string]any)["resources"] = map[string]any{"cpu": "0.50"}
	usage.SetResourceVersion(created.GetResourceVersion())
	if _, err := w.queues.UpdateStatus(w.Context(), usage, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
	w.sync()
	writer := w.writer()
	w.pass(writer)
	first, other := w.get("a"), w.get("b")
	if len(first.Status.Conditions) != 2 || first.Status.Conditions[0].Type != "Other" {
		w.Errorf("the conditions are %+v", first.Status.Conditions)
	}
	u, err := w.queues.Get(w.Context(), "a", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff(usage.Object["status"].(map[string]any)["usage"], u.Object["status"].(map[string]any)["usage"]); diff != "" {
		w.Errorf("the usage was changed (-want +got):\n%s", diff)
	}
	for range 3 {
		w.sync() // State learns the versions that the writer has made
		w.pass(writer)
	}
	if again := w.get("a"); again.ResourceVersion != first.ResourceVersion {
		w.Errorf("a status that has not changed was written: %+v", again.Status)
	}
	w.job("a1", "a", 1)
	w.pass(writer)
	if again := w.get("a"); *again.Status.PendingJobs != 1 {
		w.Errorf("a status that has changed was not written: %+v", again.Status)
	}
	if again := w.get("b"); again.ResourceVersion != other.ResourceVersion {
		w.Error("the status of another queue was written")
	}
}

// change changes the spec of the queue with another client.
func (w *world) change(name string, priority int64) {
	w.Helper()
	u, err := w.queues.Get(w.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	if err := unstructured.SetNestedField(u.Object, priority, "spec", "priority"); err != nil {
		w.Fatal(err)
	}
	if _, err := w.queues.Update(w.Context(), u, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// An object that changes between reading and writing is read again.
func testConflicts(w *world) {
	w.create("a", "")
	w.sync()
	changes, most := int64(0), int64(2)
	var reported []error
	writer := New(Options{Client: w.client, Read: w.read, Report: func(err error) { reported = append(reported, err) }, Held: func() bool {
		if changes < most {
			changes++
			w.change("a", changes)
		}
		return true
	}})
	w.pass(writer)
	got := w.get("a")
	if got.Status.PendingJobs == nil || got.Spec.Priority != 2 || got.Generation != 3 || got.Status.ObservedGeneration != 0 {
		w.Errorf("after two conflicts: %+v, and the spec is %+v", got.Status, got.Spec)
	}
	w.sync()
	w.pass(writer)
	if got := w.get("a"); got.Status.ObservedGeneration != 3 {
		w.Errorf("the observed generation is %d", got.Status.ObservedGeneration)
	}
	// If there are always others that are faster, the queue is left for a later pass.
	w.job("j", "a", 1)
	most = 100
	if w.pass(writer); changes != 2+maxTries || len(reported) != 1 || *w.get("a").Status.PendingJobs != 0 {
		w.Errorf("%d changes, and reported: %v", changes, reported)
	}
}

func testProblems(w *world) {
	w.create("orphan", "spec: {parent: nowhere}")
	w.create("first", "spec: {parent: second}")
	w.create("second", "spec: {parent: first}")
	// The definition cannot know which devices nodes have.
	w.create("wrong", `spec: {limits: {"example.com/npu:X1": 2}}`)
	w.sync()
	w.create("unseen", "")
	w.pass(w.writer())
	for name, want := range map[string]string{"orphan": v1alpha1.ReasonParentMissing, "first": v1alpha1.ReasonParentCycle, "wrong": v1alpha1.ReasonQueueInvalid} {
		if c := w.get(name).Status.Conditions; len(c) != 1 || c[0].Status != metav1.ConditionFalse || c[0].Reason != want || c[0].Message == "" {
			w.Errorf("queue %s: %+v", name, c)
		}
	}
	if got := w.get("unseen").Status; got.PendingJobs != nil || len(got.Conditions) > 0 {
		w.Errorf("a queue that State has not seen: %+v", got)
	}
}

// Without the lease, nothing is written.
func testLease(w *world) {
	created := w.create("a", "")
	w.sync()
	held := false
	writer := New(Options{Client: w.client, Read: w.read, Held: func() bool { return held }})
	if w.pass(writer); w.get("a").ResourceVersion != created.GetResourceVersion() {
		w.Error("a status was written without the lease")
	}
	held = true
	if w.pass(writer); w.get("a").ResourceVersion == created.GetResourceVersion() {
		w.Error("no status was written with the lease")
	}
}

// A queue that cannot be written is tried again later, and the others are written.
func testOneFails(w *world) {
	w.create("a", "")
	w.create("b", "")
	w.sync()
	w.invalid["a"] = Invalid{1 << 62, "wrong"}
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	var reported []error
	calls := 0
	writer := New(Options{Client: w.client, Read: w.read, Clock: clock, Report: func(err error) { reported = append(reported, err) }, Held: func() bool {
		calls++ // in two passes for queue a, with a call for queue b between them
		if calls <= maxTries || calls > maxTries+1 && calls <= 2*maxTries+1 {
			w.change("a", int64(calls))
		}
		return true
	}})
	for _, wait := range []time.Duration{0, writer.options.Interval - 1, 1, writer.options.Interval, writer.options.Interval} {
		clock.Step(wait)
		w.pass(writer)
	}
	if len(reported) != 2 || calls != 2*maxTries+2 {
		w.Errorf("after %d calls, reported: %v", calls, reported)
	}
	if got := w.get("a"); len(got.Status.Conditions) == 0 || w.get("b").Status.PendingJobs == nil {
		w.Errorf("a status was not written: %+v", got.Status)
	}
	if len(writer.queues) > 0 {
		w.Errorf("back-offs are left: %v", writer.queues)
	}
}

// A queue that is deleted after it was listed is no error.
func testDeleted(w *world) {
	w.create("a", "")
	w.sync()
	deleted := false
	writer := New(Options{Client: w.client, Read: w.read, Report: func(err error) { w.Error(err) }, Held: func() bool {
		if !deleted {
			deleted = true
			if err := w.queues.Delete(w.Context(), "a", metav1.DeleteOptions{}); err != nil {
				w.Error(err)
			}
		}
		return true
	}})
	if w.pass(writer); !deleted {
		w.Error("no status was to be written")
	}
}

// testServerStops kills the API server: passes are made once per interval, less often while
// they fail, and the status is written when the server is back.
func testServerStops(w *world, cp *controlplane.ControlPlane) {
	w.create("a", "")
	w.sync()
	clock := testingclock.NewFakeClock(time.Unix(1e9, 0))
	var passes, reported atomic.Int64
	writer := New(Options{Client: w.client, Clock: clock, Held: func() bool { return true }, Timeout: 5 * time.Second, Interval: time.Minute,
		Read:   func() (Input, error) { passes.Add(1); return w.read() },
		Report: func(error) { reported.Add(1) },
	})
	ctx, stop := context.WithCancel(w.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		writer.Run(ctx)
	}()
	step := func(by time.Duration, wantPasses, wantReported int64) {
		w.Helper()
		waitFor(w, clock.HasWaiters)
		clock.Step(by)
		waitFor(w, clock.HasWaiters)
		if passes.Load() != wantPasses || reported.Load() != wantReported {
			w.Errorf("want %d passes and %d errors, have %d and %d", wantPasses, wantReported, passes.Load(), reported.Load())
		}
	}
	step(59*time.Second, 1, 0)
	step(time.Second, 2, 0)
	if w.get("a").Status.PendingJobs == nil {
		w.Error("no status was written")
	}
	if err := cp.Kill(controlplane.APIServer); err != nil {
		w.Fatal(err)
	}
	step(time.Minute, 3, 1)
	step(time.Minute, 4, 2)
	step(time.Minute, 4, 2)
	step(time.Minute, 5, 3)
	step(3*time.Minute, 5, 3)
	step(time.Minute, 6, 4)
	if err := cp.Restart(w.Context(), controlplane.APIServer); err != nil {
		w.Fatal(err)
	}
	waitFor(w, func() bool {
		_, err := w.queues.List(w.Context(), metav1.ListOptions{})
		return err == nil
	})
	w.job("j", "a", 1)
	step(longestPause, 7, 4)
	if got := w.get("a").Status; *got.PendingJobs != 1 {
		w.Errorf("after the server is back: %+v", got)
	}
	stop()
	<-done
}

func waitFor(w *world, f func() bool) {
	w.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatal("it takes too long")
		}
	}
}
