package standard

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// decide runs a session of the profile with the overrides.
func decide(t *testing.T, state *cluster.State, overrides ...Override) engine.Outcome {
	t.Helper()
	profile, err := Merge(ProfileFor(overrides), overrides, false)
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	s := e.Open(state, engine.Options{Search: engine.Twin})
	defer s.Close()
	out, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// No two plugins score the same property.
func TestWhichPluginsScore(t *testing.T) {
	job := func() *enginetest.JobBuilder { return enginetest.Job("j").CPU(1000, "1Gi").DeviceMemory(1, "8Gi") }
	files := func(s *cluster.Shape) { s.Files.Main = "llama" }
	tests := map[string]struct {
		job  *enginetest.JobBuilder
		want []string
	}{
		"a job":           {job(), []string{"FillValue", "ScarceResourceAvoidance", "TaintToleration", "spot-instance-manager"}},
		"a packed model":  {job().ModelReplica(cluster.Binpack).Shape(files), []string{"ModelFileLocalityScorer", "PlacementScorer", "TaintToleration", "spot-instance-manager"}},
		"a spread model":  {job().ModelReplica(cluster.Spread), []string{"PlacementScorer", "TaintToleration", "spot-instance-manager"}},
		"without devices": {enginetest.Job("j").CPU(1000, "1Gi").ModelReplica(cluster.Binpack), []string{"PlacementScorer", "ScarceResourceAvoidance", "TaintToleration", "spot-instance-manager"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := decide(t, enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"), tt.job))
			if len(out.Decisions) != 1 {
				t.Fatalf("outcome %+v", out)
			}
			var got []string
			for _, p := range out.Decisions[0].Score.Parts {
				got = append(got, p.Plugin)
			}
			slices.Sort(got)
			if d := cmp.Diff(tt.want, slices.Compact(got)); d != "" {
				t.Errorf("plugins that score (-want +got):\n%s", d)
			}
		})
	}
}

// PlacementScorer chooses the devices of models, whatever the strategy of DeviceOrder.
func TestDevicesOfModels(t *testing.T) {
	spread := Override{Name: "DeviceOrder", Arguments: enginetest.Arguments(`{"strategy": "spread"}`)}
	for strategy, want := range map[cluster.Strategy]int{cluster.Binpack: 0, cluster.Spread: 1} {
		state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(2, "L4", "24Gi"),
			enginetest.Job("x").DeviceMemory(1, "8Gi").On("a"), enginetest.Job("j").DeviceMemory(1, "8Gi").ModelReplica(strategy))
		out := decide(t, state, spread)
		if len(out.Decisions) != 1 || out.Decisions[0].Claims[0].Device != want {
			t.Errorf("%s: decisions %+v, want device %d", strategy, out.Decisions, want)
		}
	}
}

// Cores that are reserved for tasks with devices are also not available to models without devices.
func TestReservationHoldsForModels(t *testing.T) {
	reserve := Override{Name: "ScarceResourceAvoidance", Arguments: enginetest.Arguments(`{"reserve": {"perDevice": {"cpu": "8"}}}`)}
	state := enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"), enginetest.Job("j").CPU(1000, "1Gi").ModelReplica(cluster.Binpack))
	out := decide(t, state, reserve)
	if len(out.Refusals) != 1 || out.Refusals[0].Reason != "ReservedForDevices" {
		t.Errorf("outcome %+v, want a refusal for ReservedForDevices", out)
	}
}

// A preference of the user outweighs packing, and existing files decide between equal nodes.
func TestPreferencesOutweighPacking(t *testing.T) {
	full := enginetest.Node("full").CPU(8, "64Gi").GPUs(1, "L4", "24Gi")
	idle := func() *enginetest.NodeBuilder { return enginetest.Node("idle").CPU(8, "64Gi").GPUs(1, "L4", "24Gi") }
	other := enginetest.Job("x").DeviceMemory(1, "8Gi").On("full")
	model := func() *enginetest.JobBuilder {
		return enginetest.Job("m").ModelReplica(cluster.Binpack).DeviceMemory(1, "8Gi").Shape(func(s *cluster.Shape) { s.Files.Main = "llama" })
	}
	prefer := func(s *cluster.Shape) {
		s.Preferred = []cluster.Preference{{Weight: 1, Term: cluster.Term{{Key: "zone", Operator: cluster.In, Values: []string{"a"}}}}}
	}
	tests := map[string]struct {
		parts []enginetest.Part
		want  string
	}{
		"packing":                         {[]enginetest.Part{idle(), model()}, "full"},
		"a preference":                    {[]enginetest.Part{idle().Label("zone", "a"), model().Shape(prefer)}, "idle"},
		"a file counts less than packing": {[]enginetest.Part{idle().Artifact("llama", cluster.Ready), model()}, "full"},
		"a file on equal nodes":           {[]enginetest.Part{idle().Artifact("llama", cluster.Ready), enginetest.Job("y").DeviceMemory(1, "8Gi").On("idle"), model()}, "idle"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out := decide(t, enginetest.State(append(tt.parts, full, other)...))
			if len(out.Decisions) != 1 || out.Decisions[0].Node != tt.want {
				t.Errorf("decisions %+v, want it on %s", out.Decisions, tt.want)
			}
		})
	}
}

