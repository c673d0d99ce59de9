package intree

import (
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
)

// BenchmarkSessions measures sessions at 5,000 nodes, each with one or twenty pods that
// request one device and tolerate the taint of nodes with devices. The first 500 nodes have
// another taint. In "refused", only these nodes have free devices. In "own labels", no two
// pods have the same labels.
func BenchmarkSessions(b *testing.B) {
	for _, tt := range []struct {
		name              string
		pods              int
		refused, ownLabel bool
	}{
		{"placed", 1, false, false},
		{"placed, own labels", 1, false, true},
		{"refused", 1, true, false},
		{"20 refused, own labels", 20, true, true},
	} {
		b.Run(tt.name, func(b *testing.B) {
			w := benchmarkWorld(b, tt.refused)
			count := 0
			put := func() (jobs []string) {
				for range tt.pods {
					o := plain(fmt.Sprintf("p%d", count))
					o.Labels = map[string]string{"app": "train"}
					if tt.ownLabel {
						o.Labels["job"] = o.Name
					}
					o.Spec.Tolerations = []v1.Toleration{{Key: "nvidia.com/gpu", Operator: v1.TolerationOpExists}}
					jobs = append(jobs, w.jobOf(b, cluster.Need{Devices: 1}, o))
					count++
				}
				return jobs
			}
			session := func() engine.Outcome {
				w.now++
				s := w.engine.Open(w.state, engine.Options{Now: w.now})
				out, err := s.Run()
				if err == nil {
					err = s.Close()
				}
				if err != nil {
					b.Fatal(err)
				}
				return out
			}
			jobs := put()
			session()
			for b.Loop() {
				for _, job := range jobs {
					w.remove(b, job)
				}
				jobs = put()
				out := session()
				if placed := len(out.Decisions); placed != tt.pods && !tt.refused || placed != 0 && tt.refused {
					b.Fatalf("%+v", out)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sessions/s")
		})
	}
}

// benchmarkWorld returns a world with 5,000 nodes. If only the first 500 have devices, no pod
// of the benchmark is placed.
func benchmarkWorld(b *testing.B, onlyFirst bool) *world {
	w := newWorld(b)
	for i := range 5000 {
		o := node(fmt.Sprintf("n%04d", i), map[string]string{zoneLabel: fmt.Sprint("z", i%10)})
		o.Spec.Taints = []v1.Taint{{Key: "nvidia.com/gpu", Effect: v1.TaintEffectNoSchedule}}
		if i < 500 {
			o.Spec.Taints[0].Key = "team"
		}
		n := stateNode(o)
		for k := range 8 {
			if i < 500 || !onlyFirst {
				n.Devices = append(n.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "L4", Type: "cuda", Resource: "nvidia.com/gpu", Memory: 24 << 30}, UUID: fmt.Sprintf("%s-%d", o.Name, k)})
			}
		}
		w.apply(b, cluster.NodePut{Node: n})
		w.store.PutNode(o)
	}
	return w
}
