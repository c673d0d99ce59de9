package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// twoProfiles is a configuration with two profiles. The first one is for most pods.
const twoProfiles = `apiVersion: berth.dev/v1alpha1
kind: SchedulerConfiguration
profiles:
- schedulerName: berth-pack
  plugins:
  - {name: NodeResourcesFitPlus, arguments: {resources: {nvidia.com/gpu: {type: Pack, weight: 1}}}}
- schedulerName: berth-spread
  plugins:
  - {name: NodeResourcesFitPlus, arguments: {resources: {nvidia.com/gpu: {type: Spread, weight: 1}}}}
`

// TestProfiles checks that one process places the pods of two scheduler names on one cluster,
// each with its own profile, also two pods of one gang; and that it does not touch a pod with
// another name.
func TestProfiles(t *testing.T) {
	w := newWorld(t)
	w.addNodes(4)
	file := filepath.Join(t.TempDir(), "profiles.yaml")
	if err := os.WriteFile(file, []byte(twoProfiles), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	w.scheduler("--config", file, "--address", address)
	named := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.SchedulerName = name } }
	pack, spread := named("berth-pack"), named("berth-spread")

	w.create(pod("unnamed", 1), pod("p1", 1, pack), pod("p2", 1, pack), pod("p3", 1, pack))
	w.eventually(func() string { return w.allBound("p") })
	nodes := func(names ...string) map[string]bool {
		out := map[string]bool{}
		for _, name := range names {
			out[w.pods()[name].Spec.NodeName] = true
		}
		return out
	}
	if n := nodes("p1", "p2", "p3"); len(n) != 1 {
		t.Errorf("the pods of berth-pack are on %v", n)
	}
	w.create(pod("s1", 1, spread), pod("s2", 1, spread), pod("s3", 1, spread))
	w.eventually(func() string { return w.allBound("s") })
	if n := nodes("s1", "s2", "s3", "p1"); len(n) != 4 {
		t.Errorf("the pods of berth-spread and the others are on %v", n)
	}
	w.create(pod("g1", 1, inGang("mixed", 2), pack), pod("g2", 1, inGang("mixed", 2), spread), pod("large", 9, spread))
	w.eventually(func() string { return w.allBound("g") })
	if n := w.pods(); n["g1"].Spec.NodeName != n["p1"].Spec.NodeName || n["g2"].Spec.NodeName == n["p1"].Spec.NodeName {
		t.Errorf("the gang is on %s and %s, and the pods of berth-pack on %s", n["g1"].Spec.NodeName, n["g2"].Spec.NodeName, n["p1"].Spec.NodeName)
	}
	w.eventually(func() string {
		response, err := http.Get("http://" + address + "/metrics")
		if err != nil {
			return err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		for _, line := range []string{
			`berth_schedule_attempts_total{profile="berth-pack",result="scheduled"} 4`,
			`berth_schedule_attempts_total{profile="berth-spread",result="scheduled"} 4`,
			`berth_schedule_attempts_total{profile="berth-spread",result="unschedulable"} 1`,
		} {
			if err != nil || !strings.Contains(string(text), line+"\n") {
				return fmt.Sprintf("no line %s in the metrics: %v", line, err)
			}
		}
		return ""
	})
	if p := w.pods()["unnamed"]; p.Spec.NodeName != "" || conditionText(p) != "no condition" {
		t.Errorf("the pod of another scheduler is on %q: %s", p.Spec.NodeName, conditionText(p))
	}
}
