package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/replay"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/spf13/cobra"
)

// recordedName is the row of what the log itself decided.
const recordedName = "recorded"

func replayLog(p *program) *cobra.Command {
	o := replayer{program: p}
	var warmUp time.Duration
	c := &cobra.Command{
		Use:   "log PATH",
		Short: "Replay a recorded log of changes with other decisions",
		Long: `Reads a log of changes, one on each line (docs/reference/changes.md), and makes
its decisions anew with each policy. Facts about nodes and queues, arrivals, run
times and the removal of jobs that wait are those of the log. The row "recorded"
is what the log itself decided.

The first line may be a snapshot, as --snapshot-out writes it; the log then begins
with it. PATH is a file, or - for standard input. docs/replay.md has the rules.`,
		Example: "  berth replay log changes.jsonl --policy best-fit,fill-value --plot result.svg\n  berth replay synth --seeds 1 --log changes.jsonl --policy best-fit",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if warmUp < 0 {
				return fmt.Errorf("--warm-up: want 0 or more, such as 24h, have %s", warmUp)
			}
			return o.runLog(c.Context(), args[0], warmUp)
		},
	}
	o.addFlags(c)
	c.Flags().DurationVar(&warmUp, "warm-up", 0, "time at the beginning of the log that is not measured")
	return c
}

// runLog replays the log, once for each policy.
func (o *replayer) runLog(ctx context.Context, path string, warmUp time.Duration) error {
	if err := oneOf("--output", o.output, "table", "json"); err != nil {
		return err
	}
	if o.check < 0 {
		return errors.New("--check-every must not be negative")
	}
	if path == "-" && o.plot != "" {
		return errors.New("--plot reads the log twice; name a file instead of standard input")
	}
	base, err := o.profile()
	if err != nil {
		return err
	}
	if len(o.policies) == 0 {
		o.policies = []string{""}
	}
	profiles := make([]engine.Profile, len(o.policies))
	for i, policy := range o.policies {
		if profiles[i], err = packed(base, policy); err != nil {
			return err
		}
	}
	read := replay.RecordOptions{WarmUp: int64(warmUp), Snapshot: manifest.SnapshotOf}
	recording, err := o.record(path, read)
	if err == nil && o.plot != "" {
		read.Points, read.Demand = plotPoints, recording.Demand()
		recording, err = o.record(path, read)
	}
	if err != nil {
		return err
	}
	if recording.Cut {
		o.program.note("%s: the last line is incomplete, as after a crash, and is left out", path)
	}
	if n := recording.Unknown; n > 0 {
		o.program.note("%s: the run times of %s are not known, because the log ends before they do; once started, they run on", path, counted(n, "job"))
	}
	results := []*replay.Result{replay.SummarizeLog(recording.Name, recordedName, recording.Run)}
	for i, policy := range o.policies {
		r, err := o.replayRecording(ctx, recording, policyName(policy), profiles[i], read)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	return o.report(results, path)
}

// record reads the log.
func (o *replayer) record(path string, read replay.RecordOptions) (*replay.Recording, error) {
	if path == "-" {
		return replay.Record("standard input", o.program.stdin, read)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return replay.Record(path, f, read)
}

// replayRecording replays the recording with the profile.
func (o *replayer) replayRecording(ctx context.Context, r *replay.Recording, name string, profile engine.Profile, read replay.RecordOptions) (*replay.Result, error) {
	e, err := engine.New(o.program.registry, profile)
	if err != nil {
		return nil, err
	}
	shown := o.program.screen.start()
	defer shown.end()
	begin := time.Now()
	run, err := r.Replay(ctx, replay.LogOptions{
		Engine: e, WarmUp: read.WarmUp, CheckEvery: o.check, Points: read.Points,
		Clock:    func() time.Duration { return time.Since(begin) },
		Progress: func(done float64) { shown.set("%s %s %3.0f %%", name, bar(done, 20), 100*done) },
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return replay.SummarizeLog(r.Name, name, run), nil
}

// packed returns the profile with the policy; "": as it is.
func packed(base engine.Profile, policy string) (engine.Profile, error) {
	if policy == "" {
		return base, nil
	}
	profile, err := standard.Pack(base, policy)
	if err != nil {
		return nil, fmt.Errorf("--policy: %w", err)
	}
	return profile, nil
}

func policyName(policy string) string {
	if policy == "" {
		return "configured"
	}
	return policy
}

// logFlag is the flag with which a replay writes a log.
type logFlag struct{ path string }

func (l *logFlag) addFlag(c *cobra.Command) {
	c.Flags().StringVar(&l.path, "log", "", "write all changes of the replay to this file, for berth replay log; jobs then state their run times, as with --known-run-times; needs one policy and one seed")
}

// write calls run with a function that writes changes to the log, or with nil if there is no log.
func (l *logFlag) write(inputs []string, run func(log func(cluster.Change) error) error) error {
	if l.path == "" {
		return run(nil)
	}
	return writeFile("--log", l.path, inputs, func(w io.Writer) error {
		out := bufio.NewWriterSize(w, 1<<16)
		err := run(func(c cluster.Change) error {
			text, err := cluster.Encode(c)
			if err == nil {
				_, err = out.Write(append(text, '\n'))
			}
			return err
		})
		return errors.Join(err, out.Flush())
	})
}
