package reclaim

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// above allows victims in the queue named rich while that queue holds more than two devices.
type above struct{}

func (above) Name() string { return "Above" }
func (above) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddReclaimable(func(*cluster.Job, []*cluster.Task) func(*engine.Victim) engine.Verdict {
		return func(v *engine.Victim) engine.Verdict {
			if s.View.Queue(v.Job.Queue).Used.Of(cluster.DefaultDeviceResource) <= 2000 {
				return engine.Protect("NotRich")
			}
			return engine.Allow
		}
	})
}

func TestReclaiming(t *testing.T) {
	one := func(name string) *enginetest.JobBuilder {
		return enginetest.Job(name).Queue("rich").Devices(1).Preemptible().On("a")
	}
	tests := map[string]struct {
		judge   engine.Plugin
		devices int
		evicted int
	}{
		"as many victims as needed":         {above{}, 2, 2},
		"no victim if all are not enough":   {above{}, 3, 0},
		"no victim if no plugin allows one": {enginetest.Fit(), 1, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(enginetest.Node("a").GPUs(4, "A100", "80Gi"), enginetest.Queue("rich"), enginetest.Queue("poor"),
				one("w"), one("x"), one("y"), one("z"), enginetest.Job("new").Queue("poor").Devices(tt.devices))
			plugins := []engine.Plugin{enginetest.Fit(), &plugin{}}
			if tt.judge.Name() != "Fit" {
				plugins = append(plugins, tt.judge)
			}
			s := enginetest.Engine(plugins...).Open(state, engine.Options{})
			defer s.Close()
			out, err := s.Run()
			if err != nil {
				t.Fatal(err)
			}
			evicted := 0
			for _, d := range out.Decisions {
				if d.Action == engine.EvictTask {
					if evicted++; d.Reason != Reclaimed || d.For != "job/new" {
						t.Errorf("%s: %s for %s", d.Task.ID(), d.Reason, d.For)
					}
				}
			}
			if evicted != tt.evicted {
				t.Errorf("%d evicted, want %d", evicted, tt.evicted)
			}
		})
	}
}
