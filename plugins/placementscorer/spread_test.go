package placementscorer

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
)

// A node with fewer replicas of the same model always scores higher, in the thousandths in
// which decisions are made, whatever other replicas are on it and however full its
// devices are.
func TestFewerReplicasOfTheModelScoreHigher(t *testing.T) {
	if got := spreadValue(0, 0, 1); got != 1 {
		t.Errorf("an empty node is worth %v, want 1", got)
	}
	points := func(same, others int, device float64) int64 {
		return int64(100_000*spreadValue(same, others, device) + 0.5)
	}
	for same := range 20 {
		for others := range 60 {
			now, again := points(same, others, 0.1), points(same+1, 0, 1)
			if again >= now || again <= 0 {
				t.Errorf("%d of this model, %d of others and full devices: %d, with one of this model more, no others and idle devices %d", same, others, now, again)
			}
			if more := points(same, others+1, 0.1); more > now || more == now && same < 8 && others < 30 {
				t.Errorf("%d of this model and %d of others: %d, with one other more %d", same, others, now, more)
			}
			if idle := points(same, others, 1); idle <= now {
				t.Errorf("%d of this model and %d of others: %d, on idle devices %d", same, others, now, idle)
			}
		}
	}
}

// A node with many replicas of other models is better than an idle one with a replica of the same model.
func TestOtherModelsAreBetterThanTheSameModel(t *testing.T) {
	parts := []enginetest.Part{enginetest.Node("a").CPU(64, "640Gi").GPUs(1, "A", "80Gi"), enginetest.Node("b").CPU(64, "640Gi").GPUs(8, "A", "80Gi")}
	model := func(name, set string) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Spread).Set(set, 2).DeviceMemory(1, "8Gi")
	}
	for _, name := range []string{"s", "t", "u", "v", "w", "x", "y", "z"} {
		parts = append(parts, model(name, name).On("a"))
	}
	if got := run(t, enginetest.State(append(parts, model("m-0", "m").On("b"), model("m-1", "m"))...))["m-1"]; got != "a 0" {
		t.Errorf("placed on %q, want a, which has no replica of its model", got)
	}
}

func TestReplicasBeside(t *testing.T) {
	model := func(name, set string) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Spread).Set(set, 3)
	}
	state := enginetest.State(enginetest.Node("n"), enginetest.Node("o"),
		model("m-0", "m").On("n"), model("m-1", "m").Gang(2).On("n", "n"), model("m-2", "m"), model("m-3", "m").On("o"), model("m-4", "m").On("n"),
		model("x-0", "x").Gang(3).On("n", "n", "n"), model("y", "").On("n"), model("z", "").On("n"),
		enginetest.Job("batch").On("n"),
	)
	task := state.Job("job/m-4").Tasks()[0]
	evict := cluster.Evict{Task: task.Ref(), Attempt: task.Attempt + 1}
	if err := state.Apply(cluster.Decided{Changes: []cluster.Change{evict}}); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		job          string
		same, others int
	}{
		"a new replica":                          {"m-2", 2, 3},
		"a placed replica does not count itself": {"m-1", 1, 3},
		"another model":                          {"x-0", 0, 4},
		"a replica without a set":                {"y", 0, 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if same, others := replicasBeside(state.Job("job/"+tt.job), state.Node("n")); same != tt.same || others != tt.others {
				t.Errorf("%d of its own and %d others, want %d and %d", same, others, tt.same, tt.others)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	model := func(name string) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Spread).Set("m", 3)
	}
	fraction := func(name string) *enginetest.JobBuilder { return model(name).DeviceMemory(1, "20Gi") }
	tests := map[string]struct {
		job   *enginetest.JobBuilder
		state []enginetest.Part
		want  float64
	}{
		"an empty node":                       {fraction("new"), nil, 100},
		"one replica, an idle device is left": {fraction("new"), []enginetest.Part{fraction("a").On("n")}, 50},
		"one replica, no idle device is left": {model("new").DeviceMemory(2, "20Gi"), []enginetest.Part{fraction("a").On("n")}, 100.0/3 + 100.0/6*(0.85+0.15*0.75)},
		"another model":                       {fraction("new"), []enginetest.Part{fraction("a").Set("x", 1).On("n")}, 50 + 50*(0.85/2+0.15)},
		"the same model and another model":    {fraction("new"), []enginetest.Part{fraction("a").On("n"), fraction("b").Set("x", 1).On("n")}, 100.0/3 + 100.0/6*(0.85/2+0.15)},
		"a job that is not of a model":        {fraction("new"), []enginetest.Part{enginetest.Job("a").DeviceMemory(2, "20Gi").On("n")}, 50 + 50*(0.85+0.15/2)},
		"no device":                           {model("new"), []enginetest.Part{fraction("a").On("n")}, 50},
		"layers count first":                  {model("new").Shape(layers(44, true)), []enginetest.Part{enginetest.Job("a").DeviceMemory(2, "20Gi").On("n")}, 100 * (30 + 1.0/3 + (0.5+0.5*(0.85+0.15/2))/6) / 45},
		"an empty node, for a gang":           {fraction("new").Gang(2), nil, 100},
		"another task of the same replica":    {fraction("new").Gang(2).On("n"), nil, 50 + 50*(0.85/2+0.15)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := enginetest.State(append(tt.state, enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "H100", "80Gi"), tt.job)...)
			j, n := state.Job("job/new"), state.Node("n")
			shape := j.Tasks()[0].Shape
			same, others := replicasBefore(j, n)
			got := spread(ownChoice, shape, n, same, others)
			if !near(got, tt.want) {
				t.Errorf("score %v, want %v", got, tt.want)
			}
			if most := spread(ownChoice, shape, n, 0, replicasOn(n)); got > most {
				t.Errorf("score %v is above its bound, %v", got, most)
			}
		})
	}
}

func TestCountingReplicasAllocatesNothing(t *testing.T) {
	state := enginetest.State(enginetest.Node("n"), enginetest.Job("a").ModelReplica(cluster.Spread).Set("m", 2).On("n"), enginetest.Job("b").ModelReplica(cluster.Spread).Set("m", 2))
	j, n := state.Job("job/b"), state.Node("n")
	if got := testing.AllocsPerRun(100, func() { replicasBefore(j, n) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestKeepSpread(t *testing.T) {
	model := func(name string) *enginetest.JobBuilder {
		return enginetest.Job(name).ModelReplica(cluster.Spread).Set("m", 1).DeviceMemory(1, "20Gi")
	}
	state := enginetest.State(
		enginetest.Node("a").GPUs(1, "H100", "80Gi"), enginetest.Node("b").GPUs(1, "H100", "80Gi"), enginetest.Node("c").GPUs(1, "H100", "80Gi"),
		model("alone").On("a"), model("first").On("b"), model("second").On("b"), model("guest").On("c"), model("other").Set("x", 1).On("c"), model("nowhere"),
	)
	for name, want := range map[string]float64{"alone": 100, "first": 100.0/3 + 100.0/6*(0.85+0.15/2), "second": 100.0/3 + 100.0/6*(0.85+0.15/2), "guest": 50 + 50*(0.85/2+0.15/2), "nowhere": 0} {
		if got := keep(state.Job("job/" + name)); !near(got, want) {
			t.Errorf("%s: score %v, want %v", name, got, want)
		}
	}
}
