package models

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
)

var admissionNodes = flag.Int("admission-nodes", 5000, "how many nodes BenchmarkAdmission has")

// BenchmarkAdmission measures how long a request to create a model takes, with all that the API
// server does and the webhook at a large cluster. The models are random, and not stored.
func BenchmarkAdmission(b *testing.B) {
	w := newWorldWith(b) // nothing is created, so that no controllers are needed
	sorts := []struct {
		product testcluster.Product
		gpus    int
	}{{testcluster.H100, 8}, {a100x40, 8}, {testcluster.L4, 4}, {a10, 1}, {a100x40, 4}}
	var nodes []controlplane.Node
	var names []string
	for i := range *admissionNodes {
		s := sorts[i%len(sorts)]
		nodes = append(nodes, testcluster.Node(fmt.Sprintf("node-%05d", i), s.gpus, s.product, func(n *controlplane.Node) { n.Labels["pool"] = fmt.Sprint(i % 2) }))
		names = append(names, nodes[i].Name)
	}
	for part := range slices.Chunk(nodes, 500) {
		w.AddNodes(part...)
	}
	w.withWebhook("Fail", "--devices-enforced", "--leader-elect=false")
	random := rand.New(rand.NewPCG(7, 11))
	for range 20 { // connections are made
		_ = w.tryCreate(randomModel(random, "warm", names))
	}
	var took []time.Duration
	denied := 0
	for b.Loop() {
		m := randomModel(random, "m", names)
		begin := time.Now()
		err := w.tryCreate(m)
		took = append(took, time.Since(begin))
		if err != nil {
			denied++
		}
	}
	slices.Sort(took)
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	b.ReportMetric(milliseconds(took[len(took)/2]), "ms-p50")
	b.ReportMetric(milliseconds(took[len(took)*99/100]), "ms-p99")
	b.ReportMetric(milliseconds(took[len(took)-1]), "ms-max")
	b.ReportMetric(float64(denied)/float64(len(took)), "denied")
}
