package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
)

// Snapshot is what a simulation starts from, as one JSON document. The first three fields
// are written first, so that the first bytes of a file tell a snapshot from a manifest.
type Snapshot struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Version is the version of the format. A program reads its own version and the one
	// before it.
	Version int `json:"version"`
	// Now is the time of the decisions, in nanoseconds since 1970.
	Now int64 `json:"now,omitempty"`
	// Configuration is the SchedulerConfiguration as it was written; nil: the default profile.
	Configuration *v1alpha1.SchedulerConfiguration `json:"configuration,omitempty"`
	// Parameters are the parameters that plugins published last, by plugin.
	Parameters map[string]uint64 `json:"parameters,omitempty"`
	// Notes are what a user should know about how the input was read.
	Notes []string `json:"notes,omitempty"`
	// NodeRequests are what models with an instance type request of a provisioner.
	NodeRequests []model.NodeRequest `json:"nodeRequests,omitempty"`
	// Session is set if the snapshot is the input of one session of a scheduler.
	Session *Session          `json:"session,omitempty"`
	State   *cluster.Snapshot `json:"state"`
	// Kubernetes is what the filters of Kubernetes read. Only kubectl berth reads it.
	Kubernetes json.RawMessage `json:"kubernetes,omitempty"`
}

const (
	snapshotHead    = 4096 // bytes at the start of a file that contain the first three fields
	maxSnapshotSize = 1 << 30
)

var snapshotTooLarge = fmt.Sprintf("larger than %d MiB, the most that a snapshot may have", maxSnapshotSize>>20)

// Snapshot returns a snapshot of the State that was made of the bundle, and of what
// commands need besides it.
func (b *Bundle) Snapshot(state *cluster.State, now int64, parameters map[string]uint64) *Snapshot {
	out := &Snapshot{
		APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSnapshot, Version: cluster.WireVersion,
		Now: now, Parameters: parameters, Notes: b.Notes, NodeRequests: b.NodeRequests(), State: state.Snapshot(),
	}
	if c := b.Configuration(); c != nil {
		out.Configuration = c.written
	}
	return out
}

// Write writes the snapshot in the format of a file.
func (s *Snapshot) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(s)
}

// isSnapshot reports whether a file that begins with data is a snapshot.
func isSnapshot(data []byte) bool {
	_, ok := snapshotBody(data)
	return ok
}

// snapshotBody returns a decoder for what follows the kind of a snapshot, and false if data
// is not the beginning of one.
func snapshotBody(data []byte) (*json.Decoder, bool) {
	d := json.NewDecoder(bytes.NewReader(data[:min(len(data), snapshotHead)]))
	d.UseNumber()
	for _, want := range []json.Token{json.Delim('{'), "apiVersion", v1alpha1.APIVersion, "kind", v1alpha1.KindSnapshot} {
		if got, err := d.Token(); err != nil || got != want {
			return nil, false
		}
	}
	return d, true
}

// format is a version of the format of snapshots. The function upgrades[v] converts a document
// of version v to version v+1.
type format struct {
	version  int
	upgrades map[int]func([]byte) ([]byte, error)
}

// currentFormat is the format that is written. The first version is 1.
var currentFormat = format{version: cluster.WireVersion}

// read decodes a snapshot. An unknown field is an error.
func (f format) read(data []byte) (*Snapshot, error) {
	version, err := snapshotVersion(data)
	switch {
	case err != nil:
		return nil, err
	case version > f.version:
		return nil, fmt.Errorf("the snapshot has version %d, and this berth reads up to version %d; use a newer berth", version, f.version)
	case version < max(1, f.version-1):
		return nil, fmt.Errorf("the snapshot has version %d, and this berth, of version %d, reads only the version before its own; an older berth reads it", version, f.version)
	}
	for ; version < f.version; version++ {
		if data, err = f.upgrades[version](data); err != nil {
			return nil, fmt.Errorf("version %d cannot be read as version %d: %w", version, version+1, err)
		}
	}
	out := &Snapshot{}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(out); err != nil {
		return nil, locateDamage(err, len(data))
	}
	end := d.InputOffset()
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("something follows the snapshot, after %d bytes", end)
	}
	if out.State == nil {
		return nil, errors.New("the snapshot has no state")
	}
	return out, nil
}

// snapshotVersion returns the version of a snapshot. It does not read what follows.
func snapshotVersion(data []byte) (int, error) {
	d, ok := snapshotBody(data)
	if !ok {
		return 0, errors.New("no snapshot")
	}
	wrong := errors.New("the kind of a snapshot is followed by its version, a whole number")
	if name, err := d.Token(); err != nil || name != "version" {
		return 0, wrong
	}
	number, err := d.Token()
	if err != nil {
		return 0, wrong
	}
	n, ok := number.(json.Number)
	if !ok {
		return 0, wrong
	}
	v, err := n.Int64()
	if err != nil || int64(int(v)) != v {
		return 0, wrong
	}
	return int(v), nil
}

// locateDamage returns an error that says at which byte the document is damaged. Size is the
// number of bytes of the document.
func locateDamage(err error, size int) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the snapshot ends after %d bytes, in the middle of a value: it was cut off", size)
	case errors.As(err, &syntax):
		return fmt.Errorf("this is not JSON: at byte %d: %w", syntax.Offset, err)
	case errors.As(err, &kind):
		return fmt.Errorf("at byte %d: %s: want %s, have %s", kind.Offset, kind.Field, kind.Type, kind.Value)
	}
	return err
}

// SnapshotOf reads a snapshot in the format of a file, and returns the State of it. It returns nil if
// data does not begin like one.
func SnapshotOf(data []byte) (*cluster.Snapshot, error) {
	if !isSnapshot(data) {
		return nil, nil
	}
	s, err := currentFormat.read(data)
	if err != nil {
		return nil, err
	}
	return s.State, nil
}
