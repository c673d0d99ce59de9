package defrag

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// packed returns an engine of the standard plugins that packs by best fit.
func packed(t interface{ Fatal(...any) }) *engine.Engine {
	profile, err := standard.Pack(standard.Profile(), "best-fit")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func node(name string, devices int) *enginetest.NodeBuilder {
	return enginetest.Node(name).CPU(32, "256Gi").GPUs(devices, "A100", "80Gi")
}

func job(name string, devices int) *enginetest.JobBuilder {
	return enginetest.Job(name).CPU(1000, "1Gi").Devices(devices).Preemptible()
}

func part(name string, share cluster.Milli) *enginetest.JobBuilder {
	return enginetest.Job(name).CPU(1000, "1Gi").Share(1, share).Preemptible()
}

// text writes the plan in lines.
func text(p *Plan) []string {
	var out []string
	for _, m := range p.Moves {
		line := fmt.Sprintf("%s %s → %s", strings.TrimPrefix(m.Task.Job, "job/"), m.From, m.To)
		if m.For != "" {
			line += " for " + m.For
		}
		out = append(out, line)
	}
	for _, s := range p.Starts {
		out = append(out, fmt.Sprintf("%s fits after %d", s.Job, s.After))
	}
	for _, r := range p.Refused {
		out = append(out, fmt.Sprintf("%s is refused, moves %d, unordered %v, alike %v", r.Job, r.Moves, r.Unordered, r.Alike))
	}
	for _, s := range p.Stays {
		out = append(out, fmt.Sprintf("%d stay: %s", s.Tasks, s.Reason))
	}
	return out
}

func TestMake(t *testing.T) {
	parts := func(p ...enginetest.Part) []enginetest.Part { return p }
	tests := map[string]struct {
		parts []enginetest.Part
		Options
		want []string
	}{
		"the node that needs fewest moves is freed": {
			parts(node("a", 4), node("b", 4), node("c", 4), job("x", 1).On("a"), job("y", 1).On("a"), job("z", 1).On("b"), job("w", 3).On("c")),
			Options{Goal: Nodes, MostMoves: 9}, []string{"z b → c", "1 stay: NoOtherPlace"},
		},
		"no node is freed if one of its tasks must stay": {
			parts(node("a", 4), node("b", 4), job("x", 1).On("a"), enginetest.Job("y").Devices(1).On("a"), enginetest.Job("z").Devices(2).On("b")),
			Options{Goal: Nodes, MostMoves: 9}, []string{"2 stay: VictimNotPreemptible"},
		},
		"more tasks would have to move than may": {
			parts(node("a", 4), node("b", 4), job("x", 1).On("a"), job("y", 1).On("a"), job("z", 2).On("b"), job("w", 1).On("b")),
			Options{Goal: Nodes, MostMoves: 1}, nil,
		},
		"a device is freed by moving its parts": {
			parts(node("a", 1), node("b", 1), node("c", 1), part("x", 300).On("a"), part("y", 300).On("a"), part("z", 400).On("b"), part("w", 700).On("c")),
			Options{Goal: Devices, MostMoves: 9}, []string{"z b → a", "1 stay: NoOtherPlace"},
		},
		"devices that wait for cores are prepared first": {
			// Node a has an idle device and no idle cores; x can only move there after the cores are freed.
			parts(node("a", 2), node("b", 1), node("c", 0), enginetest.Job("cores").CPU(31000, "1Gi").Preemptible().On("a"), job("w", 1).On("a"), job("x", 1).On("b"),
				job("g1", 1), job("g2", 1), job("g3", 1), job("g4", 1), job("g5", 1), job("g6", 1)),
			Options{Goal: Nodes, MostMoves: 9}, []string{"cores a → c", "x b → a", "1 stay: NoOtherPlace"},
		},
		"room is made for the pending job": {
			parts(node("a", 4), node("b", 4), job("x", 1).On("a"), job("y", 2).On("b"), enginetest.Job("new").Devices(4)),
			Options{Goal: Jobs, MostMoves: 9}, []string{"x a → b for job/new", "job/new fits after 1"},
		},
		"a job that fits needs no move": {
			parts(node("a", 4), job("x", 1).On("a"), enginetest.Job("new").Devices(3)),
			Options{Goal: Jobs, MostMoves: 9}, []string{"job/new fits after 0"},
		},
		"a gang gets room on two nodes": {
			parts(node("a", 4), node("b", 4), node("c", 4), job("x", 1).On("a"), job("y", 1).On("b"), job("z", 2).On("c"), enginetest.Job("new").Gang(2).Devices(4)),
			Options{Goal: Jobs, MostMoves: 9}, []string{"x a → c for job/new", "y b → c for job/new", "job/new fits after 2"},
		},
		"only the job that is asked for": {
			parts(node("a", 4), node("b", 4), job("x", 1).On("a"), job("y", 2).On("b"), enginetest.Job("new").Devices(4), enginetest.Job("other").Devices(1)),
			Options{Goal: Jobs, Job: "job/other", MostMoves: 9}, []string{"job/other fits after 0"},
		},
		"too few moves are left": {
			parts(node("a", 4), node("b", 4), node("c", 4), job("x", 1).On("a"), job("y", 1).On("b"), job("z", 2).On("c"), enginetest.Job("new").Gang(2).Devices(4)),
			Options{Goal: Jobs, MostMoves: 1}, []string{"job/new is refused, moves 2, unordered false, alike []"},
		},
		"jobs that are alike are refused together": {
			parts(node("a", 4), enginetest.Job("x").Devices(1).On("a"), enginetest.Job("new1").Devices(4), enginetest.Job("new2").Devices(4)),
			Options{Goal: Jobs, MostMoves: 9}, []string{"job/new1 is refused, moves 0, unordered false, alike [job/new2]", "1 stay: VictimNotPreemptible"},
		},
		"nothing is evicted without a landing": {
			parts(node("a", 4), job("x", 4).On("a"), enginetest.Job("new").Devices(4).Priority(9)),
			Options{Goal: Jobs, MostMoves: 9}, []string{"job/new is refused, moves 0, unordered false, alike []"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			plan, err := Make(packed(t), enginetest.State(tt.parts...), tt.Options)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, text(plan)); d != "" {
				t.Errorf("plan (-want +got):\n%s", d)
			}
		})
	}
}

// TestSums: the sums after each move are those of the State.
func TestSums(t *testing.T) {
	s := enginetest.State(node("a", 4), node("b", 4), node("c", 4), job("x", 1).On("a"), job("y", 2).On("b"), part("p", 500).On("c"), part("q", 500).On("b"), job("r", 2).On("c"), job("n", 4))
	plan, err := Make(packed(t), s, Options{Goal: Nodes, MostMoves: 9})
	if err != nil {
		t.Fatal(err)
	}
	got := []string{fmt.Sprintf("%d free devices, %d free nodes", plan.Before.FreeDevices, plan.Before.FreeNodes)}
	for _, m := range plan.Moves {
		got = append(got, fmt.Sprintf("%d free devices, %d free nodes", m.After.FreeDevices, m.After.FreeNodes))
	}
	// a has 3 free devices, b and c have 1; x moves to one of these.
	want := []string{"5 free devices, 0 free nodes", "5 free devices, 1 free nodes"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q\n%v", got, want, text(plan))
	}
}
