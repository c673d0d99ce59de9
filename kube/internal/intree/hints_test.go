package intree

import (
	"testing"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// TestCures compares the documented cures with the events that the in-tree plugins register.
func TestCures(t *testing.T) {
	p, err := build(NewStore())
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range p.wrapped {
		want := engine.Relax
		for _, e := range p.hints.events[i] {
			switch e.Event.Resource {
			case fwk.Pod:
				if e.Event.ActionType&fwk.Delete != 0 {
					want |= engine.Wait | engine.Evict
				}
			case fwk.Node:
				if e.Event.ActionType&fwk.Add != 0 {
					want |= engine.Grow
				}
			default:
				want |= engine.Wait
			}
		}
		if w.name == "NodeVolumeLimits" {
			want |= engine.Grow // it registers new CSINodes, which belong to new nodes
		}
		if w.name == "DynamicResources" {
			want |= engine.Evict // it registers the deallocation of claims, which follows the deletion of their pods
		}
		if got := cureOf(w.reason); got != want {
			t.Errorf("%s of %s: cure %v, want %v", w.reason, w.name, got, want)
		}
	}
	if p.hints.wake != engine.WakeNodes {
		t.Errorf("wake %v", p.hints.wake)
	}
}

// TestWake checks which changes let a patient session try a refused pod again.
func TestWake(t *testing.T) {
	w := newWorld(t)
	s := enginetest.Scheduler{Engine: w.engine, State: w.state}
	tries := func() int {
		t.Helper()
		w.now++
		out, err := s.Run(w.now)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Decisions) + len(out.Refusals)
	}
	immediate := storagev1.VolumeBindingImmediate
	w.put(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "now"}, VolumeBindingMode: &immediate, Provisioner: "example.com/now"})
	w.putNode(t, node("a", nil))
	pod := plain("p")
	pod.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	w.job(t, pod)
	if got := tries(); got != 1 {
		t.Fatalf("a new pod: %d tries", got)
	}
	if got := tries(); got != 0 {
		t.Errorf("nothing changed: %d tries", got)
	}
	w.put(t, claim("default", "unrelated", "now", "", v1.ReadWriteOnce))
	if got := tries(); got != 0 {
		t.Errorf("a claim of other pods was added: %d tries", got)
	}
	w.put(t, volume("pv", "now", v1.ReadWriteOnce))
	w.put(t, claim("default", "data", "now", "pv", v1.ReadWriteOnce))
	if got := tries(); got != 1 {
		t.Errorf("the claim was added: %d tries", got)
	}
	if task := w.state.Job("pod/default/p").Tasks()[0]; task.Node == nil {
		t.Errorf("the pod is not placed: %v", task.Status)
	}
}
