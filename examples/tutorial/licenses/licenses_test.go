package licenses_test

import (
	"testing"

	"example.com/my-berth/licenses"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

func TestLicenses(t *testing.T) {
	held := map[string]int{}
	plugin, err := licenses.Builder(func(_ cluster.TaskRef, node string) { held[node]++ })(enginetest.Arguments(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	gang := enginetest.Job("gang").Gang(3).Label("license", "solver")
	pair := enginetest.Job("pair").Gang(2).Label("license", "solver")
	free := enginetest.Job("unlicensed")
	scheduler := enginetest.Scheduler{
		Engine: enginetest.Engine(plugin),
		State:  enginetest.State(enginetest.Node("a").Label("licenses", "2"), enginetest.Node("b").Label("licenses", "2"), enginetest.Node("c"), gang, pair, free),
	}
	run := func(now int64) engine.Outcome {
		t.Helper()
		out, err := scheduler.Run(now)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	seen := func(job string) {
		for _, task := range scheduler.State.Job(job).Tasks() {
			if err := scheduler.Apply(cluster.TaskSeen{Task: task.Ref(), Node: task.Node.Name}); err != nil {
				t.Fatal(err)
			}
		}
	}

	// Three of four licenses are taken. The first task of the pair gets one license. It is released when the second task is rejected.
	out := run(1)
	if len(out.Decisions) != 4 || len(out.Refusals) != 1 || out.Refusals[0].Job != "job/pair" || out.Refusals[0].Reason != licenses.NoLicense || out.Refusals[0].Permanent {
		t.Fatalf("%+v", out)
	}
	if len(held) > 0 {
		t.Errorf("licenses are reported before tasks run: %v", held)
	}
	seen("job/gang")
	if held["a"] != 2 || held["b"] != 1 {
		t.Errorf("reported: %v", held)
	}

	// The gang ends, and the pair is tried again at once.
	if err := scheduler.Apply(cluster.JobGone{Job: "job/gang"}); err != nil {
		t.Fatal(err)
	}
	if out := run(2); len(out.Decisions) != 2 {
		t.Errorf("%+v", out)
	}
}

// TestVictimsReleaseTheirLicense checks an eviction for a license: devices are free, and
// the license is held by a job that may be preempted.
func TestVictimsReleaseTheirLicense(t *testing.T) {
	registry := standard.Registry()
	if err := registry.RegisterPluginBuilder(licenses.Name, licenses.Builder(nil)); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(registry, append(standard.Profile(), engine.PluginConfig{Name: licenses.Name}))
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "64Gi").GPUs(8, "A100", "80Gi").Label("licenses", "1"),
		enginetest.Job("low").Devices(1).Preemptible().On("a").Label("license", "solver"),
		enginetest.Job("high").Devices(1).Priority(10).Label("license", "solver"))
	out, err := e.Open(state, engine.Options{Now: 1, Search: engine.Twin}).Run()
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Decisions) != 2 || out.Decisions[0].Action != engine.EvictTask || out.Decisions[1].Task.Job != "job/high" {
		t.Errorf("%+v %+v", out.Decisions, out.Refusals)
	}
}

func TestNodesWithoutLicenses(t *testing.T) {
	plugin, err := licenses.Builder(nil)(enginetest.Arguments(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(enginetest.Node("a"), enginetest.Node("b").Label("licenses", "many"), enginetest.Job("j").Label("license", "solver"))
	out, err := enginetest.Engine(plugin).Open(state, engine.Options{Search: engine.Twin}).Run()
	if err != nil || len(out.Refusals) != 1 || !out.Refusals[0].Permanent {
		t.Errorf("%v %+v", err, out)
	}
}
