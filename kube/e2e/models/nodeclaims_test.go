package models

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/testcluster"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const instanceType = "Standard_NC24ads_A100_v4"

// typedModel has the name, the number of replicas, and how much memory a replica needs.
const typedModel = `apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  backend: vllm
  source: {repository: example/m}
  memory: {total: %s}
  placement: {unit: Node, instanceType: Standard_NC24ads_A100_v4}
`

const onOneNode, onTwoNodes = "40Gi", "100Gi"

// TestNodeClaims runs models with an instance type with a stand-in for the provisioner.
func TestNodeClaims(t *testing.T) {
	w := newWorld(t)
	flags := []string{"--webhook-mode", "off", "--leader-elect=false"}
	w.startScheduler("--leader-elect=false")
	controller := w.startController(flags...)
	run := func(name string, f func(*testing.T)) {
		t.Run(name, func(t *testing.T) {
			outer := w.TB
			w.TB = t
			defer func() { w.TB = outer }()
			f(t)
		})
	}
	run("without Karpenter", func(t *testing.T) { w.withoutKarpenter() })
	w.Install("testdata/nodeclaims.yaml")
	run("without a node class", func(t *testing.T) { w.withoutNodeClass() })
	controller.Kill()
	flags = append(flags, "--node-class", "karpenter.azure.com/AKSNodeClass/default")
	controller = w.startController(flags...)
	p := w.startProvisioner()
	run("late nodes", func(t *testing.T) { p.lateNodes() })
	run("failures", func(t *testing.T) { p.failures() })
	run("too many", func(t *testing.T) { p.tooMany() })
	run("two models", func(t *testing.T) { p.twoModels() })
	run("fewer replicas", func(t *testing.T) { p.fewerReplicas() })
	run("no instance type", func(t *testing.T) { p.noInstanceType() })
	run("at rest", func(t *testing.T) { p.atRest() })
	run("deleted", func(t *testing.T) { p.deleted() })
	controller.Kill()
	run("killed", func(t *testing.T) { p.killed(flags) })
}

// claimed returns the condition NodesClaimed of a model.
func (w *world) claimed(name string) string {
	w.Helper()
	return condition(w.model(name), "NodesClaimed")
}

// awaitClaimed waits until the condition NodesClaimed begins with the text.
func (w *world) awaitClaimed(name, want string) string {
	w.Helper()
	var got string
	w.Eventually(func() string {
		if got = w.claimed(name); !strings.HasPrefix(got, want) {
			return fmt.Sprintf("NodesClaimed of %s: %s, want %s", name, got, want)
		}
		return ""
	})
	return got
}

// awaitReady waits until so many replicas of a model are ready.
func (w *world) awaitReady(name string, replicas int32) {
	w.Helper()
	w.Eventually(func() string {
		m := w.model(name)
		if m.Status.ReadyReplicas == replicas && m.Status.CurrentReplicas == replicas {
			return ""
		}
		return fmt.Sprintf("%d of %d replicas of %s are ready: %s; %s", m.Status.ReadyReplicas, m.Status.CurrentReplicas, name, condition(m, "NodesClaimed"), condition(m, "Placed"))
	})
}

// awaitClaims waits until a model has so many NodeClaims that are not being deleted, and checks how
// many were ever created and existed at once.
func (p *provisioner) awaitClaims(model string, want, ever, most int) {
	p.Helper()
	p.Eventually(func() string {
		if _, _, live := p.figures("default_" + model); len(live) != want {
			return fmt.Sprintf("%s has the NodeClaims %v, want %d", model, live, want)
		}
		return ""
	})
	gotEver, gotMost, live := p.figures("default_" + model)
	p.Logf("%s: %d NodeClaims were created, %d existed at once, %d exist", model, gotEver, gotMost, len(live))
	if gotEver != ever || gotMost > most {
		p.Errorf("%s: %d NodeClaims were created, want %d; %d existed at once, at most %d are allowed", model, gotEver, ever, gotMost, most)
	}
}

func (w *world) scale(name string, replicas int) {
	w.Helper()
	w.Kubectl("", "scale", "model", name, fmt.Sprint("--replicas=", replicas))
}

