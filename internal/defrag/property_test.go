package defrag

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/plugins/standard"
)

const now = 1_000_000

// draw returns a cluster as random arrivals and ends leave it, with pending jobs, budgets, racks,
// gangs and minimum run times.
func draw(t *rapid.T) *cluster.State {
	parts := []enginetest.Part{enginetest.Queue("young").MinRun(500, 0), enginetest.Budget("web").Label("app", "web").MinAvailable(rapid.IntRange(0, 6).Draw(t, "available"))}
	for i := range rapid.IntRange(2, 7).Draw(t, "nodes") {
		parts = append(parts, enginetest.Node(fmt.Sprintf("n%d", i)).CPU(rapid.SampledFrom([]int{4, 8, 32}).Draw(t, "cores"), "256Gi").
			GPUs(rapid.SampledFrom([]int{0, 1, 2, 4, 8}).Draw(t, "devices"), rapid.SampledFrom([]string{"A100", "L4"}).Draw(t, "product"), "24Gi").Label("rack", fmt.Sprint(i%2)))
	}
	jobs := rapid.IntRange(1, 24).Draw(t, "jobs")
	for i := range jobs {
		b := enginetest.Job(fmt.Sprintf("j%02d", i)).CPU(int64(rapid.IntRange(1, 4).Draw(t, "cpu"))*1000, "1Gi").Created(int64(i) + 1)
		switch rapid.IntRange(0, 3).Draw(t, "request") {
		case 0:
			b.Share(1, cluster.Milli(rapid.IntRange(1, 9).Draw(t, "share"))*100)
		case 1:
			b.DeviceMemory(1, rapid.SampledFrom([]string{"4Gi", "10Gi", "20Gi"}).Draw(t, "memory"))
		case 2:
			b.Devices(rapid.SampledFrom([]int{1, 1, 2, 4}).Draw(t, "count"))
		}
		if rapid.IntRange(0, 4).Draw(t, "preemptible") > 0 {
			b.Preemptible()
		}
		if n := rapid.IntRange(1, 8).Draw(t, "gang"); n > 5 {
			b.Gang(n - 4).Min(n - 5)
			if rapid.Bool().Draw(t, "rack") {
				b.Topology(cluster.Topology{Required: "rack"})
			}
		}
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			b.Label("app", "web")
		case 1:
			b.Queue("young")
		case 2:
			b.Label("lonely", "yes").Affinity(cluster.JobTerm{Anti: true, Selector: cluster.Term{{Key: "lonely", Operator: cluster.In, Values: []string{"yes"}}}})
		}
		parts = append(parts, b)
	}
	state := enginetest.State(parts...)
	profile, err := standard.Pack(standard.Profile(), "random")
	if err == nil {
		var e *engine.Engine
		if e, err = engine.New(standard.Registry(), profile); err == nil {
			_, err = sim.Simulate(e, state, sim.Options{Now: int64(rapid.SampledFrom([]int{now - 10_000, now - 100}).Draw(t, "started"))})
		}
	}
	for i := range jobs { // some jobs end
		if err == nil && rapid.IntRange(0, 2).Draw(t, "ends") == 0 {
			err = state.Apply(cluster.JobGone{Job: fmt.Sprintf("job/j%02d", i)})
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "pending") {
		if err == nil {
			err = state.Apply(cluster.JobPut{Job: *enginetest.Job(fmt.Sprintf("p%d", i)).Devices(rapid.IntRange(1, 8).Draw(t, "wanted")).Created(now).Build()})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// TestPlans carries out the plans for random clusters, move by move, in a copy of the State.
func TestPlans(t *testing.T) {
	moves, fits := map[Goal]int{}, 0
	rapid.Check(t, func(t *rapid.T) {
		state := draw(t)
		goal := rapid.SampledFrom([]Goal{Jobs, Devices, Nodes, Room}).Draw(t, "goal")
		o := Options{Goal: goal, MostMoves: rapid.IntRange(1, 20).Draw(t, "most"), Now: now}
		again, end := state.Clone(), state.Clone()
		plan, err := Make(packed(t), end, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := carryOut(again, plan, o); err != nil {
			t.Fatal(err)
		}
		if a, b := again.Digest(), end.Digest(); a != b {
			t.Fatal("the plan gives another State than its moves do")
		}
		if second, err := Make(packed(t), state.Clone(), o); err != nil || fmt.Sprint(text(second)) != fmt.Sprint(text(plan)) {
			t.Fatalf("the second plan differs: %v\n%q\n%q", err, text(plan), text(second))
		}
		moves[goal] += len(plan.Moves)
		fits += len(plan.Starts)
		before, after := plan.Before, plan.After
		switch {
		case len(plan.Moves) > o.MostMoves:
			t.Fatalf("%d moves", len(plan.Moves))
		case goal == Jobs && after.Pending > before.Pending,
			goal == Devices && len(plan.Moves) > 0 && after.FreeDevices < before.FreeDevices,
			goal == Nodes && len(plan.Moves) > 0 && after.FreeNodes < before.FreeNodes,
			goal == Room && after.Unusable > before.Unusable:
			t.Fatalf("goal %s: from %+v to %+v", goal, before, after)
		}
	})
	for _, g := range []Goal{Jobs, Devices, Nodes, Room} {
		if moves[g] == 0 || fits == 0 {
			t.Errorf("no move was planned for some goals (%v), or no job fits (%d): the test checks nothing", moves, fits)
		}
	}
}

// carryOut carries the plan out, and returns an error if a move breaks a rule or does not gain what
// the plan says.
func carryOut(s *cluster.State, plan *Plan, o Options) error {
	if err := s.Apply(cluster.SessionOpened{Now: o.Now}); err != nil {
		return err
	}
	starts := plan.Starts
	start := func(after int) error {
		for ; len(starts) > 0 && starts[0].After <= after; starts = starts[1:] {
			if err := begin(s, starts[0].Job, o.Now); err != nil {
				return err
			}
		}
		return nil
	}
	if err := start(0); err != nil {
		return err
	}
	seen := map[cluster.TaskRef]bool{}
	for i := range plan.Moves {
		m := &plan.Moves[i]
		t := s.Task(m.Task)
		placed := placedTasks(s)
		switch {
		case t == nil || !t.Runs() || t.Node.Name != m.From:
			return fmt.Errorf("move %d: %s does not run on %s", i+1, m.Task.ID(), m.From)
		case !t.Job.Preemptible || seen[m.Task]:
			return fmt.Errorf("move %d: %s is not preemptible or moves twice", i+1, m.Task.ID())
		case t.Job.Queue == "young" && o.Now-t.Started < 500:
			return fmt.Errorf("move %d: %s is too young", i+1, m.Task.ID())
		}
		seen[m.Task] = true
		for k, c := range m.Changes {
			if k == 0 { // the room is free already
				if err := s.CanRun(t, s.Node(m.To), m.Claims); err != nil {
					return fmt.Errorf("move %d: %w", i+1, err)
				}
			}
			if err := s.Apply(c); err != nil {
				return fmt.Errorf("move %d: %s: %w", i+1, c.Kind(), err)
			}
			if err := errors.Join(s.Audit(), full(s), budgetsHold(s, t)); err != nil {
				return fmt.Errorf("move %d, after %s: %w", i+1, c.Kind(), err)
			}
		}
		if n := placedTasks(s); n != placed {
			return fmt.Errorf("move %d: %d tasks are placed, and %d were before", i+1, n, placed)
		}
		if err := start(i + 1); err != nil {
			return err
		}
		if free, nodes := idle(s); free != m.After.FreeDevices || nodes != m.After.FreeNodes || len(s.Pending()) != m.After.Pending {
			return fmt.Errorf("move %d: %d devices and %d nodes are free, and %d jobs are pending; the plan says %+v", i+1, free, nodes, len(s.Pending()), m.After)
		}
	}
	return nil
}

// begin places the job without any move.
func begin(s *cluster.State, id string, now int64) error {
	profile, err := standard.Pack(standard.Profile(), "best-fit")
	if err != nil {
		return err
	}
	e, err := engine.New(standard.Registry(), profile)
	if err != nil {
		return err
	}
	session := e.Open(s, engine.Options{Now: now})
	stmt := session.Begin()
	if refusal := session.Place(stmt, s.Job(id)); refusal != nil && !refusal.Surplus {
		return fmt.Errorf("%s does not fit: %s", id, refusal.Reason)
	}
	return errors.Join(sim.ConfirmBindings(s, stmt.Commit()), session.Close())
}

// full returns an error if more is held of a node than it has.
func full(s *cluster.State) error {
	for _, n := range s.Nodes() {
		for i := range n.Resources {
			if l := &n.Resources[i]; l.Used > l.Capacity {
				return fmt.Errorf("%s of %s: %d of %d is held", l.Name, n.Name, l.Used, l.Capacity)
			}
		}
		for i := range n.Devices {
			if d := &n.Devices[i]; d.FreeMilli() < 0 || d.Free() < 0 {
				return fmt.Errorf("device %d of %s is held twice", i, n.Name)
			}
		}
	}
	return nil
}

// budgetsHold returns an error if fewer tasks run than a budget that covers the job of the task
// requires.
func budgetsHold(s *cluster.State, t *cluster.Task) error {
	for _, b := range s.View().Budgets() {
		running, desired := 0, 0
		for _, j := range s.Jobs() {
			if !b.Covers(j) {
				continue
			}
			desired += len(j.Tasks()) - j.Ended()
			for _, o := range j.Tasks() {
				if o.Runs() {
					running++
				}
			}
		}
		if b.Covers(t.Job) && running < b.Required(desired) {
			return fmt.Errorf("budget %s: %d of %d tasks run", b.Name, running, desired)
		}
	}
	return nil
}

func placedTasks(s *cluster.State) int {
	n := 0
	for _, j := range s.Jobs() {
		n += j.Placed()
	}
	return n
}

// idle counts the devices of which nothing is held, and the nodes with devices of which all are idle.
func idle(s *cluster.State) (devices, nodes int) {
	for _, n := range s.Nodes() {
		held := map[int]bool{}
		for _, t := range n.Tasks {
			for _, c := range t.Claims {
				held[c.Device] = true
			}
		}
		devices += len(n.Devices) - len(held)
		if len(n.Devices) > 0 && len(held) == 0 {
			nodes++
		}
	}
	return devices, nodes
}
