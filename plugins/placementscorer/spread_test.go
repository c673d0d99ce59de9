package placementscorer

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/fixture"
)

// Fewer of this model always count before fewer of others, in the thousandths
// that decisions are made in. Where there is a great crowd, one other more or less
// may be too little to count.
func TestSeclusionIsLexicographic(t *testing.T) {
	if got := seclusion(0, 0); got != 1 {
		t.Errorf("an empty node is worth %v, want 1", got)
	}
	points := func(same, others int) int64 { return int64(85_000*seclusion(same, others) + 0.5) }
	for same := range 30 {
		for others := range 60 {
			now, more, again := points(same, others), points(same, others+1), points(same+1, 0)
			if more > now || more == now && same < 8 && others < 30 {
				t.Errorf("%d of this model and %d of others: %d, with one other more %d", same, others, now, more)
			}
			if again >= now || again <= 0 {
				t.Errorf("%d of this model and %d of others: %d, with one of this model more and no others %d", same, others, now, again)
			}
		}
	}
}

func TestCrowd(t *testing.T) {
	model := func(name, set string) *fixture.JobBuilder {
		return fixture.Job(name).Served(cluster.Spread).Set(set, 3)
	}
	state := fixture.State(fixture.Node("n"), fixture.Node("o"),
		model("m-0", "m").On("n"), model("m-1", "m").Gang(2).On("n", "n"), model("m-2", "m"), model("m-3", "m").On("o"), model("m-4", "m").On("n"),
		model("x-0", "x").Gang(3).On("n", "n", "n"), model("y", "").On("n"), model("z", "").On("n"),
		fixture.Job("batch").On("n"),
	)
	if err := state.Evict(state.Job("job/m-4").Tasks()[0]); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		job          string
		same, others int
	}{
		"one that comes":             {"m-2", 2, 3},
		"it is no company to itself": {"m-1", 1, 3},
		"another model":              {"x-0", 0, 4},
		"two without a set differ":   {"y", 0, 4},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if same, others := crowd(state.Job("job/"+tt.job), state.Node("n")); same != tt.same || others != tt.others {
				t.Errorf("%d of its own and %d others, want %d and %d", same, others, tt.same, tt.others)
			}
		})
	}
}

func TestSpread(t *testing.T) {
	model := func(name string) *fixture.JobBuilder {
		return fixture.Job(name).Served(cluster.Spread).Set("m", 3)
	}
	part := func(name string) *fixture.JobBuilder { return model(name).DeviceMemory(1, "20Gi") }
	pair := fixture.Node("n").CPU(8, "64Gi").GPUs(2, "H100", "80Gi")
	tests := map[string]struct {
		job          *fixture.JobBuilder
		state        []fixture.Part
		node, device float64
	}{
		"nobody there":              {part("new"), nil, 85, 15},
		"one, an idle device left":  {part("new"), []fixture.Part{part("a").On("n")}, 85 * 0.5, 15},
		"one, no idle device left":  {model("new").DeviceMemory(2, "20Gi"), []fixture.Part{part("a").On("n")}, 85 * 0.5, 15 * 0.75},
		"another model":             {part("new"), []fixture.Part{part("a").Set("x", 1).On("n")}, 85 * 0.75, 15},
		"this one and another":      {part("new"), []fixture.Part{part("a").On("n"), part("b").Set("x", 1).On("n")}, 85 * (1.0/3 + (1.0/2-1.0/3)/2), 15},
		"a job is no model":         {part("new"), []fixture.Part{fixture.Job("a").DeviceMemory(2, "20Gi").On("n")}, 85, 15 * 0.5},
		"no device":                 {model("new"), []fixture.Part{part("a").On("n")}, 85 * 0.5, 15},
		"layers come first":         {model("new").Shape(layers(44, true)), []fixture.Part{fixture.Job("a").DeviceMemory(2, "20Gi").On("n")}, 85.0 / 45, 100 * (30 + 0.15*0.5) / 45},
		"it is not asked by itself": {part("new").Gang(2), nil, 85, 15},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := fixture.State(append(tt.state, pair, tt.job)...)
			j, n := state.Job("job/new"), state.Node("n")
			task := j.Tasks()[0]
			if got := company(task, j, n); !near(got, tt.node) {
				t.Errorf("the node scores %v, want %v", got, tt.node)
			}
			if got := place(task.Shape, n); !near(got, tt.device) {
				t.Errorf("the devices score %v, want %v", got, tt.device)
			}
		})
	}
}

func TestCompanyAllocatesNothing(t *testing.T) {
	state := fixture.State(fixture.Node("n"), fixture.Job("a").Served(cluster.Spread).Set("m", 2).On("n"), fixture.Job("b").Served(cluster.Spread).Set("m", 2))
	j, n := state.Job("job/b"), state.Node("n")
	if got := testing.AllocsPerRun(100, func() { company(j.Tasks()[0], j, n) }); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func TestKeepSpread(t *testing.T) {
	model := func(name string) *fixture.JobBuilder {
		return fixture.Job(name).Served(cluster.Spread).Set("m", 1).DeviceMemory(1, "20Gi")
	}
	state := fixture.State(
		fixture.Node("a").GPUs(1, "H100", "80Gi"), fixture.Node("b").GPUs(1, "H100", "80Gi"), fixture.Node("c").GPUs(1, "H100", "80Gi"),
		model("alone").On("a"), model("first").On("b"), model("second").On("b"), model("guest").On("c"), model("other").Set("x", 1).On("c"), model("nowhere"),
	)
	for name, want := range map[string]float64{"alone": 100, "first": 85*0.5 + 15*0.5, "second": 85*0.5 + 15*0.5, "guest": 85*0.75 + 15*0.5, "nowhere": 0} {
		if got := keep(state.Job("job/" + name)); !near(got, want) {
			t.Errorf("%s: score %v, want %v", name, got, want)
		}
	}
}
