package soak

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// Dice is a source of choices: a property test's generator, or a seeded one.
type Dice interface {
	// Roll returns a number from 0 to n-1.
	Roll(n int) int
}

// World is a cluster and the engine that schedules it.
type World struct {
	State  *cluster.State
	engine *engine.Engine
	dice   Dice
	serial int
	// shrunk nodes may hold more than they have; they take nothing new.
	shrunk map[string]bool
	// Decisions counts what was decided, so that a run can show that it did something.
	Decisions, Refusals int
}

// NewWorld makes a small cluster.
func NewWorld(dice Dice) (*World, error) {
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		return nil, err
	}
	w := &World{State: cluster.NewState(), engine: e, dice: dice, shrunk: map[string]bool{}}
	for _, q := range queues() {
		if err := w.State.SetQueue(q); err != nil {
			return nil, err
		}
	}
	for range 2 + dice.Roll(6) {
		if err := w.AddNode(); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// chance is false for low rolls: generators favour them, and a plain world shrinks best.
func (w *World) chance(percent int) bool { return w.dice.Roll(100) >= 100-percent }

func pick[T any](w *World, list []T) T { return list[w.dice.Roll(len(list))] }

var kinds = []struct {
	product string
	memory  cluster.Bytes
}{{"A100", 80 << 30}, {"A10", 24 << 30}, {"L4", 24 << 30}}

// AddNode adds a random node, sometimes under the name of one that is gone.
func (w *World) AddNode() error {
	if len(w.State.Nodes()) >= 12 {
		return nil
	}
	name := fmt.Sprintf("n%02d", w.dice.Roll(30))
	if w.State.Node(name) != nil {
		return nil
	}
	n := &cluster.Node{Name: name, Labels: map[string]string{}}
	n.Resources = []cluster.Ledger{
		{Name: cluster.CPU, Capacity: int64(64-8*w.dice.Roll(8)) * 1000},
		{Name: cluster.Memory, Capacity: int64(256-32*w.dice.Roll(8)) << 30},
	}
	if w.chance(20) {
		n.Resources = append(n.Resources, cluster.Ledger{Name: "rdma/hca", Capacity: 2})
	}
	w.label(n)
	for range []int{1, 2, 0}[w.dice.Roll(3)] {
		k := pick(w, kinds)
		for range []int{4, 2, 1}[w.dice.Roll(3)] {
			n.Devices = append(n.Devices, cluster.Device{UUID: fmt.Sprintf("%s-%d", name, len(n.Devices)), Product: k.product, Type: "cuda", Memory: k.memory})
		}
	}
	if w.chance(20) {
		for i := range 3 {
			n.Devices = append(n.Devices, cluster.Device{UUID: fmt.Sprintf("%s-mig-%d", name, i), Product: "A100", Type: "cuda", Memory: 10 << 30, Profile: "1g.10gb", Parent: name + "-mig"})
		}
	}
	n.Advertised.GPU = append(n.Advertised.GPU, cluster.GPUClasses[w.dice.Roll(4):]...)
	n.Advertised.CPU = append(n.Advertised.CPU, cluster.CPUClasses[w.dice.Roll(3):]...)
	n.Advertised.IsolableCores = int64(w.dice.Roll(8))
	if w.chance(15) {
		n.Advertised.Share = cluster.ShareExclusive
	}
	return w.State.AddNode(n)
}

func (w *World) label(n *cluster.Node) {
	n.Labels = map[string]string{"rack": pick(w, []string{"r1", "r2", "r3"})}
	if w.chance(50) {
		n.Labels["zone"] = pick(w, []string{"a", "b"})
	}
	if w.chance(20) {
		n.Labels["kai.scheduler/instance-type"] = "spot"
	}
	n.Cell = pick(w, []string{"", "west", "east"})
	n.Taints = nil
	if w.chance(15) {
		n.Taints = append(n.Taints, cluster.Taint{Key: "gpu", Value: "only", Effect: pick(w, cluster.Effects)})
	}
	n.Unschedulable = w.chance(5)
}

// RemoveNode loses a node: what ran there is pending again.
func (w *World) RemoveNode() error {
	if len(w.State.Nodes()) == 0 {
		return nil
	}
	name := pick(w, w.State.Nodes()).Name
	delete(w.shrunk, name)
	_, err := w.State.LoseNode(name)
	return err
}

// ChangeNode relabels a node, or has it lose or regain a device or some cores,
// whoever holds them.
func (w *World) ChangeNode() error {
	if len(w.State.Nodes()) == 0 {
		return nil
	}
	n := pick(w, w.State.Nodes())
	what := w.dice.Roll(4)
	err := w.State.UpdateNode(n.Name, func(n *cluster.Node) {
		switch {
		case what == 0:
			w.label(n)
		case what == 1 && len(n.Devices) > 0:
			d := &n.Devices[w.dice.Roll(len(n.Devices))]
			if d.Lost = !d.Lost; w.chance(20) {
				d.Memory /= 2
				w.shrunk[n.Name] = true
			}
		case what == 2 && len(n.Devices) > 1 && w.chance(30):
			n.Devices = n.Devices[:len(n.Devices)-1]
		default:
			n.Ledger(cluster.CPU).Capacity = int64(8+8*w.dice.Roll(8)) * 1000
			w.shrunk[n.Name] = true
		}
	})
	w.whole()
	return err
}

// whole restarts what runs below its minimum, as whoever runs jobs would; what
// only has promises is the engine's to put right.
func (w *World) whole() {
	for _, j := range w.State.Jobs() {
		if j.Running() && !j.Stands() {
			w.State.Restart(j)
		}
	}
}

// Restore has a job run somewhere already, as a dump would say.
func (w *World) Restore() error {
	if err := w.AddJob(); err != nil || len(w.State.Pending()) == 0 || len(w.State.Nodes()) == 0 {
		return err
	}
	j := pick(w, w.State.Pending())
	if j.Chosen >= 0 || j.Alternatives[0].Whole != nil {
		return nil
	}
	for _, t := range j.Tasks() {
		n := pick(w, w.State.Nodes())
		if slices.ContainsFunc(n.Tasks, func(t *cluster.Task) bool { return t.Status != cluster.Bound }) {
			continue // nobody can run yet where others are leaving or expected
		}
		if claims, ok := n.Choose(t.Shape, nil); ok {
			if err := w.State.Restore(t, n, claims); err != nil {
				return err
			}
			w.shrunk[n.Name] = true // cores and memory are booked as they are
		}
	}
	w.whole()
	return nil
}

// RemoveJob ends a job.
func (w *World) RemoveJob() error {
	jobs := w.State.Jobs()
	if len(jobs) == 0 {
		return nil
	}
	return w.State.RemoveJob(pick(w, jobs).ID)
}

// Leave lets tasks go that were evicted: their room is then really free, and
// what was below its minimum starts again.
func (w *World) Leave() error {
	for _, j := range w.State.Jobs() {
		for _, t := range j.Tasks() {
			if t.Status == cluster.Releasing {
				w.State.Clear(t)
			}
		}
	}
	w.whole()
	return nil
}
