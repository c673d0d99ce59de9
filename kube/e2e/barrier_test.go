package e2e

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
	w.eventually(func() string {
		digest, err := s.Digest(w.ctx)
		if err != nil {
			return err.Error()
		}
		if !strings.Contains(digest, "pod/default/other") || !strings.Contains(digest, "pod/default/bound") {
			return "the scheduler does not know the pods"
		}
		return ""
	})
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
