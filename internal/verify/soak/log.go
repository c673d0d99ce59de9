package soak

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/berth-project/berth/cluster"
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

// newLog returns a log that has only a snapshot.
func newLog(state *cluster.State) (*log, error) {
	data, err := json.Marshal(state.Snapshot())
	if err != nil {
		return nil, err
	}
	return &log{snapshot: data}, nil
}

// append writes a change to the log.
func (l *log) append(c cluster.Change) error {
	line, err := cluster.Encode(c)
	if err != nil {
		return err
	}
	l.lines.Write(line)
	l.lines.WriteByte('\n')
	l.count++
	return nil
}

// isLong reports whether the log should be replaced by a snapshot.
func (l *log) isLong() bool { return l.count >= maxLines }

// size returns the number of bytes after the snapshot.
func (l *log) size() int { return l.lines.Len() }

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
