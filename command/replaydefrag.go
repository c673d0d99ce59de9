package command

import (
	"errors"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/defrag"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/replay"
	"github.com/berth-project/berth/plugins/consolidate"
	"github.com/berth-project/berth/plugins/preempt"
	"github.com/berth-project/berth/plugins/reclaim"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
)

// replayPauses are the flags of what is done in the middle of a replay.
type replayPauses struct {
	defragAt   int
	moves      float64 // percent of the tasks
	snapshot   string
	snapshotAt int
}

func (o *replayPauses) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.IntVar(&o.defragAt, "defrag-at", 0, "when this percentage of the devices has arrived, move tasks as berth defrag --free room would; 0: never")
	f.Float64Var(&o.moves, "defrag-moves", 10, "move at most this percentage of the tasks that run then")
	f.StringVar(&o.snapshot, "snapshot-out", "", "write the state of the cluster to this file, as a snapshot with preemptible jobs")
	f.IntVar(&o.snapshotAt, "snapshot-at", 100, "when this percentage of the devices has arrived")
}

// check returns an error if a value makes no sense, or if several replays would write one snapshot.
func (o *replayPauses) check(replays int) error {
	switch {
	case o.defragAt < 0 || o.snapshotAt < 1:
		return errors.New("--defrag-at must not be negative, and --snapshot-at must be at least 1")
	case !(o.moves > 0 && o.moves <= 100):
		return fmt.Errorf("--defrag-moves: want more than 0 and at most 100, have %v", o.moves)
	case o.snapshot != "" && replays != 1:
		return errors.New("--snapshot-out: several replays would write the file; give one policy and one seed, such as --policy random --seeds 42")
	}
	return nil
}

// given reports whether the replay has a pause.
func (o *replayPauses) given() bool { return o.defragAt > 0 || o.snapshot != "" }

// withoutEvictions returns the profile without the plugins that evict or move tasks.
func withoutEvictions(p engine.Profile) engine.Profile {
	return slices.DeleteFunc(slices.Clone(p), func(c engine.PluginConfig) bool {
		return slices.Contains([]string{consolidate.Name, reclaim.Name, preempt.Name}, c.Name)
	})
}

// pauses returns the pauses of a replay. The defrag has an engine of its own, with the profile. What
// it did is added to done.
func (o *replayPauses) pauses(p *program, inputs []string, profile engine.Profile, done *[]defragDone) ([]replay.Pause, error) {
	var out []replay.Pause
	if o.snapshot != "" {
		out = append(out, replay.Pause{At: o.snapshotAt, Do: func(s *cluster.State, now int64) error {
			return p.writeSnapshot(o.snapshot, inputs, (&manifest.Bundle{}).Snapshot(s, now, nil))
		}})
	}
	if o.defragAt > 0 {
		packed, err := standard.Pack(profile, defragPacking)
		if err != nil {
			return nil, err
		}
		e, err := engine.New(p.registry, packed)
		if err != nil {
			return nil, err
		}
		out = append(out, replay.Pause{At: o.defragAt, Do: func(s *cluster.State, now int64) error {
			tasks := runningTasks(s)
			plan, err := defrag.Make(e, s, defrag.Options{Goal: defrag.Room, MostMoves: int(float64(tasks) * o.moves / 100), Now: now})
			if err == nil {
				*done = append(*done, defragDone{len(plan.Moves), tasks})
			}
			return err
		}})
	}
	slices.SortStableFunc(out, func(a, b replay.Pause) int { return a.At - b.At })
	return out, nil
}

// defragDone says how many of the tasks that ran a defrag moved.
type defragDone struct{ moves, tasks int }

// runningTasks returns how many tasks run.
func runningTasks(s *cluster.State) int {
	n := 0
	for _, node := range s.Nodes() {
		for _, t := range node.Tasks {
			if t.Runs() {
				n++
			}
		}
	}
	return n
}
