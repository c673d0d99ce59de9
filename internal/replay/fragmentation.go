package replay

import (
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/fragmentation"
)

// fragmentationOf returns a function that notes in a point how much of the devices is free and of no
// use to the workload of the trace.
func fragmentationOf(t *Trace) func(*Point, *cluster.State) {
	var counts []fragmentation.Demand
	for _, r := range t.requests() {
		counts = append(counts, fragmentation.Demand{Share: r.Count, CPU: r.CPU, Devices: r.Devices, Milli: cluster.Milli(r.Milli), Products: r.Products})
	}
	workload := fragmentation.Popular(counts)
	total := float64(max(1, t.Milli()))
	var room fragmentation.Node
	return func(p *Point, s *cluster.State) {
		sum := 0.0
		for _, n := range s.Nodes() {
			room.Read(n)
			sum += float64(workload.Of(&room)) / fragmentation.Unit
		}
		p.Fragmented = sum / total
	}
}
