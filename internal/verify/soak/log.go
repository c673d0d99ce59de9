package soak

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// mostLines is how many changes the log holds before a snapshot takes their place.
const mostLines = 300

// log is what a scheduler keeps on disk: a snapshot, and the changes since, one to
// a line. A process that dies while it writes leaves the last line torn.
type log struct {
	snapshot []byte
	lines    bytes.Buffer
	count    int
}

// write appends changes to the log.
func (w *World) write(changes ...cluster.Change) error {
	for _, c := range changes {
		line, err := cluster.Encode(c)
		if err != nil {
			return err
		}
		w.log.lines.Write(line)
		w.log.lines.WriteByte('\n')
		w.log.count++
		w.Changes++
	}
	return nil
}

// compact puts a snapshot in the place of a log that has grown long.
func (w *World) compact() error {
	if w.log.snapshot != nil && w.log.count < mostLines {
		return nil
	}
	data, err := json.Marshal(w.State.Snapshot())
	if err != nil {
		return err
	}
	w.log = log{snapshot: data}
	return nil
}

// replay makes a State of the snapshot and the whole lines among the first bytes
// of the log.
func (l *log) replay(size int) (*cluster.State, error) {
	var snapshot cluster.Snapshot
	if err := json.Unmarshal(l.snapshot, &snapshot); err != nil {
		return nil, err
	}
	state, err := snapshot.State()
	if err != nil {
		return nil, err
	}
	for rest := l.lines.Bytes()[:size]; ; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return state, nil // the rest is torn
		}
		c, err := cluster.Decode(rest[:end])
		if err != nil {
			return nil, fmt.Errorf("the log cannot be read: %w", err)
		}
		if err := state.Apply(c); err != nil {
			return nil, fmt.Errorf("the log cannot be replayed: %s: %w", rest[:end], err)
		}
		rest = rest[end+1:]
	}
}

// Replay holds the State against its own log, and against what it keeps beside its objects.
func (w *World) Replay() error {
	if err := w.State.Audit(); err != nil {
		return err
	}
	again, err := w.log.replay(w.log.lines.Len())
	if err != nil {
		return err
	}
	w.Replays++
	if again.Digest() != w.State.Digest() {
		return fmt.Errorf("the log gives another State:\n%s", cluster.Difference(again.Lines(), w.State.Lines()))
	}
	return nil
}

// Die ends the process at any point: its log is torn anywhere behind what it has
// acted on, and a new process goes on from there. What it finds assigned or evicted
// it reads back.
func (w *World) Die(acted int) error {
	w.Crashes++
	w.Torn++
	size := w.log.lines.Len()
	state, err := w.log.replay(acted + w.dice.Roll(size-acted+1))
	if err != nil {
		return err
	}
	if w.engine, err = engine.New(standard.Registry(), standard.Profile()); err != nil {
		return err
	}
	w.State, w.log = state, log{}
	if err := w.compact(); err != nil {
		return err
	}
	w.settleSent()
	for _, j := range w.State.Jobs() {
		for _, t := range j.Tasks() {
			if err := w.readBack(t); err != nil {
				return err
			}
		}
	}
	w.displaced = map[[2]string]bool{}
	w.torn = map[string]int64{}
	w.tear()
	return nil
}

// settleSent decides what became of bindings that were sent and not answered.
func (w *World) settleSent() {
	for _, id := range sorted(w.sent) {
		if p := w.sent[id]; w.chance(50) && w.site.startable(p) {
			w.site.runs[id] = p
		}
		delete(w.sent, id)
	}
}

// readBack tells the State what became of a decision that it knows and whose
// outcome it does not.
func (w *World) readBack(t *cluster.Task) error {
	p := w.site.runs[t.ID]
	switch {
	case t.Status == cluster.Assumed && p != nil && p.attempt == t.Attempt:
		return w.tell(cluster.TaskSeen{Task: t.Ref(), Node: p.node, Started: p.started})
	case t.Status == cluster.Assumed:
		return w.tell(cluster.BindFailed{Task: t.Ref(), Attempt: t.Attempt})
	case t.Status == cluster.Releasing && p == nil && t.Sent(): // whether it was bound was not known: only its end is
		return w.tell(cluster.TaskGone{Task: t.Ref()})
	case t.Status == cluster.Releasing && p == nil: // it was assigned in the same session, and never started
		return w.tell(cluster.TaskSeen{Task: t.Ref()})
	case t.Status == cluster.Releasing:
		p.leaving = true // it is told again
	}
	return nil
}

// afterRestart runs the session on the State that the log gives, with an engine that
// remembers nothing, and returns a check that it decides what the other one does. An
// engine that was not restarted leaves some jobs alone until their back-off is over,
// since only evictions that time or shares newly allow could help them: where the
// restarted one finds such, the two may differ.
func (w *World) afterRestart(o engine.Options) (func(*engine.Outcome) error, error) {
	state, err := w.log.replay(w.log.lines.Len())
	if err != nil {
		return nil, err
	}
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		return nil, err
	}
	s := e.Open(state, o)
	again, err := s.Run()
	s.Close()
	if err != nil {
		return nil, err
	}
	return func(out *engine.Outcome) error {
		w.Restarts++
		a, b := decided(out), decided(&again)
		if slices.Equal(a, b) {
			return nil
		}
		if o.Patient && evicts(&again) {
			w.Earlier++
			return nil
		}
		return fmt.Errorf("after a restart other decisions are made:\n%s", cluster.Difference(a, b))
	}, nil
}

func decided(out *engine.Outcome) (list []string) {
	for i := range out.Decisions {
		d := &out.Decisions[i]
		list = append(list, fmt.Sprint(d.Action, " ", d.Task.ID(), " ", d.Node, " ", d.Claims, " ", d.For))
	}
	return list
}

func evicts(out *engine.Outcome) bool {
	return slices.ContainsFunc(out.Decisions, func(d engine.Decision) bool { return d.Action == engine.EvictTask })
}
