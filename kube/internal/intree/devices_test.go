package intree

import (
	"context"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/dynamic-resource-allocation/structured"
)

// allocatedClaim returns a claim that has a device and is reserved for pods.
func allocatedClaim(name, device string, pods ...string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{Driver: "d", Pool: "p", Device: device}}}}
	for _, p := range pods {
		c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p, UID: types.UID(p)})
	}
	return c
}

// TestReleasedDevices checks that a device can be reserved as soon as all pods that use it are
// leaving, for one claim only, and that it is not allocated before it is deallocated.
func TestReleasedDevices(t *testing.T) {
	s := NewStore()
	p, err := build(s)
	if err != nil {
		t.Fatal(err)
	}
	tracker := p.claims.tracker
	put := func(c *resourcev1.ResourceClaim) {
		if err := s.Put(c); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want bool) {
		t.Helper()
		state, err := tracker.GatherAllocatedState()
		if err != nil {
			t.Fatal(err)
		}
		if got := state.AllocatedDevices.Has(structured.MakeDeviceID("d", "p", "gpu")); got != want {
			t.Errorf("%s: allocated %v, want %v", when, got, want)
		}
	}
	put(allocatedClaim("old", "gpu", "a", "b"))
	check("both pods run", true)
	tracker.leaving["a"] = true
	check("one pod is leaving", true)
	s.gone.note(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "b"}, Spec: v1.PodSpec{ResourceClaims: []v1.PodResourceClaim{{Name: "c"}}}})
	check("the other is gone", false)
	next := allocatedClaim("new", "gpu")
	if err := tracker.SignalClaimPendingAllocation("new", next); err != nil {
		t.Fatal(err)
	}
	check("it is reserved for another claim", true)
	h := &hold{pending: tracker.takeSignalled()}
	if text := tracker.occupied(h.pending); !strings.Contains(text, "is still allocated to default/old") {
		t.Errorf("%q is in the way", text)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if p.claims.waitForDevices(ended, h) == "" {
		t.Error("the device may be allocated")
	}
	tracker.undo(h)
	check("the reservation is undone", false)
	delete(tracker.leaving, "a")
	check("the eviction is undone", true)
	if err := s.Delete(allocatedClaim("old", "gpu")); err != nil {
		t.Fatal(err)
	}
	check("the claim is deleted", false)
	if text := tracker.occupied(h.pending); text != "" {
		t.Errorf("%q is in the way", text)
	}
	tracker.leaving["c"] = true
	check("another pod is leaving", false)
	if s.gone.uids.Len() > 0 {
		t.Error("pods are remembered that have no claim any more")
	}
}

// TestHandlersGetKnownObjects checks that a plugin that is built after the Store was filled
// knows the claims.
func TestHandlersGetKnownObjects(t *testing.T) {
	s := NewStore()
	if err := s.Put(allocatedClaim("c", "gpu", "a")); err != nil {
		t.Fatal(err)
	}
	p, err := build(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.claims.tracker.Get("default", "c"); err != nil {
		t.Error(err)
	}
}
