package manifest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/berth-project/berth/cluster"
)

const head = `{"apiVersion":"berth.dev/v1alpha1","kind":"Snapshot","version":`

// A program of version 3 reads version 2 by an upgrade, and neither version 1 nor 4.
func TestSnapshotVersions(t *testing.T) {
	third := format{version: 3, upgrades: map[int]func([]byte) ([]byte, error){
		2: func(data []byte) ([]byte, error) {
			if !bytes.Contains(data, []byte(`"time":`)) {
				return nil, fmt.Errorf("there is no time")
			}
			data = bytes.Replace(data, []byte(`"version":2`), []byte(`"version":3`), 1)
			return bytes.Replace(data, []byte(`"time":`), []byte(`"now":`), 1), nil
		},
	}}
	tests := map[string]struct{ text, want string }{
		"its own":      {head + `3,"now":7,"state":{}}`, "7"},
		"the last":     {head + `2,"time":7,"state":{}}`, "7"},
		"not the last": {head + `2,"state":{}}`, "version 2 cannot be read as version 3: there is no time"},
		"an old one":   {head + `1,"time":7,"state":{}}`, "the snapshot has version 1, and this berth, of version 3, reads only the version before its own; an older berth reads it"},
		"a new one":    {head + `4,"then":7}`, "the snapshot has version 4, and this berth reads up to version 3; use a newer berth"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := third.read([]byte(tt.text))
			got := fmt.Sprint(err)
			if err == nil {
				got = fmt.Sprint(s.Now)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestEveryVersionHasAnUpgrade fails if the version was raised and the version before it
// cannot be read.
func TestEveryVersionHasAnUpgrade(t *testing.T) {
	if before := cluster.WireVersion - 1; before > 0 && currentFormat.upgrades[before] == nil {
		t.Errorf("no upgrade from version %d to %d", before, cluster.WireVersion)
	}
}

func TestDamagedSnapshots(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"cut off":           {head + `1,"state":{"no`, "f.json: the snapshot ends after 77 bytes, in the middle of a value: it was cut off"},
		"cut off before":    {head, "f.json: the kind of a snapshot is followed by its version, a whole number"},
		"a fraction":        {head + `1.5}`, "f.json: the kind of a snapshot is followed by its version, a whole number"},
		"a text":            {head + `"1"}`, "f.json: the kind of a snapshot is followed by its version, a whole number"},
		"a large number":    {head + `99999999999999999999}`, "f.json: the kind of a snapshot is followed by its version, a whole number"},
		"no JSON":           {head + `1,}`, "f.json: this is not JSON: at byte 66: invalid character '}' looking for beginning of object key string"},
		"another type":      {head + `1,"state":{"nodes":5}}`, "f.json: at byte 83: state.nodes: want []cluster.NodeRecord, have number"},
		"more than one":     {head + `1,"state":{}}{}`, "f.json: something follows the snapshot, after 76 bytes"},
		"deep":              {head + `1,"state":` + strings.Repeat(`[`, 20000), "f.json: this is not JSON: at byte 10073: invalid character '[' exceeded max depth"},
		"no configuration":  {head + `1,"configuration":{},"state":{}}`, "f.json:1: configuration.apiVersion: apiVersion is missing; " + whatIsRead},
		"another kind":      {head + `1,"configuration":{"apiVersion":"berth.dev/v1alpha1","kind":"Queue","metadata":{"name":"a"}},"state":{}}`, "f.json: configuration: this is not a SchedulerConfiguration"},
		"makes no State":    {head + `1,"state":{"now":-1}}`, "f.json: the snapshot makes no State: now is -1; it must be from 0 to 4611686018427387904"},
		"other first bytes": {`{"kind":"Snapshot","apiVersion":"berth.dev/v1alpha1","version":1}`, "f.json:1:1: a snapshot is one JSON document in a file of its own, and begins with apiVersion, kind and version, as berth simulate --snapshot-out writes it"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f.json", []byte(tt.text))
			if err == nil {
				_, err = b.State()
			}
			if diff := cmp.Diff(tt.want, fmt.Sprint(err)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A file that is too large is refused before it is read.
func TestSnapshotFileIsTooLarge(t *testing.T) {
	name := filepath.Join(t.TempDir(), "huge.json")
	if err := os.WriteFile(name, []byte(head+"1,"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, maxSnapshotSize+1); err != nil {
		t.Fatal(err)
	}
	_, err := Load([]string{name})
	if diff := cmp.Diff(name+": larger than 1024 MiB, the most that a snapshot may have", fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}

func TestSnapshotOverTheLimits(t *testing.T) {
	defer func(most int) { maxDevicesInAll = most }(maxDevicesInAll)
	maxDevicesInAll = 1
	b, err := Parse("f.json", []byte(head+`1,"state":{"nodes":[{"node":{"name":"n","devices":[{},{}]}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.State()
	if diff := cmp.Diff("f.json: the snapshot has 2 devices; the most is 1", fmt.Sprint(err)); diff != "" {
		t.Error(diff)
	}
}

// A snapshot keeps the time, parameters, notes and node requests.
func TestSnapshotKeepsTimeParametersAndNotes(t *testing.T) {
	text := head + `1,"now":5,"parameters":{"Prices":18446744073709551615},"notes":["a note"],"nodeRequests":[{"model":"model/m","instanceType":"x"}],"state":{}}`
	b, err := Parse("f.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := b.Snapshot(s, b.Now(), b.Parameters()).Write(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, `"state":{}`, `"state":{"queues":[{"queue":{"name":"default","tier":"Standard","weight":1}}]}`, 1)
	if diff := cmp.Diff(want+"\n", out.String()); diff != "" {
		t.Error(diff)
	}
}
