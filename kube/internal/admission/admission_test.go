package admission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/controller"
	"github.com/berth-project/berth/kube/internal/watch"
	"github.com/berth-project/berth/kube/internal/workload"
	"github.com/berth-project/berth/plugins/standard"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// newHandler returns the handler of a cluster with these nodes.
func newHandler(t testing.TB, nodes ...*corev1.Node) *Handler {
	t.Helper()
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	w := controller.NewWorld(controller.WorldOptions{
		Engine: e, SchedulerNames: []string{"berth-scheduler"}, Workload: workload.Options{SchedulerName: "berth-scheduler"}, AdmitOnly: true, Clock: func() time.Time { return time.Unix(0, 0) },
	})
	for _, n := range nodes {
		if errs := w.Take([]watch.Event{{Object: n}}); len(errs) > 0 {
			t.Fatal(errs)
		}
	}
	return &Handler{Cluster: w, Mode: Deny, Ready: func() bool { return true }, Log: slog.New(slog.DiscardHandler)}
}

// node returns a node as GPU Feature Discovery labels it.
func node(name, product string, gpus, mib int) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
			"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": fmt.Sprint(gpus), "nvidia.com/gpu.memory": fmt.Sprint(mib),
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("96"), "memory": resource.MustParse("1Ti"), "pods": resource.MustParse("110"), "nvidia.com/gpu": *resource.NewQuantity(int64(gpus), resource.DecimalSI)},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

// review returns a request about an object.
func review(operation, kind, subresource, object string) string {
	return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"group":"berth.dev","version":"v1alpha1","kind":%q},"operation":%q,"subResource":%q,"namespace":"ml","object":%s}}`, kind, operation, subresource, object)
}

func model(spec string) string { return `{"metadata":{"name":"chat"},"spec":` + spec + `}` }

// TestHandler sends requests as the API server does, and as it never would.
func TestHandler(t *testing.T) {
	const fits, large = `{"source":{"preset":"llama-3.1-8b"},"context":8192}`, `{"source":{"preset":"llama-3.3-70b"}}`
	for name, c := range map[string]struct {
		body, mode string
		notReady   bool
		want       string // the code of the answer, or whether it allows, and its message
	}{
		"a model that fits":                {body: review("CREATE", "Model", "", model(fits)), want: "true "},
		"a model that is large":            {body: review("CREATE", "Model", "", model(large)), want: "false No suitable node group found"},
		"a warning":                        {body: review("CREATE", "Model", "", model(large)), mode: Warn, want: "true No suitable node group found"},
		"before nodes are known":           {body: review("CREATE", "Model", "", model(large)), notReady: true, want: "true berth-controller has just started"},
		"a preset that is unknown":         {body: review("CREATE", "Model", "", model(`{"source":{"preset":"x"}}`)), want: "false "},
		"a field of another type":          {body: review("CREATE", "Model", "", model(`{"replicas":"many"}`)), want: "false the model cannot be read"},
		"no object":                        {body: review("CREATE", "Model", "", "null"), want: "false the model cannot be read"},
		"a status":                         {body: review("UPDATE", "Model", "status", model(large)), want: "true "},
		"a deletion":                       {body: review("DELETE", "Model", "", "null"), want: "true "},
		"another kind":                     {body: review("CREATE", "Pod", "", "{}"), want: "true "},
		"an update without the old object": {body: review("UPDATE", "Model", "", model(large)), want: "false No suitable node group found"},
		"nothing":                          {body: "", want: "400"},
		"no request":                       {body: "{}", want: "400"},
		"no JSON":                          {body: "<html>", want: "400"},
		"nested too deeply":                {body: review("CREATE", "Model", "", strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)), want: "400"},
		"too much":                         {body: review("CREATE", "Model", "", `"`+strings.Repeat("x", maxBody)+`"`), want: "400"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(t, node("l4", "NVIDIA-L4", 1, 23034))
			if c.mode != "" {
				h.Mode = c.mode
			}
			h.Ready = func() bool { return !c.notReady }
			r := httptest.NewRecorder()
			h.ServeHTTP(r, httptest.NewRequest(http.MethodPost, Path, bytes.NewReader([]byte(c.body))))
			have := fmt.Sprint(r.Code)
			if r.Code == http.StatusOK {
				var out admissionv1.AdmissionReview
				if err := json.Unmarshal(r.Body.Bytes(), &out); err != nil || out.Response == nil || out.Response.UID != "u" {
					t.Fatalf("%v: %s", err, r.Body)
				}
				have = fmt.Sprintf("%t %s", out.Response.Allowed, strings.Join(out.Response.Warnings, " "))
				if out.Response.Result != nil {
					have += out.Response.Result.Message
				}
			}
			if !strings.HasPrefix(have, c.want) {
				t.Errorf("%.300s, want %s", have, c.want)
			}
		})
	}
	r := httptest.NewRecorder()
	newHandler(t).ServeHTTP(r, httptest.NewRequest(http.MethodGet, Path, nil))
	if r.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", r.Code)
	}
}