// Replicas are kept by health, then by layers on devices, then by placement score. A later
// criterion never outweighs an earlier one.
func TestWhichReplicasAreKept(t *testing.T) {
	e, err := engine.New(Registry(), Profile())
	if err != nil {
		t.Fatal(err)
	}
	model := func(name string, at int64) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Binpack).Set("m", 5).Created(at).DeviceMemory(1, "8Gi")
	}
	state := enginetest.State(
		enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"), enginetest.Node("b").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"), enginetest.Node("c").CPU(8, "64Gi").GPUs(1, "L4", "24Gi"),
		model("well", 1).Health(cluster.HealthRunning).On("a"), // alone: 8 of 24 GiB
		model("starts", 2).Health(cluster.HealthStarting).On("b"),
		model("packed", 3).Health(cluster.HealthRunning).On("b"), // 8 of 16 GiB
		model("fast", 4).Health(cluster.HealthRunning).On("c"),
		model("newer", 5).Health(cluster.HealthRunning).On("c"), // as packed as "packed", but newer
		model("nowhere", 6),
	)
	for _, id := range []string{"job/fast", "job/starts"} {
		seen := cluster.JobSeen{Job: id, Health: state.Job(id).Health, Offload: cluster.Offload{Layers: 32, Total: 32}}
		if err := state.Apply(seen); err != nil {
			t.Fatal(err)
		}
	}
	out, err := e.Open(state, engine.Options{}).Run()
	if err != nil || len(out.RetirementOrders) != 1 {
		t.Fatalf("%d rankings, error %v", len(out.RetirementOrders), err)
	}
	var got []string
	for _, r := range slices.Backward(out.RetirementOrders[0].Jobs) {
		got = append(got, r.Job)
	}
	want := []string{"job/nowhere", "job/starts", "job/well", "job/newer", "job/packed", "job/fast"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("order of removal (-want +got):\n%s", d)
	}
}

// The score of a node is that of the devices that the replica finally gets, whichever
// plugin chose them.
func TestScoreIsOfTheDevicesTaken(t *testing.T) {
	large := func(s *cluster.Shape) {
		s.Need = cluster.Need{Devices: 1, Memory: 10 << 30, Products: []string{"H"}}
	}
	out := decide(t, enginetest.State(enginetest.Node("a").CPU(8, "64Gi").GPUs(1, "H", "100Gi").GPUs(1, "L", "24Gi"),
		enginetest.Job("x").Shape(large).On("a"),
		enginetest.Job("m").ModelReplica(cluster.Binpack).Shape(func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Share: 500, SumAtLeast: 11 << 30} })))
	if len(out.Decisions) != 1 || len(out.Decisions[0].Claims) != 1 || out.Decisions[0].Claims[0].Device != 1 {
		t.Fatalf("outcome %+v, want the second device: it is the tighter one", out)
	}
	for _, p := range out.Decisions[0].Score.Parts { // 12 of 24 GiB, which count twice, and no memory
		if p.Plugin == "PlacementScorer" && (p.Score < 33.3 || p.Score > 33.4) {
			t.Errorf("PlacementScorer gives %v, want a third", p.Score)
		}
	}
}
