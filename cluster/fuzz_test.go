package cluster_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

// life is a random course: its changes, and the snapshot that it ends with.
type life struct {
	log      [][]byte
	snapshot []byte
}

// lives are seeds: a few courses, the same every time.
func lives(f *testing.F) []life {
	course := rapid.Custom(func(t *rapid.T) life {
		w, out := newWorld(t), life{}
		for range lengthOfLife {
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
	var out []life
	for seed := range 20 {
		out = append(out, course.Example(seed))
	}
	if len(out[0].log) == 0 {
		f.Fatal("nothing happens in a life")
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

// FuzzDecode: what is no change is an error; what is one comes back as it was, and
// leaves a State that it is applied to consistent.
func FuzzDecode(f *testing.F) {
	seeds := lives(f)
	for _, l := range seeds {
		for _, c := range l.log {
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
			t.Fatalf("%s\nbecomes\n%s (%v)", first, second, err)
		}
		s, err := readSnapshot(seeds[0].snapshot)
		if err != nil {
			t.Fatal(err)
		}
		_ = s.Apply(c) // a decision may not hold
		if err := s.Audit(); err != nil {
			t.Fatalf("after %s: %v", first, err)
		}
	})
}

// FuzzSnapshot: what makes no State is an error; a State that is made is consistent.
func FuzzSnapshot(f *testing.F) {
	for _, l := range lives(f) {
		f.Add(l.snapshot)
	}
	for _, text := range hostile {
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
