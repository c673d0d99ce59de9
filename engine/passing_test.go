package engine_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/plugins/standard"
)

// TestPassing places and removes whole-node jobs while devices are taken and nodes change. Twin
// sessions compare the nodes that are kept with those that pass now.
func TestPassing(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	s := cluster.NewState()
	apply := func(c cluster.Change) {
		t.Helper()
		if err := s.Apply(c); err != nil {
			t.Fatal(err)
		}
	}
	put := func(i int, memory cluster.Bytes) {
		n := cluster.Node{Name: fmt.Sprintf("n%02d", i), Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 64_000}}}
		for d := range 4 {
			n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "P", Type: "cuda", Memory: memory}, UUID: fmt.Sprintf("%s-%d", n.Name, d)})
		}
		apply(cluster.NodePut{Node: n})
	}
	for i := range 40 {
		put(i, 80<<30)
	}
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	placed := 0
	for i := range 300 {
		j := cluster.Job{ID: fmt.Sprintf("job/%03d", i)}
		alt := cluster.Alternative{Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: &cluster.Shape{Need: cluster.Need{Devices: 1 + r.Intn(4)}}}}}
		if i%2 == 0 {
			alt.Tasks[0].Shape.Need = cluster.Need{WholeNode: true}
			alt.Whole = &cluster.WholeNodes{Replicas: 1, NodesPerReplica: 1, Memory: cluster.Bytes(100+100*r.Intn(3)) << 30}
		}
		j.Alternatives = []cluster.Alternative{alt}
		apply(cluster.JobPut{Job: j})
		switch r.Intn(12) {
		case 0:
			put(40+i%5, cluster.Bytes(20+20*r.Intn(3))<<30)
		case 1:
			put(r.Intn(40), 80<<30)
		}
		ssn := e.Open(s, engine.Options{Search: engine.Twin})
		out, err := ssn.Run()
		if err != nil {
			t.Fatal(err)
		}
		placed += len(out.Decisions)
		for range 2 {
			if k := s.Job(fmt.Sprintf("job/%03d", r.Intn(i+1))); k != nil {
				apply(cluster.JobGone{Job: k.ID})
			}
		}
	}
	if placed < 100 {
		t.Errorf("only %d tasks were placed", placed)
	}
}