// awaitGone waits until a model is gone.
func (w *world) awaitGone(name string) {
	w.Helper()
	w.Eventually(func() string {
		_, err := w.dynamic.Resource(modelResource).Namespace(namespace).Get(w.Ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		return fmt.Sprintf("model %s exists: %v", name, err)
	})
}

// withoutKarpenter checks the condition, and that nodes that exist are used.
func (w *world) withoutKarpenter() {
	w.Helper()
	w.Apply(fmt.Sprintf(typedModel, "byo", 1, onOneNode))
	w.Log(w.awaitClaimed("byo", "False KarpenterMissing: 1 node of "+instanceType+", 1 for each replica; 0 ready. The cluster has no NodeClaims"))
	node := testcluster.Node("byo-node", 1, testcluster.Product{Name: "NVIDIA-A100-80GB-PCIe", Memory: 81920})
	node.Labels["node.kubernetes.io/instance-type"] = instanceType
	w.AddNodes(node)
	w.awaitReady("byo", 1)
	w.awaitClaimed("byo", "True NodesReady: 1 node of")
	w.Kubectl("", "delete", "model", "byo")
	w.awaitGone("byo")
	if err := w.Client.CoreV1().Nodes().Delete(w.Ctx, "byo-node", metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

// withoutNodeClass checks that the kind is found while the controller runs.
func (w *world) withoutNodeClass() {
	w.Helper()
	w.Apply(fmt.Sprintf(typedModel, "classless", 1, onOneNode))
	w.Log(w.awaitClaimed("classless", "False NodeClassMissing: "))
	if m := w.model("classless"); len(m.Finalizers) > 0 {
		w.Errorf("the model has the finalizers %v", m.Finalizers)
	}
	w.Kubectl("", "delete", "model", "classless")
	w.awaitGone("classless")
}

// lateNodes lets nodes join late, and their devices later. Each replica takes two nodes.
func (p *provisioner) lateNodes() {
	p.Helper()
	p.set(3*time.Second, "default_late", 0)
	p.Apply(fmt.Sprintf(typedModel, "late", 2, onTwoNodes))
	p.Log(p.awaitClaimed("late", "False WaitingForNodes: 4 nodes of "+instanceType+", 2 for each replica; 0 ready, 4 claimed (4 not launched)"))
	p.Log(p.awaitClaimed("late", "False WaitingForNodes: 4 nodes of "+instanceType+", 2 for each replica; 0 ready, 4 claimed (4 launched)"))
	p.awaitReady("late", 2)
	p.Log(p.awaitClaimed("late", "True NodesReady: 4 nodes of "+instanceType+", 2 for each replica; 4 ready."))
	p.awaitClaims("late", 4, 4, 4)
	if m := p.model("late"); !slices.Contains(m.Finalizers, "berth.dev/model") {
		p.Errorf("the model has the finalizers %v", m.Finalizers)
	}
}

// failures rejects five NodeClaims: two and two of the first rounds, and one of the third.
func (p *provisioner) failures() {
	p.Helper()
	p.set(200*time.Millisecond, "default_failing", 5)
	begin := time.Now()
	p.Apply(fmt.Sprintf(typedModel, "failing", 2, onOneNode))
	p.Log(p.awaitClaimed("failing", "False ProvisionerFailed: 2 nodes of "+instanceType+", 1 for each replica; 0 ready. NodeClaim failing-"))
	p.awaitReady("failing", 2)
	p.awaitClaimed("failing", "True NodesReady")
	p.awaitClaims("failing", 2, 7, 2)
	p.Logf("the replicas were ready after %s", time.Since(begin).Round(time.Second))
	if took := time.Since(begin); took < 15*time.Second {
		p.Errorf("the NodeClaims were created again within %s", took)
	}
}

// tooMany creates NodeClaims by hand: some without a node, and some whose nodes have joined.
func (p *provisioner) tooMany() {
	p.Helper()
	p.set(0, "default_extra", 0)
	p.Apply(fmt.Sprintf(typedModel, "extra", 1, onOneNode))
	p.awaitReady("extra", 1)
	byHand := `apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: by-hand-%d, labels: {berth.dev/model: default_extra, karpenter.sh/nodepool: berth}}
spec:
  nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [Standard_NC24ads_A100_v4]}
---
`
	p.Apply(fmt.Sprintf(byHand+byHand+byHand, 1, 2, 3))
	p.awaitClaims("extra", 1, 4, 4)
	_, _, live := p.figures("default_extra")
	if strings.HasPrefix(live[0], "by-hand") {
		p.Errorf("%s is left", live[0])
	}
	p.awaitReady("extra", 1)
	p.noNodesOf("by-hand")
}

// noNodesOf waits until no node has a name with the text.
func (p *provisioner) noNodesOf(text string) {
	p.Helper()
	p.Eventually(func() string {
		list, err := p.Client.CoreV1().Nodes().List(p.Ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error()
		}
		for _, n := range list.Items {
			if strings.Contains(n.Name, text) {
				return "node " + n.Name + " exists"
			}
		}
		return ""
	})
}

// twoModels creates two models of the same instance type at once: each NodeClaim is created once,
// whichever replica is on its node.
func (p *provisioner) twoModels() {
	p.Helper()
	p.set(500*time.Millisecond, "", 0)
	p.Apply(fmt.Sprintf(typedModel+"---\n"+typedModel, "twin-a", 2, onOneNode, "twin-b", 3, onOneNode))
	p.awaitReady("twin-a", 2)
	p.awaitReady("twin-b", 3)
	p.awaitClaims("twin-a", 2, 2, 2)
	p.awaitClaims("twin-b", 3, 3, 3)
	p.Kubectl("", "delete", "model", "twin-a", "twin-b")
	p.awaitGone("twin-a")
	p.awaitGone("twin-b")
	p.noNodesOf("twin")
}

// fewerReplicas removes replicas: their NodeClaims are deleted when their pods are gone.
func (p *provisioner) fewerReplicas() {
	p.Helper()
	p.set(0, "default_fewer", 0)
	p.Apply(fmt.Sprintf(typedModel, "fewer", 3, onOneNode))
	p.awaitReady("fewer", 3)
	used := p.nodesOf("fewer")
	p.scale("fewer", 1)
	p.awaitReady("fewer", 1)
	p.awaitClaims("fewer", 1, 3, 3)
	left := p.nodesOf("fewer")
	if len(left) != 1 || !slices.Contains(used, left[0]) {
		p.Errorf("the replica that is left is on %v, and was on one of %v", left, used)
	}
	p.scale("fewer", 0)
	p.awaitClaims("fewer", 0, 3, 3)
	p.noNodesOf("fewer")
	p.scale("fewer", 2)
	p.awaitReady("fewer", 2)
	p.awaitClaims("fewer", 2, 5, 3)
}

// noInstanceType removes the instance type of a model: its NodeClaims are removed when no replica
// uses their nodes, and then the finalizer.
func (p *provisioner) noInstanceType() {
	p.Helper()
	p.scale("fewer", 1)
	p.awaitClaims("fewer", 1, 5, 3)
	p.Kubectl("", "patch", "model", "fewer", "--type=merge", "-p", `{"spec":{"replicas":0,"placement":{"instanceType":null}}}`)
	p.awaitClaims("fewer", 0, 5, 3)
	p.Eventually(func() string {
		m := p.model("fewer")
		if len(m.Finalizers) > 0 || !strings.HasPrefix(condition(m, "NodesClaimed"), "no condition") {
			return fmt.Sprintf("finalizers %v, %s", m.Finalizers, condition(m, "NodesClaimed"))
		}
		return ""
	})
}

// atRest checks that berth-controller writes nothing while nothing changes.
func (p *provisioner) atRest() {
	p.Helper()
	before := -1
	p.Eventually(func() string { // the last changes have been written
		was := before
		if before = p.requestsOf(controllerUser).writes(); before == was {
			return ""
		}
		time.Sleep(2 * time.Second)
		return "objects change"
	})
	time.Sleep(20 * time.Second)
	if now := p.requestsOf(controllerUser).writes(); now != before {
		p.Errorf("%d requests changed something while nothing changed", now-before)
	}
}

// deleted deletes models: one that runs, and one that waits for nodes.
func (p *provisioner) deleted() {
	p.Helper()
	p.set(time.Hour, "default_waits", 0)
	p.Apply(fmt.Sprintf(typedModel, "waits", 3, onOneNode))
	p.awaitClaimed("waits", "False WaitingForNodes: 3 nodes of "+instanceType+", 1 for each replica; 0 ready, 3 claimed (3 not launched)")
	names := []string{"late", "failing", "extra", "waits", "fewer"}
	p.Kubectl("", append([]string{"delete", "model", "--timeout=60s"}, names...)...)
	for _, name := range names {
		p.awaitGone(name)
		if _, _, live := p.figures("default_" + name); len(live) > 0 {
			p.Errorf("model %s is gone, and its NodeClaims %v are not being deleted", name, live)
		}
	}
	p.noNodesOf("node-")
}

// killed kills the controller again and again while it creates NodeClaims.
func (p *provisioner) killed(flags []string) {
	p.Helper()
	const kills, replicas = 20, 40
	p.set(100*time.Millisecond, "default_killed", 0)
	p.Apply(fmt.Sprintf(typedModel, "killed", replicas, onOneNode))
	random := rand.New(rand.NewPCG(16, 5))
	killedEarly := 0
	for range kills {
		// Few requests per second, so that the process is killed between two creations.
		c := p.startController(append([]string{"--kube-api-qps", "5", "--kube-api-burst", "1"}, flags...)...)
		before, _, _ := p.figures("default_killed")
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if now, _, _ := p.figures("default_killed"); now > before || now == replicas {
				break
			}
		}
		time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		c.Kill()
		if now, _, _ := p.figures("default_killed"); now < replicas {
			killedEarly++
		}
	}
	p.Logf("%d of %d processes were killed before all NodeClaims existed", killedEarly, kills)
	p.startController(flags...)
	p.awaitReady("killed", replicas)
	p.awaitClaims("killed", replicas, replicas, replicas)
	p.Kubectl("", "delete", "model", "killed", "--timeout=60s")
	p.awaitClaims("killed", 0, replicas, replicas)
}
