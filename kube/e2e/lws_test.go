package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
)

const lws = `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve, namespace: default, annotations: {%s}}
spec:
  replicas: 2
  startupPolicy: %s
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec:
        schedulerName: berth-scheduler
        containers: [{name: main, image: image, resources: {limits: {nvidia.com/gpu: 8}}}]
`

// TestLeaderWorkerSet places the groups of a LeaderWorkerSet, whose pods the real controller
// creates, as gangs. The four nodes have room for one of the two groups.
func TestLeaderWorkerSet(t *testing.T) {
	w := newWorld(t, controlplane.ControllerManager, controlplane.LWS)
	w.addNodes(4)
	g := w.watchGangs(3)
	w.scheduler()
	w.apply(fmt.Sprintf(lws, "", "LeaderCreated"))
	pending := ""
	w.eventually(func() string {
		var text string
		pending, text = w.pendingGroup()
		return text
	})
	if n := g.most("serve/" + pending); n > 0 {
		t.Errorf("%d pods of group %s were bound although there was no room for the group", n, pending)
	}
	w.addNamed("more-0")
	w.addNamed("more-1")
	w.eventually(w.setAvailable)
	w.eventually(g.check)
	w.checkRoom()
	t.Logf("a group was bound in part for at most %s", g.longest)
}

// pendingGroup returns the index of the group that is unschedulable while the other is bound.
// text is not "" if that is not so.
func (w *world) pendingGroup() (index, text string) {
	bound, refused := map[string]int{}, map[string]int{}
	for name, p := range w.pods() {
		group := p.Labels["leaderworkerset.sigs.k8s.io/group-index"]
		switch condition := conditionText(p); {
		case p.Spec.NodeName != "":
			bound[group]++
		case strings.HasPrefix(condition, "False Unschedulable: "):
			refused[group]++
		default:
			text = fmt.Sprintf("pod %s: %s", name, condition)
		}
	}
	for index, n := range refused {
		if n == 3 && len(bound) == 1 && bound[index] == 0 && len(refused) == 1 {
			return index, text
		}
	}
	return "", fmt.Sprintf("%s, pods that are bound by group: %v, and unschedulable: %v; want 3 of each", text, bound, refused)
}

// setAvailable returns "" if the controller says that both groups are ready.
func (w *world) setAvailable() string {
	ready := w.kubectl("", "get", "leaderworkerset", "serve", "-o", "jsonpath={.status.readyReplicas}")
	if ready != "2" {
		return fmt.Sprintf("%q groups are ready, want 2: %s", ready, w.allBound("serve-"))
	}
	return ""
}

// TestLeaderFirst places LeaderWorkerSets whose workers are created only after the leader is
// ready, or on a node: the leader does not wait for workers that do not exist yet.
func TestLeaderFirst(t *testing.T) {
	t.Run("startup policy", func(t *testing.T) {
		w := newRacks(t)
		w.apply(fmt.Sprintf(lws, "", "LeaderReady"))
		w.eventually(w.setAvailable)
		w.checkRoom()
	})
	t.Run("exclusive placement", func(t *testing.T) {
		w := newRacks(t)
		w.apply(fmt.Sprintf(lws, "leaderworkerset.sigs.k8s.io/exclusive-topology: rack", "LeaderCreated"))
		w.eventually(w.setAvailable)
		w.checkRoom()
		w.checkRacks()
	})
}

// newRacks returns a cluster with the controller of LeaderWorkerSets, and with three nodes in
// each of the racks a and b. The name of a node begins with that of its rack.
func newRacks(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, controlplane.ControllerManager, controlplane.LWS)
	for i := range 3 {
		for _, rack := range []string{"a", "b"} {
			n := gpuNode(fmt.Sprintf("%s-%d", rack, i))
			n.Labels["rack"] = rack
			w.AddNodes(n)
		}
	}
	w.scheduler()
	return w
}

// checkRacks fails the test if the pods of a group are in different racks.
func (w *world) checkRacks() {
	w.Helper()
	racks := map[string]string{}
	for name, p := range w.pods() {
		group := p.Labels["leaderworkerset.sigs.k8s.io/group-index"]
		rack, _, _ := strings.Cut(p.Spec.NodeName, "-")
		if other := racks[group]; other != "" && other != rack {
			w.Errorf("pod %s is in rack %s, and others of its group are in rack %s", name, rack, other)
		}
		racks[group] = rack
	}
}
