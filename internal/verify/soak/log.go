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

// maxLines is the number of changes after which the log is replaced by a snapshot.
const maxLines = 300

// log is what a scheduler keeps on disk: a snapshot, and the changes since then, one
// per line. A process that crashes while it writes leaves an incomplete last line.
type log struct {
	snapshot []byte
	lines    bytes.Buffer
	count    int
}

// writeLog appends changes to the log.
func (w *World) writeLog(changes ...cluster.Change) error {
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

// compact replaces a long log by a snapshot.
func (w *World) compact() error {
	if w.log.snapshot != nil && w.log.count < maxLines {
		return nil
	}
	data, err := json.Marshal(w.State.Snapshot())
	if err != nil {
		return err
	}
	w.log = log{snapshot: data}
	return nil
}

// replay returns the State of the snapshot and of the complete lines within the first
// size bytes of the log.
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
			return state, nil // the last line is incomplete
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

// Replay audits State, and checks that its log gives an equal State.
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
		return fmt.Errorf("the log gives a different State:\n%s", cluster.Difference(again.Lines(), w.State.Lines()))
	}
	return nil
}

// Die ends the process. Its log is cut off at a random place after the first acted
// bytes, and a new process continues from there. The new process reads from the site
// what became of the tasks that are assigned or evicted.
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
	w.findTorn()
	return nil
}

// settleSent decides at random whether bindings that were sent and not answered have
// started their tasks.
func (w *World) settleSent() {
	for _, id := range sorted(w.sent) {
		if p := w.sent[id]; w.chance(50) && w.site.canStart(p) {
			w.site.runs[id] = p
		}
		delete(w.sent, id)
	}
}

// readBack reports to State the outcome of an assignment or eviction that is not
// confirmed yet.
func (w *World) readBack(t *cluster.Task) error {
	p := w.site.runs[t.ID]
	switch {
	case t.Status == cluster.Assumed && p != nil && p.attempt == t.Attempt:
		return w.apply(cluster.TaskSeen{Task: t.Ref(), Node: p.node, Started: p.started})
	case t.Status == cluster.Assumed:
		return w.apply(cluster.BindFailed{Task: t.Ref(), Attempt: t.Attempt})
	case t.Status == cluster.Releasing && p == nil && t.Sent(): // it is not known whether it was bound, so that only its end can be reported
		return w.apply(cluster.TaskGone{Task: t.Ref()})
	case t.Status == cluster.Releasing && p == nil: // it was assigned in the session that evicted it, and never started
		return w.apply(cluster.TaskSeen{Task: t.Ref()})
	case t.Status == cluster.Releasing:
		p.leaving = true // the eviction is sent again
	}
	return nil
}

// afterRestart runs the session on the State of the log with a new engine. It returns
// a function that checks that the old engine makes the same decisions. The decisions
// may differ in one case: the old engine does not try a parked job before its
// back-off is over if only evictions could help it, and whether evictions are possible
// depends on time and on shares. The new engine may find such an eviction earlier.
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
		a, b := decisionList(out), decisionList(&again)
		if slices.Equal(a, b) {
			return nil
		}
		if o.Patient && evicts(&again) {
			w.Earlier++
			return nil
		}
		return fmt.Errorf("a restarted engine makes other decisions:\n%s", cluster.Difference(a, b))
	}, nil
}

func decisionList(out *engine.Outcome) (list []string) {
	for i := range out.Decisions {
		d := &out.Decisions[i]
		list = append(list, fmt.Sprint(d.Action, " ", d.Task.ID(), " ", d.Node, " ", d.Claims, " ", d.For))
	}
	return list
}

func evicts(out *engine.Outcome) bool {
	return slices.ContainsFunc(out.Decisions, func(d engine.Decision) bool { return d.Action == engine.EvictTask })
}
