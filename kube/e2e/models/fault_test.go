package models

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/testcluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	controllerKills = flag.Int("controller-kills", 10, "how often TestControllerKilled kills berth-controller")
	manyModels      = flag.Int("many-models", 50, "how many models TestManyModels creates, of four replicas each")
	atRest          = flag.Duration("at-rest", 10*time.Second, "how long nothing may be written after all models are ready")
)

const packedModel = `apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  backend: vllm
  source: {repository: example/small}
  memory: {device: 10Gi}
  placement: {distributed: false}
`

// nodesModel is a model of which each replica is on two nodes.
const nodesModel = `apiVersion: berth.dev/v1alpha1
kind: Model
metadata: {name: %s, namespace: default}
spec:
  replicas: %d
  backend: vllm
  source: {repository: example/large}
  memory: {device: 30Gi}
  parallelism: {tensor: 4, pipeline: 2}
  placement: {distributed: true}
`

var lwsResource = schema.GroupVersionResource{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"}

// TestControllerKilled kills berth-controller at random while models are created, scaled and
// deleted. In the end every model has its replicas and no object is left over or doubled.
func TestControllerKilled(t *testing.T) {
	w := newWorld(t)
	for i := range 8 {
		w.AddNodes(testcluster.Node(fmt.Sprintf("a100-%d", i), 4, a100x40))
	}
	w.startScheduler("--leader-elect=false")
	random := rand.New(rand.NewPCG(3, 5))
	desired := map[string]int{} // by model
	step := func(i int) {
		name := fmt.Sprintf("m%d", random.IntN(5))
		template := packedModel
		if name == "m0" || name == "m1" {
			template = nodesModel
		}
		switch n := 1 + random.IntN(3); {
		case desired[name] > 0 && random.IntN(4) == 0:
			w.Kubectl("", "delete", "model", name, "--wait=false")
			delete(desired, name)
		case desired[name] > 0:
			w.Kubectl("", "scale", "model", name, fmt.Sprintf("--replicas=%d", n))
			desired[name] = n
		default:
			// A model of the same name may still be in deletion.
			w.Apply(fmt.Sprintf(template, name, n))
			desired[name] = n
		}
	}
	for i := range *controllerKills {
		c := w.startController("--webhook-mode", "off", "--leader-elect=false")
		for range 1 + random.IntN(2) {
			step(i)
			time.Sleep(time.Duration(random.IntN(400)) * time.Millisecond)
		}
		c.Kill()
	}
	w.startController("--webhook-mode", "off", "--leader-elect=false")
	w.Eventually(func() string { return w.complete(desired) })
	t.Logf("%d kills; %v", *controllerKills, desired)
}

// complete returns "" if each model has as many replicas as desired, and nothing else exists.
func (w *world) complete(desired map[string]int) string {
	w.Helper()
	have, pods, sizes := map[string]int{}, map[string]int{}, map[string]int{}
	deployments, err := w.Client.AppsV1().Deployments(namespace).List(w.Ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, d := range deployments.Items {
		owner := metav1.GetControllerOf(&d)
		if owner == nil {
			return "Deployment " + d.Name + " has no owner"
		}
		have[owner.Name] += int(*d.Spec.Replicas)
		sizes[owner.Name] += int(*d.Spec.Replicas)
	}
	sets, err := w.dynamic.Resource(lwsResource).Namespace(namespace).List(w.Ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	for _, s := range sets.Items {
		owner := metav1.GetControllerOf(&s)
		if owner == nil {
			return "LeaderWorkerSet " + s.GetName() + " has no owner"
		}
		have[owner.Name]++
		sizes[owner.Name] += 2
	}
	for name, p := range w.Pods() {
		model := p.Labels["berth.dev/model"]
		if model == "" {
			return "pod " + name + " belongs to no model"
		}
		if p.DeletionTimestamp != nil {
			return "pod " + name + " is being deleted"
		}
		pods[model]++
	}
	list, err := w.dynamic.Resource(modelResource).Namespace(namespace).List(w.Ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	if !maps.Equal(have, desired) || !maps.Equal(pods, sizes) || len(list.Items) != len(desired) {
		return fmt.Sprintf("%d models with replicas %v and pods %v, want replicas %v and pods %v\n%s", len(list.Items), have, pods, desired, sizes, w.state())
	}
	return ""
}

// TestManyModels creates many models, and counts the requests of berth-controller. When all is
// ready, it writes nothing.
func TestManyModels(t *testing.T) {
	w := newWorld(t)
	const replicas = 4
	nodes := *manyModels * replicas / 8
	var wg sync.WaitGroup
	for i := range nodes + 1 {
		wg.Go(func() { w.AddNodes(testcluster.Node(fmt.Sprintf("l4-%04d", i), 8, testcluster.L4)) })
		if i%32 == 31 {
			wg.Wait()
		}
	}
	wg.Wait()
	w.startScheduler("--leader-elect=false")
	w.startController("--webhook-mode", "off", "--leader-elect=false")
	begin := time.Now()
	var text strings.Builder
	for i := range *manyModels {
		fmt.Fprintf(&text, packedModel+"---\n", fmt.Sprintf("m%04d", i), replicas)
	}
	w.Apply(text.String())
	deadline := time.Now().Add(10 * time.Minute)
	for {
		ready := strings.Fields(w.Kubectl("", "get", "models", "-o", "jsonpath={.items[*].status.readyReplicas}"))
		done := len(ready) == *manyModels && !slices.ContainsFunc(ready, func(s string) bool { return s != fmt.Sprint(replicas) })
		if done {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d models have ready replicas", len(ready))
		}
		time.Sleep(time.Second)
	}
	took := time.Since(begin)
	time.Sleep(3 * time.Second) // the last status is written
	settled := w.requestsOf(controllerUser)
	time.Sleep(*atRest)
	after := w.requestsOf(controllerUser)
	t.Logf("%d models with %d replicas were ready after %s; %d requests that write, %.1f for each model: %v", *manyModels, *manyModels*replicas, took.Round(time.Second), settled.writes(), float64(settled.writes())/float64(*manyModels), settled.count)
	if n := after.writes() - settled.writes(); n > 0 {
		t.Errorf("%d requests that write in %s at rest: %v", n, *atRest, after.count)
	}
	for name, p := range w.Pods() {
		if p.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s is %s", name, p.Status.Phase)
		}
	}
}
