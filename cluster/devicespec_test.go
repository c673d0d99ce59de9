package cluster

import (
	"encoding/json"
	"fmt"
	"testing"
	"unsafe"
)

// TestEqualDevicesShareOneSpec counts the records of a cluster with two kinds of devices. It also
// writes to the records of the caller, which must not change the State.
func TestEqualDevicesShareOneSpec(t *testing.T) {
	s := NewState()
	var changes []Change
	for i := range 100 {
		n := Node{Name: fmt.Sprintf("n%03d", i)}
		for d := range 8 {
			n.Devices = append(n.Devices, Device{DeviceSpec: &DeviceSpec{Product: []string{"A100", "L4"}[i%2], Memory: 24 << 30}, UUID: fmt.Sprint(d)})
		}
		changes = append(changes, NodePut{Node: n})
	}
	if err := s.ApplyAll(changes); err != nil {
		t.Fatal(err)
	}
	records := func(s *State) int {
		seen := map[*DeviceSpec]bool{}
		for _, n := range s.Nodes() {
			for i := range n.Devices {
				seen[n.Devices[i].DeviceSpec] = true
			}
		}
		return len(seen)
	}
	if n := records(s); n != 2 {
		t.Errorf("there are %d records, want 2", n)
	}
	digest := s.Digest()
	for _, c := range changes {
		for i := range c.(NodePut).Node.Devices {
			c.(NodePut).Node.Devices[i].Memory /= 2
		}
	}
	if s.Digest() != digest {
		t.Error("a record of the caller is part of the State")
	}
	if n := records(s.Clone()); n != 2 {
		t.Errorf("a copy of the State has %d records, want 2", n)
	}
	if size := unsafe.Sizeof(Device{}); size > 168 {
		t.Errorf("a device takes %d bytes in addition to its record, want at most 168", size)
	}
}

// TestUnusedDeviceSpecsAreDropped changes the devices of a few nodes many times.
func TestUnusedDeviceSpecsAreDropped(t *testing.T) {
	s := NewState()
	for i := range 5 * leastDeviceSpecs {
		n := Node{Name: fmt.Sprint(i % 10), Devices: []Device{{DeviceSpec: &DeviceSpec{Link: fmt.Sprint(i)}}, {DeviceSpec: &DeviceSpec{Link: "same"}}}}
		if err := s.Apply(NodePut{Node: n}); err != nil {
			t.Fatal(err)
		}
		if known := len(s.fleet.specs.shared); known > leastDeviceSpecs {
			t.Fatalf("%d records are kept for the devices of 10 nodes", known)
		}
	}
	same := s.Node("0").Devices[1].DeviceSpec
	for _, n := range s.Nodes() {
		if n.Devices[1].DeviceSpec != same {
			t.Errorf("node %s has a record of its own for a device that is equal to others", n.Name)
		}
	}
}

// TestDeviceWithoutSpec: a device of which nothing is reported is not a mistake.
func TestDeviceWithoutSpec(t *testing.T) {
	c, err := Decode([]byte(`{"kind":"NodePut","node":{"name":"n","devices":[{},{"uuid":"u"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []Change{c, NodePut{Node: Node{Name: "m", Devices: make([]Device, 2)}}} {
		s := NewState()
		if err := s.Apply(change); err != nil {
			t.Fatal(err)
		}
		for _, d := range s.Nodes()[0].Devices {
			if d.Resource != DefaultDeviceResource {
				t.Errorf("the resource is %q", d.Resource)
			}
		}
	}
	if b, err := json.Marshal(Device{}); err != nil || string(b) != "{}" {
		t.Errorf("%s, %v", b, err)
	}
}
