package deviceorder

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

// place runs a job on a node of four devices, of which 0, 0.7, 0.3 and 0.3 are used, and
// returns the claims of the job.
func place(t *testing.T, args engine.Arguments, j *enginetest.JobBuilder) []cluster.Claim {
	t.Helper()
	p, err := New(args)
	if err != nil {
		t.Fatal(err)
	}
	state := enginetest.State(enginetest.Node("n").CPU(8, "64Gi").GPUs(4, "A100", "100Gi"), j)
	for i, used := range []cluster.Milli{0, 700, 300, 300} {
		if used == 0 {
			continue
		}
		x := enginetest.Job(string(rune('a'+i))).Share(1, used).Build()
		seen := cluster.SeenOn(x.Tasks()[0], state.Node("n"), []cluster.Claim{{Device: i, Milli: used}}, 0)
		if err := state.ApplyAll([]cluster.Change{cluster.JobPut{Job: *x}, seen}); err != nil {
			t.Fatal(err)
		}
	}
	s := enginetest.Engine(p).Open(state, engine.Options{})
	defer s.Close()
	out, err := s.Run()
	if err != nil || len(out.Decisions) != 1 {
		t.Fatalf("outcome %+v, error %v", out, err)
	}
	return out.Decisions[0].Claims
}

func TestOrder(t *testing.T) {
	pack, spread := engine.Arguments(engine.NoArguments{}), enginetest.Arguments(`{"strategy": "spread"}`)
	type claims = []cluster.Claim
	const gib = 1 << 30
	tests := map[string]struct {
		args engine.Arguments
		job  *enginetest.JobBuilder
		want claims
	}{
		"pack a small part":     {pack, enginetest.Job("j").Share(1, 300), claims{{Device: 1, Milli: 300, Memory: 30 * gib}}},
		"pack a larger part":    {pack, enginetest.Job("j").Share(1, 500), claims{{Device: 2, Milli: 500, Memory: 50 * gib}}},
		"pack two parts":        {pack, enginetest.Job("j").Share(2, 300), claims{{Device: 1, Milli: 300, Memory: 30 * gib}, {Device: 2, Milli: 300, Memory: 30 * gib}}},
		"pack by memory":        {pack, enginetest.Job("j").DeviceMemory(1, "50Gi"), claims{{Device: 2, Milli: 500, Memory: 50 * gib}}},
		"spread":                {spread, enginetest.Job("j").Share(1, 300), claims{{Device: 0, Milli: 300, Memory: 30 * gib}}},
		"spread two parts":      {spread, enginetest.Job("j").Share(2, 300), claims{{Device: 0, Milli: 300, Memory: 30 * gib}, {Device: 2, Milli: 300, Memory: 30 * gib}}},
		"whole devices":         {pack, enginetest.Job("j").Devices(1), claims{{Device: 0, Milli: 1000, Memory: 100 * gib}}},
		"whole devices, spread": {spread, enginetest.Job("j").Devices(1), claims{{Device: 0, Milli: 1000, Memory: 100 * gib}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, place(t, tc.args, tc.job)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
		})
	}
}

func TestScore(t *testing.T) {
	share := enginetest.Job("j").Share(1, 100).Build().Tasks()[0].Shape
	layers := enginetest.Job("j").Shape(func(s *cluster.Shape) { s.Need.Layers = &cluster.Layers{Total: 1, Bytes: 1} }).Build().Tasks()[0].Shape
	model := enginetest.Job("j").Share(1, 100).ModelReplica(cluster.Binpack).Build().Tasks()[0].Shape
	use := func(milli cluster.Milli, releasing int32) cluster.DeviceUse {
		return cluster.DeviceUse{Milli: milli, ReleasingLeases: releasing}
	}
	tests := map[string]struct {
		shape        *cluster.Shape
		use          cluster.DeviceUse
		pack, spread float64
	}{
		"idle":                 {share, use(0, 0), 0.1, 99.1},
		"idle, being released": {share, use(0, 1), 0.05, 99.05},
		"half":                 {share, use(500, 0), 49.6, 49.6},
		"a little more":        {share, use(501, 1), 49.649, 49.451},
		"full":                 {share, use(1000, 0), 99.1, 0.1},
		"layers":               {layers, use(500, 0), 0, 0},
		"a model":              {model, use(500, 0), 0, 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := &cluster.Device{DeviceSpec: &cluster.DeviceSpec{}, Use: tc.use}
			got := [2]float64{(&plugin{}).score(tc.shape, nil, d), (&plugin{spread: true}).score(tc.shape, nil, d)}
			if diff := cmp.Diff([2]float64{tc.pack, tc.spread}, got); diff != "" {
				t.Errorf("pack and spread (-want +got):\n%s", diff)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	tests := map[string]struct{ args, err string }{
		"a typo":              {`{"strategy": "spraed"}`, `strategy "spraed" is not known; did you mean "Spread"?`},
		"an unknown strategy": {`{"strategy": "numa"}`, `strategy "numa" is not known; known: Pack, Spread`},
		"unknown field":       {`{"policy": "pack"}`, `json: unknown field "policy"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(enginetest.Arguments(tc.args))
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(tc.err, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
