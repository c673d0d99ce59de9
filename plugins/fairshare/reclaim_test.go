package fairshare

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// There are eight devices. The job new is in queue q and requests two of them. The victim
// holds some. Shares follow from all requests; the comments give them.
func TestWhichVictimsMayBeReclaimed(t *testing.T) {
	queue := enginetest.Queue
	held := func(name, queue string, devices int) *enginetest.JobBuilder {
		return enginetest.Job(name).Queue(queue).Devices(devices).Preemptible().On("a")
	}
	job := func(queue string) *enginetest.JobBuilder {
		return enginetest.Job("new").Queue(queue).Devices(2).Preemptible()
	}
	tests := map[string]struct {
		parts []enginetest.Part
		want  engine.Verdict
	}{
		// q requests 2, r 8: the shares are q 2, r 6.
		"down to the share": {[]enginetest.Part{queue("q"), queue("r"), held("victim", "r", 2), held("other", "r", 6), job("q")}, engine.Allow},
		// The same, but the victim holds more than r has above its share.
		"not below the share": {[]enginetest.Part{queue("q"), queue("r"), held("victim", "r", 3), held("other", "r", 5), job("q")}, engine.Protect(VictimQueueWithinItsShare)},
		// q has a quota of 2 and stays within it. Only the last resort allows the victim, which cannot be divided.
		"not below it for a quota": {[]enginetest.Part{queue("q").Quota(cluster.DefaultDeviceResource, 2000), queue("r"), held("victim", "r", 8), job("q")}, engine.Protect(VictimQueueWithinItsShare)},
		// r has a quota of 6 and holds 6, so its share is 6.
		"not from within a quota": {[]enginetest.Part{queue("q").Quota(cluster.DefaultDeviceResource, 2000), queue("r").Quota(cluster.DefaultDeviceResource, 6000), held("victim", "r", 6), held("other", "q", 2), job("q")}, engine.NoOpinion},
		// q holds 4, its share is 4, and it requests 2 more.
		"not for more than one's share": {[]enginetest.Part{queue("q"), queue("r"), held("own", "q", 4), held("victim", "r", 1), held("other", "r", 3), enginetest.Job("more").Queue("r").Devices(4), job("q")}, engine.NoOpinion},
		"not in a queue above":          {[]enginetest.Part{queue("r"), queue("q").Parent("r"), held("victim", "r", 8), job("q")}, engine.Protect(VictimInSameQueue)},
		"not in a queue that is gone":   {[]enginetest.Part{queue("q"), held("victim", "gone", 8), job("q")}, engine.Protect(VictimInSameQueue)},
		"not in the same queue":         {[]enginetest.Part{queue("q"), held("victim", "q", 2), job("q")}, engine.Protect(VictimInSameQueue)},
		// A Scavenger could not keep what it takes from a Standard queue.
		"not from a stronger tier":    {[]enginetest.Part{queue("q").Tier(cluster.TierScavenger), queue("r"), held("victim", "r", 2), held("other", "r", 6), job("q")}, engine.Protect(VictimOfStrongerTier)},
		"from a weaker tier":          {[]enginetest.Part{queue("q"), queue("r").Tier(cluster.TierScavenger), held("victim", "r", 2), held("other", "r", 6), job("q")}, engine.Allow},
		"Guaranteed up to its quota":  {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 2000), queue("r").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 6000), held("victim", "r", 3), held("other", "r", 5), job("q")}, engine.Protect(VictimGuaranteed)},
		"Guaranteed beyond its quota": {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 2000), queue("r").Tier(cluster.TierGuaranteed).Quota(cluster.DefaultDeviceResource, 6000), held("victim", "r", 2), held("other", "r", 6), job("q")}, engine.Allow},
		// left and right request 8 and 2: left gets 6, right 2. Below left, r and s request and hold 4 each, and get
		// 3 each. Both are above their share.
		"where branches part": {[]enginetest.Part{queue("left"), queue("right"), queue("q").Parent("right"), queue("r").Parent("left"), queue("s").Parent("left"),
			held("victim", "r", 1), held("other", "r", 3), held("others", "s", 4), job("q")}, engine.Allow},
		// Below one parent, q requests 2, r 1, s 7. r is within its share, although the parent holds everything.
		"not from one within its share beside others": {[]enginetest.Part{queue("top"), queue("q").Parent("top"), queue("r").Parent("top"), queue("s").Parent("top"),
			held("victim", "r", 1), held("others", "s", 7), job("q")}, engine.Protect(VictimQueueWithinItsShare)},
		// There are enough cores, so no queue is above its share of them.
		"not for what there is enough of": {[]enginetest.Part{queue("q"), queue("r"), enginetest.Job("victim").Queue("r").CPU(1000, "1Gi").Preemptible().On("a"), enginetest.Job("new").Queue("q").CPU(2000, "1Gi").Devices(2).Preemptible()}, engine.Protect(VictimQueueWithinItsShare)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			node := enginetest.Node("a").CPU(64, "64Gi").GPUs(8, "A100", "80Gi")
			state := enginetest.State(append([]enginetest.Part{node}, tt.parts...)...)
			p := &plugin{}
			s := enginetest.Engine(p).Open(state, engine.Options{})
			defer s.Close()
			job := state.Job("job/new")
			got := engine.NoOpinion
			if may := p.reclaimable(job, job.Tasks()); may != nil { // nil: every victim is protected
				got = may(engine.VictimOf(state.Job("job/victim").Tasks()[0]))
			}
			if got != tt.want {
				t.Errorf("want %+v, have %+v", tt.want, got)
			}
		})
	}
}
