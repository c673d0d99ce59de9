package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

const lws = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve, namespace: default}
spec:
  replicas: 2
  startupPolicy: LeaderCreated
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec:
        containers: [{name: main, image: image}]
`

// TestLeaderWorkerSet places each group of a LeaderWorkerSet as a gang. The definition is the
// real one; the pods are created by the test, with the labels that its controller sets.
func TestLeaderWorkerSet(t *testing.T) {
	w := newWorld(t)
	w.addNodes(4)
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/lws")
	list.Dir = "../../hack/kube"
	dir, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	w.install(filepath.Join(strings.TrimSpace(string(dir)), "config", "crd", "bases", "leaderworkerset.x-k8s.io_leaderworkersets.yaml"))
	w.apply(lws)
	g := w.watchGangs(3)
	w.scheduler()
	group := func(index int) {
		for i := range 3 {
			w.create(pod(fmt.Sprintf("serve-%d-%d", index, i), 8, func(p *corev1.Pod) {
				const prefix = "leaderworkerset.sigs.k8s.io/"
				p.Labels[prefix+"name"], p.Labels[prefix+"group-index"], p.Labels[prefix+"worker-index"] = "serve", fmt.Sprint(index), fmt.Sprint(i)
				p.Annotations[prefix+"size"] = "3"
			}))
		}
	}
	group(0)
	w.eventually(func() string { return w.allBound("serve-0-") })
	group(1) // one node is free, and the group needs three
	w.eventually(func() string {
		for i := range 3 {
			p := w.pods()[fmt.Sprintf("serve-1-%d", i)]
			if p.Spec.NodeName != "" {
				t.Fatalf("pod %s is bound although there is no room for its group", p.Name)
			}
			if text := conditionText(p); !strings.HasPrefix(text, "False Unschedulable: placed 0 of 2 needed in worker") {
				return p.Name + ": " + text
			}
		}
		return ""
	})
	if err := w.cp.AddNodes(w.ctx, gpuNode("more-0"), gpuNode("more-1")); err != nil {
		t.Fatal(err)
	}
	w.eventually(func() string { return w.allBound("serve-1-") })
	w.eventually(g.check)
	w.checkRoom()
}
