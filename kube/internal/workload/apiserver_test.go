package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// testModels are models whose objects an API server must accept, by their names.
var testModels = map[string]struct {
	spec string
	form func(*cluster.Alternative) bool
}{
	"one-device":    {"{source: {preset: llama-3.1-8b}, context: 8192}", anyForm},
	"whole-node":    {"{source: {preset: llama-3.1-8b}, placement: {unit: Node}}", anyForm},
	"tensor":        {"{source: {preset: llama-3.3-70b}, context: 4096, parallelism: {tensor: 4}, placement: {distributed: false}}", anyForm},
	"several-nodes": {"{source: {preset: llama-3.3-70b}, context: 4096, placement: {distributed: true}}", onSeveralPods},
	"ray":           {"{source: {preset: llama-3.3-70b}, context: 4096, backendVersion: 0.11.0, placement: {distributed: true}}", onSeveralPods},
	"ranks":         {"{source: {preset: llama-3.1-8b}, context: 4096, parallelism: {tensor: 1, data: 3}, placement: {distributed: true}}", onSeveralPods},
	"sglang":        {"{backend: sglang, source: {preset: llama-3.1-8b}, context: 4096}", anyForm},
	"sglang-ranks":  {"{backend: sglang, source: {preset: llama-3.1-8b}, context: 4096, parallelism: {tensor: 1, data: 2}, placement: {distributed: true}}", onSeveralPods},
	"gguf":          {"{backend: llamacpp, source: {localPath: /srv/a.gguf}, memory: {device: 4Gi}}", anyForm},
	"custom":        {"{backend: custom, memory: {device: 4Gi}, server: {image: example.com/own:1, port: 80}}", anyForm},
	"everything": {`
source: {preset: llama-3.1-8b}
context: 4096
queue: team
priority: 5
preemptible: false
preemptionDelay: 10m
resources: {cpu: 4, memory: 32Gi}
tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
placement: {nodeSelector: {pool: gpu}}
server: {cache: {claim: models, mountPath: /data}, tokenSecret: {name: hub, key: hf}, imagePullSecrets: [a, b], args: [--seed, "1"]}`, anyForm},
	"template": {`
source: {preset: llama-3.3-70b}
context: 4096
placement: {distributed: true}
server: {cache: {claim: models}}
template:
  metadata: {labels: {team: search}, annotations: {example.com/note: x}}
  spec:
    serviceAccountName: default
    terminationGracePeriodSeconds: 120
    volumes: [{name: scratch, emptyDir: {}}, {name: shm, emptyDir: {sizeLimit: 16Gi}}, {name: models, nfs: {server: files, path: /models}}]
    initContainers: [{name: fetch, image: example.com/fetch:1}]
    containers:
    - name: server
      env: [{name: A, value: $(BERTH_LEADER)}, {name: HF_HOME, valueFrom: {configMapKeyRef: {name: paths, key: models}}}]
      startupProbe: {periodSeconds: 30}
      readinessProbe: {tcpSocket: {port: http}}
      livenessProbe: {exec: {command: [alive]}}
      volumeMounts: [{name: scratch, mountPath: /scratch}]
      resources: {limits: {cpu: 8, memory: 64Gi}}
    - {name: metrics, image: example.com/metrics:1}`, onSeveralPods},
	strings.Repeat("n", maxNodesName): {"{source: {preset: llama-3.3-70b}, context: 4096, placement: {distributed: true}}", onSeveralPods},
}

