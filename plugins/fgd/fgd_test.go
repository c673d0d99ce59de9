package fgd

import (
	"fmt"
	"math"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/fragmentation"
)

func TestSigmoid(t *testing.T) {
	for x := -9000; x <= 9000; x += 7 {
		want := int(math.Floor(100 / (1 + math.Exp(-float64(x)/1000))))
		if got := sigmoid(int64(x) * fragmentation.Unit); got != want {
			t.Fatalf("sigmoid(%d) is %d, want %d", x, got, want)
		}
	}
}

// TestScore: half of the tasks request two devices, half a part of one. A part is best put where it
// breaks no pair of devices.
func TestScore(t *testing.T) {
	built, err := New(enginetest.Arguments(`{"workload": [{"count": 1, "devices": 2}, {"count": 1, "devices": 1, "milli": 400}]}`))
	if err != nil {
		t.Fatal(err)
	}
	p := built.(*plugin)
	s := enginetest.State(
		enginetest.Node("pair").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
		enginetest.Node("broken").CPU(8, "64Gi").GPUs(2, "A100", "80Gi"),
		enginetest.Job("j").Shape(func(s *cluster.Shape) { s.Need = cluster.Need{Devices: 1, Share: 500} }).On("broken"),
	)
	part := s.Intern(cluster.Shape{Need: cluster.Need{Devices: 1, Share: 400}})
	// pair: F is 0 before; after, a pair does not fit: (1600 + 0) ÷ 2 = 800. sigmoid(−0.8) = 0.310.
	if got := p.score(part, s.Node("pair")); got != 31 {
		t.Errorf("pair: %v", got)
	}
	// broken: F is 750 before. On the device with 500: (1100 + 100) ÷ 2 = 600. sigmoid(0.15) = 0.537.
	// On the idle device: (1100 + 0) ÷ 2 = 550. sigmoid(0.2) = 0.549.
	if got := p.score(part, s.Node("broken")); got != 54 {
		t.Errorf("broken: %v", got)
	}
	n := s.Node("broken")
	if a, b := p.deviceScore(part, n, &n.Devices[0]), p.deviceScore(part, n, &n.Devices[1]); a != 53 || b != 54 {
		t.Errorf("devices: %v, %v", a, b)
	}
	whole := s.Intern(cluster.Shape{Need: cluster.Need{Devices: 2}})
	if got := p.score(whole, s.Node("pair")); got != 50 {
		t.Errorf("both devices: %v", got)
	}
	if got := p.deviceScore(whole, n, &n.Devices[1]); got != 0 {
		t.Errorf("a whole device has the score %v", got)
	}
}

// TestLearns: without arguments, the workload is what has arrived.
func TestLearns(t *testing.T) {
	built, err := New(enginetest.Arguments(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	p := built.(*plugin)
	s := cluster.NewState()
	var published []uint64
	for i := range 40 {
		need := cluster.Need{Devices: 1, Share: 300}
		if i >= 10 {
			need = cluster.Need{Devices: 2}
		}
		job := enginetest.Job(fmt.Sprint(i)).Shape(func(s *cluster.Shape) { s.Need = need }).Build()
		if err := s.Apply(cluster.JobPut{Job: *job}); err != nil {
			t.Fatal(err)
		}
		p.learn(s.View().Demand())
		if n := len(published); n == 0 || published[n-1] != p.number {
			published = append(published, p.number)
		}
		switch {
		case i < 7 && len(p.workload) != 0, i == 7 && (len(p.workload) != 1 || p.workload[0].Milli != 300), i == 39 && (len(p.workload) != 2 || p.workload[0].Devices != 2):
			t.Errorf("after %d: %+v", i+1, p.workload)
		}
	}
	if len(published) != 4 { // none, 8, 16 and 32 arrivals
		t.Errorf("%d numbers were published", len(published))
	}
}

func TestArguments(t *testing.T) {
	for _, bad := range []string{`{"workload": [{"count": 0}]}`, `{"workload": [{"count": 1, "milli": 1001}]}`, `{"workload": [{"count": 1, "devices": -1}]}`} {
		if _, err := New(enginetest.Arguments(bad)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}
