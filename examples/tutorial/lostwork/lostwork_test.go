package lostwork_test

import (
	"slices"
	"testing"
	"time"

	"example.com/my-berth/lostwork"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

func TestTheYoungerTasksAreEvicted(t *testing.T) {
	gpus := func(name string) *enginetest.NodeBuilder {
		return enginetest.Node(name).CPU(8, "64Gi").GPUs(4, "A100", "80Gi")
	}
	low := func(name, node string, devices int) *enginetest.JobBuilder {
		return enginetest.Job(name).Devices(devices).Preemptible().Priority(1).On(node)
	}
	// On a, one task has run for an hour; on b, two have run for minutes. Without the
	// plugin, the plan with fewer tasks is chosen.
	state := enginetest.State(gpus("a"), gpus("b"),
		low("hour", "a", 2), enginetest.Job("a-rest").Devices(2).On("a"),
		low("minute-1", "b", 1), low("minute-2", "b", 1), enginetest.Job("b-rest").Devices(2).On("b"),
		enginetest.Job("urgent").Devices(2).Priority(100))
	now := int64(24 * time.Hour)
	for name, run := range map[string]time.Duration{"hour": time.Hour, "minute-1": time.Minute, "minute-2": 2 * time.Minute} {
		state.Job("job/" + name).Tasks()[0].Started = now - int64(run)
	}
	evicted := func(profile engine.Profile) (jobs []string) {
		t.Helper()
		registry := standard.Registry()
		if err := registry.RegisterPluginBuilder(lostwork.Name, lostwork.New); err != nil {
			t.Fatal(err)
		}
		e, err := engine.New(registry, profile)
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Open(state.Clone(), engine.Options{Now: now, Search: engine.Twin}).Run()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range out.Decisions {
			if d.Action == engine.EvictTask {
				jobs = append(jobs, d.Task.Job)
			}
		}
		return jobs
	}
	if got := evicted(standard.Profile()); !slices.Equal(got, []string{"job/hour"}) {
		t.Errorf("without the plugin: %q", got)
	}
	got := evicted(append(standard.Profile(), engine.PluginConfig{Name: lostwork.Name}))
	if slices.Sort(got); !slices.Equal(got, []string{"job/minute-1", "job/minute-2"}) {
		t.Errorf("with the plugin: %q", got)
	}
}
