package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// TestServe checks the probes and the metrics.
func TestServe(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	w.scheduler("--address", address)
	w.create(pod("a", 1), pod("b", 9))
	w.eventually(func() string { return w.allBound("a") })
	get := func(path string) (int, string) {
		response, err := http.Get("http://" + address + path)
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return 0, err.Error()
		}
		return response.StatusCode, string(text)
	}
	for path, want := range map[string]string{
		"/livez": "ok\n", "/readyz": "ok\n", "/readyz?verbose": "[+]loop ok\n[+]decisions ok\n[+]caches ok\n[+]sessions ok\n",
	} {
		if code, text := get(path); code != http.StatusOK || text != want {
			t.Errorf("%s: %d %q, want %q", path, code, text, want)
		}
	}
	w.eventually(func() string {
		_, text := get("/metrics")
		for _, line := range []string{
			`berth_schedule_attempts_total{profile="berth-scheduler",result="scheduled"} 1`,
			`berth_schedule_attempts_total{profile="berth-scheduler",result="unschedulable"} 1`,
			`berth_pending_pods{queue="unschedulable"} 1`,
			`berth_requests_total{kind="binding",outcome="Done"} 1`,
			`berth_pod_scheduling_sli_duration_seconds_count 1`,
			`berth_leader 1`,
		} {
			if !strings.Contains(text, line+"\n") {
				return fmt.Sprintf("no line %s in the metrics", line)
			}
		}
		return ""
	})
}
