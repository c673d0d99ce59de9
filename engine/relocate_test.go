package engine_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/standard"
)

// TestMover: a task moves to another node if the engine would move it for a pending job.
func TestMover(t *testing.T) {
	rack := func(name, rack string) *enginetest.NodeBuilder { return four(name).Label("rack", rack) }
	inRack := cluster.Topology{Required: "rack"}
	gang := func() *enginetest.JobBuilder {
		return enginetest.Job("x").Gang(2).Devices(2).Preemptible().Topology(inRack).On("a", "b")
	}
	tests := map[string]struct {
		parts []enginetest.Part
		may   func(*cluster.Node) bool
		to    string
		why   engine.Reason
	}{
		"to another node":                     {parts: []enginetest.Part{four("a"), four("b"), low("x").On("a")}, to: "b"},
		"not to a full node":                  {parts: []enginetest.Part{four("a"), four("b"), low("x").On("a"), low("y").Devices(4).On("b")}},
		"not to a node that is excluded":      {parts: []enginetest.Part{four("a"), four("b"), four("c"), low("x").On("a")}, may: func(n *cluster.Node) bool { return n.Name == "c" }, to: "c"},
		"not to its own node":                 {parts: []enginetest.Part{four("a"), low("x").On("a")}},
		"not if its job is not preemptible":   {parts: []enginetest.Part{four("a"), four("b"), enginetest.Job("x").Devices(1).On("a")}, why: engine.VictimNotPreemptible},
		"not if it is younger than it may be": {parts: []enginetest.Part{four("a"), four("b"), enginetest.Queue("q").MinRun(100, 0), low("x").Queue("q").On("a").Started(950)}, why: "VictimTooYoung"},
		"not against a disruption budget":     {parts: []enginetest.Part{four("a"), four("b"), enginetest.Budget("web").Label("app", "web").MinAvailable(1), low("x").Label("app", "web").On("a")}, why: "VictimInBudget"},
		"a gang stays in its rack":            {parts: []enginetest.Part{rack("a", "r"), rack("b", "r"), rack("c", "r"), rack("d", "s"), low("y").Devices(4).On("c"), low("z").Devices(2).On("b"), gang()}},
		"… where another node has room":       {parts: []enginetest.Part{rack("a", "r"), rack("b", "r"), rack("c", "r"), rack("d", "s"), low("z").Devices(2).On("b"), gang()}, to: "c"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			e, err := engine.New(standard.Registry(), standard.Profile())
			if err != nil {
				t.Fatal(err)
			}
			state := enginetest.State(tt.parts...)
			before := state.Digest()
			s := e.Open(state, engine.Options{Now: 1000})
			m, stmt := engine.NewMover(s), s.Begin()
			task := state.Job("job/x").Tasks()[0]
			to, kept := m.Move(stmt, task, tt.may)
			if m.Err() != nil {
				t.Fatal(m.Err())
			}
			got, why := "", engine.Reason("")
			if to != nil {
				got = to.Name
			}
			if kept != nil {
				why = kept.Reason
			}
			if got != tt.to || why != tt.why {
				t.Errorf("it moves to %q and is protected by %q, want %q and %q", got, why, tt.to, tt.why)
			}
			if to != nil && (task.Landing() == nil || task.Landing().Node != to || task.Status != cluster.Releasing) {
				t.Errorf("the task is %s, with the landing %v", task.Status, task.Landing())
			}
			if to == nil && state.Digest() != before {
				t.Error("a task that does not move changed the State")
			}
			stmt.Discard()
			if state.Digest() != before {
				t.Error("the statement was discarded, and the State is not as before")
			}
		})
	}
}

// TestMovesOnly: with MovesOnly, no task is evicted to make room, but tasks move.
func TestMovesOnly(t *testing.T) {
	for name, tt := range map[string]struct {
		parts []enginetest.Part
		moves int
		fits  bool
	}{
		"an eviction would help": {[]enginetest.Part{four("a"), low("x").Devices(4).On("a"), enginetest.Job("new").Devices(4).Priority(9)}, 0, false},
		"a move helps":           {[]enginetest.Part{four("a"), four("b"), low("x").On("a"), low("y").On("b"), enginetest.Job("new").Devices(4).Priority(9)}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := engine.New(standard.Registry(), standard.Profile())
			if err != nil {
				t.Fatal(err)
			}
			state := enginetest.State(tt.parts...)
			s := e.Open(state, engine.Options{MovesOnly: true})
			stmt, job := s.Begin(), state.Job("job/new")
			refusal := s.Place(stmt, job)
			if refusal == nil {
				t.Fatal("it fits without a move")
			}
			fits := s.MakeRoom(stmt, job, refusal) == nil
			if fits != tt.fits || len(state.View().Moving()) != tt.moves || len(state.View().Releasing()) != tt.moves {
				t.Errorf("fits: %v; %d tasks move and %d were evicted", fits, len(state.View().Moving()), len(state.View().Releasing()))
			}
			stmt.Discard()
		})
	}
}
