package preempt

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

const gpu = cluster.DefaultDeviceResource

// Eight devices are held by the victim and other jobs, and the job needs two of them.
func TestWhichVictimsMayBePreempted(t *testing.T) {
	queue := enginetest.Queue
	victim := func(queue string) *enginetest.JobBuilder {
		return enginetest.Job("victim").Queue(queue).Devices(2).Preemptible().On("a")
	}
	others := func(queue string, n int) *enginetest.JobBuilder {
		return enginetest.Job("others").Queue(queue).Devices(n).On("a")
	}
	job := func(queue string) *enginetest.JobBuilder { return enginetest.Job("new").Queue(queue).Devices(2) }
	tests := map[string]struct {
		parts []enginetest.Part
		want  engine.Verdict
	}{
		"lower priority in the same queue":                        {[]enginetest.Part{queue("q"), victim("q").Priority(1), job("q").Priority(2)}, engine.Allow},
		"equal priority":                                          {[]enginetest.Part{queue("q"), victim("q").Priority(2), job("q").Priority(2)}, engine.Protect(VictimNotLower)},
		"higher priority":                                         {[]enginetest.Part{queue("q"), victim("q").Priority(3), job("q").Priority(2)}, engine.Protect(VictimNotLower)},
		"lower priority in another queue":                         {[]enginetest.Part{queue("q"), queue("r"), victim("r").Priority(1), job("q").Priority(2)}, engine.Protect(VictimTierNotWeaker)},
		"a weaker tier, whatever its priority":                    {[]enginetest.Part{queue("q"), queue("r").Tier(cluster.TierScavenger), victim("r").Priority(9), job("q")}, engine.Allow},
		"a victim in the parent queue":                            {[]enginetest.Part{queue("r").Tier(cluster.TierScavenger), queue("q").Parent("r"), victim("r"), job("q")}, engine.Protect(VictimTierNotWeaker)},
		"a queue that does not exist any more":                    {[]enginetest.Part{queue("q"), victim("gone"), job("q")}, engine.Protect(VictimTierNotWeaker)},
		"a stronger tier":                                         {[]enginetest.Part{queue("q").Tier(cluster.TierScavenger), queue("r"), victim("r"), job("q").Priority(9)}, engine.Protect(VictimTierNotWeaker)},
		"Guaranteed takes from Standard":                          {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), queue("r"), victim("r"), job("q")}, engine.Allow},
		"Guaranteed beyond its quota does not take from Standard": {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(gpu, 1000), queue("r"), victim("r"), job("q")}, engine.NotYet(VictimTierNotWeaker)},
		"a victim within a Guaranteed quota":                      {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), queue("r").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), victim("r"), job("q")}, engine.Protect(VictimWithinItsGuarantee)},
		"a victim beyond a Guaranteed quota":                      {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), queue("r").Tier(cluster.TierGuaranteed).Quota(gpu, 4000), others("r", 4), victim("r"), job("q")}, engine.Allow},
		"a victim partly within a Guaranteed quota":               {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed).Quota(gpu, 2000), queue("r").Tier(cluster.TierGuaranteed).Quota(gpu, 5000), others("r", 4), victim("r"), job("q")}, engine.Protect(VictimWithinItsGuarantee)},
		"Guaranteed queues without quotas":                        {[]enginetest.Part{queue("q").Tier(cluster.TierGuaranteed), queue("r").Tier(cluster.TierGuaranteed), victim("r"), job("q")}, engine.Protect(VictimTierNotWeaker)},
		"the tiers of the siblings at which the paths diverge": {[]enginetest.Part{queue("top").Tier(cluster.TierGuaranteed), queue("bottom").Tier(cluster.TierScavenger),
			queue("q").Parent("top").Tier(cluster.TierScavenger), queue("r").Parent("bottom").Tier(cluster.TierGuaranteed), victim("r"), job("q")}, engine.Allow},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(append([]enginetest.Part{enginetest.Node("a").GPUs(8, "A100", "80Gi")}, tt.parts...)...)
			p := &plugin{}
			s := enginetest.Engine(p).Open(state, engine.Options{})
			defer s.Close()
			new := state.Job("job/new")
			got := p.preemptable(new, new.Tasks())(engine.VictimOf(state.Job("job/victim").Tasks()[0]))
			if got != tt.want {
				t.Errorf("want %+v, have %+v", tt.want, got)
			}
		})
	}
}

func TestPreempting(t *testing.T) {
	state := enginetest.State(enginetest.Node("a").GPUs(2, "A100", "80Gi"),
		enginetest.Job("low").Devices(1).Preemptible().On("a"), enginetest.Job("equal").Devices(1).Preemptible().Priority(5).On("a"),
		enginetest.Job("new").Devices(1).Priority(5), enginetest.Job("large").Devices(2).Priority(5))
	s := enginetest.Engine(enginetest.Fit(), &plugin{}).Open(state, engine.Options{})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	var evicted []string
	for _, d := range out.Decisions {
		if d.Action == engine.EvictTask {
			evicted = append(evicted, d.Task.Job+" "+d.For+" "+string(d.Reason))
		}
	}
	if len(evicted) != 1 || evicted[0] != "job/low job/new Preempted" || len(out.Refusals) != 1 || out.Refusals[0].Job != "job/large" {
		t.Errorf("evicted %v, refused %d", evicted, len(out.Refusals))
	}
}
