package cluster_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

// history is a sequence of random changes, and the snapshot after the last of them.
type history struct {
	log      [][]byte
	snapshot []byte
}

// histories returns a few histories as seeds, the same ones every time.
func histories(f *testing.F) []history {
	generator := rapid.Custom(func(t *rapid.T) history {
		w, out := newWorld(t), history{}
		for range historyLength {
			if c := w.step(); c != nil {
				out.log = append(out.log, []byte(show(c)))
			}
		}
		var err error
		if out.snapshot, err = json.Marshal(w.state.Snapshot()); err != nil {
			t.Fatal(err)
		}
		return out
	})
	var out []history
	for seed := range 20 {
		out = append(out, generator.Example(seed))
	}
	if len(out[0].log) == 0 {
		f.Fatal("the first history has no changes")
	}
	return out
}

func readSnapshot(data []byte) (*cluster.State, error) {
	var snapshot cluster.Snapshot
	if err := json.Unmarshal(data, &snapshot); err != nil {
		return nil, err
	}
	return snapshot.State()
}

// FuzzDecode checks that Decode returns an error or a change, that a change is the same
// after encoding and decoding, and that a State is consistent after it is applied.
func FuzzDecode(f *testing.F) {
	seeds := histories(f)
	for _, h := range seeds {
		for _, c := range h.log {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := cluster.Decode(data)
		if err != nil {
			return
		}
		first, err := cluster.Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := cluster.Decode(first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, err := cluster.Encode(again); err != nil || !bytes.Equal(first, second) {
			t.Fatalf("%s\nis, after decoding and encoding,\n%s (%v)", first, second, err)
		}
		s, err := readSnapshot(seeds[0].snapshot)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Apply(c) // a decision may be refused
		if err := s.Audit(); err != nil {
			t.Fatalf("after %s: %v", first, err)
		}
	})
}

// FuzzSnapshot checks that a snapshot gives an error or a consistent State.
func FuzzSnapshot(f *testing.F) {
	for _, h := range histories(f) {
		f.Add(h.snapshot)
	}
	for _, text := range invalidSnapshots {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := readSnapshot(data)
		if err != nil {
			return
		}
		if err := s.Audit(); err != nil {
			t.Fatal(err)
		}
	})
}