// TestAPIServer has an API server with the LeaderWorkerSet controller check all objects, and a
// namespace with the Pod Security standard "baseline" all pods.
func TestAPIServer(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a control plane")
	}
	c := testcluster.New(t, controlplane.ControllerManager, controlplane.LWS)
	client, err := dynamic.NewForConfig(c.CP.Config())
	if err != nil {
		t.Fatal(err)
	}
	for name, level := range map[string]string{"ai": "privileged", "baseline": "baseline", "restricted": "restricted"} {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}}}
		if _, err := c.Client.CoreV1().Namespaces().Create(c.Ctx, ns, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	c.Eventually(func() string { // service accounts are created after the namespaces
		for _, ns := range []string{"ai", "baseline", "restricted"} {
			if _, err := c.Client.CoreV1().ServiceAccounts(ns).Get(c.Ctx, "default", metav1.GetOptions{}); err != nil {
				return err.Error()
			}
		}
		return ""
	})
	groups := groupsOf(t, testNodes)
	for name, tt := range testModels {
		o := modelOf(t, tt.spec)
		o.Name = name
		r := replicasOf(t, o, groups, true, tt.form)
		object, err := objectOf(t, options, r)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, x := range []runtime.Object{object, Service(o)} {
			if err := apply(t, client, x, true); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for i, template := range templatesOf(t, object) {
			pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
			pod.Name = "pod"
			_, err := c.Client.CoreV1().Pods("baseline").Create(c.Ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if hostPath := name == "gguf"; (err != nil) != hostPath {
				t.Errorf("%s: pod %d in a namespace with the standard baseline: %v", name, i, err)
			}
			// The user of the image is all that keeps pods from the standard restricted.
			if len(pod.Spec.Containers) > 1 || name == "gguf" {
				continue
			}
			pod.Spec.SecurityContext.RunAsNonRoot = new(true)
			if _, err := c.Client.CoreV1().Pods("restricted").Create(c.Ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
				t.Errorf("%s: pod %d in a namespace with the standard restricted: %v", name, i, err)
			}
		}
	}
	t.Run("names", func(t *testing.T) { checkPodsOfSet(t, c, client, groups) })
}

// apply applies an object on the API server. With dry, it is only checked.
func apply(t *testing.T, client dynamic.Interface, o runtime.Object, dry bool) error {
	t.Helper()
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: value}
	unstructured.RemoveNestedField(value, "status")
	resource := map[string]schema.GroupVersionResource{
		"Deployment": appsv1.SchemeGroupVersion.WithResource("deployments"), "Service": corev1.SchemeGroupVersion.WithResource("services"),
		LWS.Kind: LWS.GroupVersion().WithResource("leaderworkersets"),
	}[u.GetKind()]
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	options := metav1.PatchOptions{FieldManager: Manager, FieldValidation: metav1.FieldValidationStrict}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	if _, err := client.Resource(resource).Namespace(u.GetNamespace()).Patch(t.Context(), u.GetName(), types.ApplyPatchType, text, options); err != nil {
		return fmt.Errorf("%s: %w", u.GetKind(), err)
	}
	return nil
}

// checkPodsOfSet creates the LeaderWorkerSet of a model with the longest name, and checks the names
// and addresses of its pods, which the commands contain.
func checkPodsOfSet(t *testing.T, c *testcluster.Cluster, client dynamic.Interface, groups []*cluster.Group) {
	o := modelOf(t, "{source: {localPath: /srv/a.gguf}, context: 512, memory: {total: 1500Gi}, backend: vllm, backendVersion: 0.11.0, placement: {distributed: true}}")
	o.Name = strings.Repeat("n", maxNodesName)
	r := replicasOf(t, o, groups, true, onSeveralPods)
	name := ReplicaName(o.Name, 9999)
	set, err := options.LeaderWorkerSet(r, name)
	if err != nil {
		t.Fatal(err)
	}
	set.SetOwnerReferences(nil) // the Model does not exist, and the set would be removed
	if err := apply(t, client, set, false); err != nil {
		t.Fatal(err)
	}
	size := len(r.Alternative.Tasks)
	testcluster.Eventually(t, func() string {
		pods, err := c.Client.CoreV1().Pods("ai").List(c.Ctx, metav1.ListOptions{LabelSelector: LabelReplica + "=" + name})
		if err != nil || len(pods.Items) != size {
			return fmt.Sprintf("%d pods of %d, %v", len(pods.Items), size, err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			env := map[string]string{}
			for _, e := range p.Spec.Containers[0].Env {
				env[e.Name] = e.Value
			}
			if p.Spec.Containers[0].Env[0].Name != "LWS_LEADER_ADDRESS" || env["LWS_LEADER_ADDRESS"] != name+"-0."+name+"-0.ai" {
				t.Errorf("%s: %v", p.Name, p.Spec.Containers[0].Env)
			}
			if p.Spec.Subdomain != name+"-0" || p.Spec.Hostname != p.Name {
				t.Errorf("%s: hostname %s, subdomain %s", p.Name, p.Spec.Hostname, p.Spec.Subdomain)
			}
			if index := env["LWS_WORKER_INDEX"]; index != "0" && p.Name != name+"-0-"+index {
				t.Errorf("%s has the index %s", p.Name, index)
			}
		}
		service, err := c.Client.CoreV1().Services("ai").Get(c.Ctx, name+"-0", metav1.GetOptions{})
		if err != nil || service.Spec.ClusterIP != "None" || !service.Spec.PublishNotReadyAddresses {
			return fmt.Sprintf("the headless Service: %v, %v", service.Spec, err)
		}
		return ""
	})
}
