package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/modeltest"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// BenchmarkHandler measures how long the answer to a request about a new model takes by HTTPS, with
// 5,000 nodes of five kinds. The models are random: about half of them are denied.
func BenchmarkHandler(b *testing.B) {
	var nodes []*corev1.Node
	var names []string
	for i := range 5000 {
		k := []struct {
			product   string
			gpus, mib int
		}{{"NVIDIA-H100-80GB-HBM3", 8, 81559}, {"NVIDIA-A100-SXM4-40GB", 8, 40960}, {"NVIDIA-L4", 4, 23034}, {"NVIDIA-A10", 1, 23028}, {"NVIDIA-H200", 8, 143771}}[i%5]
		n := node(fmt.Sprintf("node-%04d", i), k.product, k.gpus, k.mib)
		n.Labels["pool"] = fmt.Sprint(i % 2)
		nodes, names = append(nodes, n), append(names, n.Name)
	}
	server := httptest.NewTLSServer(newHandler(b, nodes...))
	defer server.Close()
	client := server.Client()
	random := rand.New(rand.NewPCG(7, 11))
	var took []time.Duration
	denied := 0
	for b.Loop() {
		text, err := json.Marshal(modeltest.Random(random, "m", names))
		if err != nil {
			b.Fatal(err)
		}
		body := review("CREATE", "Model", "", string(text))
		begin := time.Now()
		r, err := client.Post(server.URL+Path, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			b.Fatal(err)
		}
		answer, err := io.ReadAll(r.Body)
		r.Body.Close()
		took = append(took, time.Since(begin))
		var out admissionv1.AdmissionReview
		if err != nil || r.StatusCode != http.StatusOK || json.Unmarshal(answer, &out) != nil {
			b.Fatalf("%d %v %s", r.StatusCode, err, answer)
		}
		if !out.Response.Allowed {
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
