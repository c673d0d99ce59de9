package e2e

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// waitKnown waits until the scheduler knows the pods.
func (w *world) waitKnown(s *inProcess, names ...string) {
	w.Helper()
	w.eventually(func() string {
		digest, err := s.Digest(w.ctx)
		if err != nil {
			return err.Error()
		}
		for _, name := range names {
			if !strings.Contains(digest, "pod/default/"+name) {
				return "the scheduler does not know pod " + name
			}
		}
		return ""
	})
}

// TestStaleLeader makes a process the leader whose watches are behind: an earlier leader has bound
// a pod, which they have not delivered. The new leader does not give the room to another pod.
func TestStaleLeader(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	p := w.newProxy(*faultSeed)
	var leads atomic.Bool
	s := w.newInProcess(p.config(), leads.Load)
	w.create(pod("other", 8)) // it is the older one, and is tried first
	time.Sleep(1100 * time.Millisecond)
	w.create(pod("bound", 8))
	w.waitKnown(s, "other", "bound")
	resume := p.freeze()
	w.bindByHand("bound", "node-0000", "")
	leads.Store(true)
	w.eventually(func() string {
		if text := conditionText(w.pods()["other"]); !strings.HasPrefix(text, "False Unschedulable") {
			return "pod other: " + text
		}
		return ""
	})
	w.checkRoom()
	resume()
	w.sameAsFresh(s)
}

// TestStaleLeaderClaims makes a process the leader whose watches are behind: an earlier leader has
// allocated the only device to the claim of a pod, which they have not delivered. The new leader
// does not allocate the device to another claim.
func TestStaleLeaderClaims(t *testing.T) {
	w := newWorld(t)
	w.apply(draClasses)
	w.apply(twoClaims)
	w.draNode("gpus", "NVIDIA H100 80GB HBM3", "80Gi", 1)
	p := w.newProxy(*faultSeed)
	var leads atomic.Bool
	s := w.newInProcess(p.config(), leads.Load)
	w.create(pod("other", 0, using("second"))) // it is the older one, and is tried first
	time.Sleep(1100 * time.Millisecond)
	w.create(pod("bound", 0, using("first")))
	w.waitKnown(s, "other", "bound")
	resume := p.freeze()
	claims := w.client.ResourceV1().ResourceClaims(namespace)
	c, err := claims.Get(w.ctx, "first", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "gpu", Driver: "gpu.nvidia.com", Pool: "gpus", Device: "gpu-0"}},
	}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "bound", UID: w.pods()["bound"].UID}}
	if _, err := claims.UpdateStatus(w.ctx, c, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.watchClaims()
	leads.Store(true)
	// The pod that has the claim is bound by the new leader, and the other one is refused.
	w.eventually(func() string { return w.allBound("bound") })
	w.waitCondition("other", "False Unschedulable")
	resume()
	w.sameAsFresh(s)
	w.checkDevices()
}
