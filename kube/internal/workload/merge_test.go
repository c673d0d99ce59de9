package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// deploymentWith returns the pods of a model with the template.
func deploymentWith(t *testing.T, spec, template string) (*corev1.PodTemplateSpec, error) {
	t.Helper()
	o := modelOf(t, "source: {preset: llama-3.1-8b}\n"+spec+"\ntemplate:\n  "+strings.ReplaceAll(strings.TrimSpace(template), "\n", "\n  "))
	d, err := options.Deployment(replicasOf(t, o, groupsOf(t, testNodes), true, anyForm), 1)
	if err != nil {
		return nil, err
	}
	return &d.Spec.Template, nil
}

// What a template adds is in the pods, beside what Berth sets.
func TestTemplate(t *testing.T) {
	plain, err := deploymentWith(t, "", "{}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := deploymentWith(t, "", `
metadata:
  labels: {team: search}
  annotations: {example.com/note: x}
spec:
  priorityClassName: high
  serviceAccountName: models
  runtimeClassName: nvidia
  hostIPC: true
  securityContext: {fsGroup: 1000}
  terminationGracePeriodSeconds: 120
  initContainers: [{name: fetch, image: example.com/fetch:1, resources: {requests: {cpu: 1}}}]
  volumes:
  - {name: scratch, emptyDir: {}}
  - {name: shm, emptyDir: {sizeLimit: 16Gi}}
  containers:
  - name: server
    env: [{name: NCCL_DEBUG, value: INFO}]
    volumeMounts: [{name: scratch, mountPath: /scratch}]
    resources: {limits: {cpu: 8, memory: 64Gi}}
    securityContext: {capabilities: {add: [IPC_LOCK]}}
    readinessProbe: {periodSeconds: 30}
  - {name: metrics, image: example.com/metrics:1}
`)
	if err != nil {
		t.Fatal(err)
	}
	want := plain.DeepCopy()
	want.Labels["team"], want.Annotations["example.com/note"] = "search", "x"
	s := &want.Spec
	s.PriorityClassName, s.ServiceAccountName, s.RuntimeClassName, s.HostIPC = "high", "models", new("nvidia"), true
	s.SecurityContext.FSGroup, s.TerminationGracePeriodSeconds = new(int64(1000)), new(int64(120))
	if err := yaml.Unmarshal([]byte("[{name: fetch, image: example.com/fetch:1, resources: {requests: {cpu: 1}}}]"), &s.InitContainers); err != nil {
		t.Fatal(err)
	}
	var c corev1.Container
	if err := yaml.Unmarshal([]byte("{resources: {limits: {cpu: 8, memory: 64Gi}, requests: {cpu: 0}}}"), &c); err != nil {
		t.Fatal(err)
	}
	server := &s.Containers[0]
	server.Env = append(server.Env, corev1.EnvVar{Name: "NCCL_DEBUG", Value: "INFO"})
	server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	for k, v := range c.Resources.Limits {
		server.Resources.Limits[k] = v
	}
	server.Resources.Requests["cpu"] = c.Resources.Requests["cpu"]
	server.SecurityContext.Capabilities.Add = []corev1.Capability{"IPC_LOCK"}
	server.ReadinessProbe.PeriodSeconds = 30
	s.Containers = append(s.Containers, corev1.Container{Name: "metrics", Image: "example.com/metrics:1"})
	s.Volumes[0].EmptyDir.SizeLimit = new(resource.MustParse("16Gi"))
	s.Volumes = append(s.Volumes, corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	if diff := cmp.Diff(sorted(t, want), sorted(t, got)); diff != "" {
		t.Error(diff)
	}
}

// sorted returns the template as YAML. Lists that are merged by name are sorted.
func sorted(t *testing.T, o *corev1.PodTemplateSpec) string {
	t.Helper()
	s := &o.Spec
	slices.SortFunc(s.Containers, func(a, b corev1.Container) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })
	for i := range s.Containers {
		c := &s.Containers[i]
		slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.Name, b.Name) })
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Of what Kubernetes allows one kind of, that of the template replaces that of Berth. The same kind
// is merged.
func TestReplaced(t *testing.T) {
	got, err := deploymentWith(t, "server: {cache: {claim: models}, tokenSecret: {name: hub}}", `
spec:
  volumes:
  - {name: shm, hostPath: {path: /dev/shm}}
  - {name: models, persistentVolumeClaim: {claimName: own, readOnly: true}}
  containers:
  - name: server
    env: [{name: HF_TOKEN, value: x}, {name: HF_HOME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    startupProbe: {httpGet: {path: /started}}
    readinessProbe: {tcpSocket: {port: http}, periodSeconds: 30}
    livenessProbe: {exec: {command: [alive]}}
`)
	if err != nil {
		t.Fatal(err)
	}
	var want corev1.PodSpec
	if err := yaml.Unmarshal([]byte(`
volumes:
- {name: shm, hostPath: {path: /dev/shm}}
- {name: models, persistentVolumeClaim: {claimName: own, readOnly: true}}
containers:
- env: [{name: HF_TOKEN, value: x}, {name: HF_HOME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
  startupProbe: {httpGet: {path: /started, port: http}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 360}
  readinessProbe: {tcpSocket: {port: http}, periodSeconds: 30, timeoutSeconds: 5, failureThreshold: 3}
  livenessProbe: {exec: {command: [alive]}, periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 18}
`), &want); err != nil {
		t.Fatal(err)
	}
	s := &got.Spec
	c := &s.Containers[0]
	slices.SortFunc(s.Volumes, func(a, b corev1.Volume) int { return strings.Compare(b.Name, a.Name) })
	for _, e := range want.Containers[0].Env {
		if !slices.ContainsFunc(c.Env, func(x corev1.EnvVar) bool { return cmp.Equal(x, e) }) {
			t.Errorf("%v is not in %v", e, c.Env)
		}
	}
	for name, p := range probesOf(&want.Containers[0]) {
		if diff := cmp.Diff(p, probesOf(c)[name]); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(want.Volumes, s.Volumes); diff != "" {
		t.Error(diff)
	}
}

// Probes of the template are those of pods that answer requests. Workers do not listen at the port.
func TestProbesOfWorkers(t *testing.T) {
	o := modelOf(t, "{source: {preset: llama-3.3-70b}, context: 4096, placement: {distributed: true}, template: {spec: {containers: [{name: server, livenessProbe: {tcpSocket: {port: http}}, readinessProbe: {periodSeconds: 30}}]}}}")
	set, err := options.LeaderWorkerSet(replicasOf(t, o, groupsOf(t, testNodes), true, onSeveralPods), "chat-r0")
	if err != nil {
		t.Fatal(err)
	}
	templates := templatesOf(t, set)
	leader, worker := &templates[0].Spec.Containers[0], &templates[1].Spec.Containers[0]
	if leader.LivenessProbe.TCPSocket == nil || leader.LivenessProbe.HTTPGet != nil || leader.ReadinessProbe.HTTPGet == nil || leader.ReadinessProbe.PeriodSeconds != 30 {
		t.Errorf("leader: %v, %v", leader.LivenessProbe, leader.ReadinessProbe)
	}
	for name, p := range probesOf(worker) {
		if p != nil {
			t.Errorf("a worker has a %s: %v", name, p)
		}
	}
}

// A server that Berth does not know has no probes, so that a probe of the template needs a handler.
func TestProbeWithoutHandler(t *testing.T) {
	spec := "{backend: custom, memory: {device: 4Gi}, server: {image: example.com/own:1}, template: {spec: {containers: [{name: server, readinessProbe: {%s}}]}}}"
	for fields, want := range map[string]string{
		"periodSeconds: 30": "spec.template.spec.containers[0].readinessProbe: Berth sets no such probe, so that it needs a handler; add httpGet, tcpSocket, grpc or exec",
		"periodSeconds: 30, httpGet: {path: /ready, port: http}": "",
	} {
		got := ""
		if _, err := options.Deployment(replicasOf(t, modelOf(t, fmt.Sprintf(spec, fields)), groupsOf(t, testNodes), true, anyForm), 1); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s\nwant %s", fields, got, want)
		}
	}
}

// A variable of the template may contain those of Berth, which must be before it, and variables of
// Berth keep their order.
func TestOrderOfVariables(t *testing.T) {
	got, err := deploymentWith(t, "", "{spec: {containers: [{name: server, env: [{name: A, value: $(BERTH_MODEL)}, {name: B, value: $(A)}]}]}}")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range got.Spec.Containers[0].Env {
		names = append(names, e.Name)
	}
	if names[0] != "BERTH_MODEL" || slices.Index(names, "A") < slices.Index(names, "BERTH_NODES") || slices.Index(names, "B") < slices.Index(names, "A") {
		t.Error(names)
	}
}

// A template must not change what Berth decides.
func TestTemplateProblems(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"nodeSelector":   {"{spec: {nodeSelector: {a: b}}}", "spec.template.spec.nodeSelector: Berth would choose the devices without it; write placement.nodeSelector of the model"},
		"tolerations":    {"{spec: {tolerations: [{operator: Exists}]}}", "spec.template.spec.tolerations: Berth would choose the devices without them; write tolerations of the model"},
		"affinity":       {"{spec: {affinity: {podAntiAffinity: {}}}}", "spec.template.spec.affinity: Berth would choose the devices without it; write placement.nodeSelector of the model"},
		"spread":         {"{spec: {topologySpreadConstraints: []}}", "spec.template.spec.topologySpreadConstraints: Berth would choose the devices without them; write placement.strategy of the model"},
		"gates":          {"{spec: {schedulingGates: [{name: a}]}}", "spec.template.spec.schedulingGates: Berth places the pods of a model at once; set replicas to 0 to stop it"},
		"claims":         {"{spec: {resourceClaims: [{name: a}]}}", "spec.template.spec.resourceClaims: Berth chooses the devices of a model; leave them out"},
		"restart":        {"{spec: {restartPolicy: Never}}", "spec.template.spec.restartPolicy: pods of a model are always restarted; leave it out"},
		"subdomain":      {"{spec: {subdomain: a}}", "spec.template.spec.subdomain: the pods of a replica find each other by their names; leave it out"},
		"host network":   {"{spec: {hostNetwork: true}}", "spec.template.spec.hostNetwork: two replicas on a node would have the same ports; write placement.unit: Node beside it"},
		"devices":        {"{spec: {containers: [{name: server, resources: {limits: {nvidia.com/gpu: 2}}}]}}", `spec.template.spec.containers[0].resources.limits["nvidia.com/gpu"]: devices and other extended resources are requested by the model itself, under placement and resources; leave it out`},
		"other devices":  {"{spec: {containers: [{name: x, image: img, resources: {requests: {amd.com/gpu: 1}}}]}}", `spec.template.spec.containers[0].resources.requests["amd.com/gpu"]: devices and other extended resources are requested by the model itself, under placement and resources; leave it out`},
		"requests":       {"{spec: {containers: [{name: server, resources: {requests: {cpu: 2}}}]}}", "spec.template.spec.containers[0].resources.requests: Berth would choose the devices without them; write resources of the model"},
		"image":          {"{spec: {containers: [{name: server, image: x}]}}", "spec.template.spec.containers[0].image: write server.image of the model"},
		"command":        {"{spec: {containers: [{name: server, command: []}]}}", "spec.template.spec.containers[0].command: write server.command of the model"},
		"variable":       {"{spec: {containers: [{name: server, env: [{name: BERTH_MODEL, value: x}]}]}}", "spec.template.spec.containers[0].env[0]: BERTH_MODEL is set by Berth, by LeaderWorkerSet or by the devices; leave it out"},
		"all devices":    {"{spec: {containers: [{name: x, image: img, env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]}]}}", "spec.template.spec.containers[0].env[0]: NVIDIA_VISIBLE_DEVICES is set by Berth, by LeaderWorkerSet or by the devices; leave it out"},
		"two sources":    {"{spec: {volumes: [{name: a, emptyDir: {}}, {name: b, emptyDir: {}, hostPath: {path: /b}}]}}", "spec.template.spec.volumes[1]: a volume has one source, and this one has emptyDir and hostPath; keep one"},
		"two handlers":   {"{spec: {containers: [{name: server, livenessProbe: {httpGet: {port: 1}, tcpSocket: {port: 1}}}]}}", "spec.template.spec.containers[0].livenessProbe: only one of httpGet and tcpSocket is allowed; keep one"},
		"no handler":     {"{spec: {initContainers: [{name: x, image: img, restartPolicy: Always, startupProbe: {periodSeconds: 1}}]}}", "spec.template.spec.initContainers[0].startupProbe: Berth sets no such probe, so that it needs a handler; add httpGet, tcpSocket, grpc or exec"},
		"two hooks":      {"{spec: {containers: [{name: x, image: img, lifecycle: {preStop: {exec: {command: [a]}, sleep: {seconds: 1}}}}]}}", "spec.template.spec.containers[0].lifecycle.preStop: only one of exec and sleep is allowed; keep one"},
		"two values":     {"{spec: {containers: [{name: server, env: [{name: A, value: x, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}]}}", "spec.template.spec.containers[0].env[0]: only one of value and valueFrom is allowed; keep one"},
		"two references": {"{spec: {containers: [{name: server, env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: a, key: b}}}]}]}}", "spec.template.spec.containers[0].env[0].valueFrom: only one of fieldRef and secretKeyRef is allowed; keep one"},
		"init container": {"{spec: {initContainers: [{name: server, image: x}]}}", "spec.template.spec.initContainers[0].name: the container of the server has this name; write another one"},
		"no name":        {"{spec: {containers: [{image: x}]}}", "spec.template.spec.containers[0].name: a container needs a name; the server is named server"},
		"label":          {"{metadata: {labels: {berth.dev/model: other}}}", `spec.template.metadata.labels["berth.dev/model"]: Berth sets it, or the controller that runs the pods; leave it out`},
		"annotation":     {"{metadata: {annotations: {controller.kubernetes.io/pod-deletion-cost: '1'}}}", `spec.template.metadata.annotations["controller.kubernetes.io/pod-deletion-cost"]: Berth sets it, or the controller that runs the pods; leave it out`},
		"LWS":            {"{metadata: {labels: {leaderworkerset.sigs.k8s.io/name: x}}}", `spec.template.metadata.labels["leaderworkerset.sigs.k8s.io/name"]: Berth sets it, or the controller that runs the pods; leave it out`},
		"finalizers":     {"{metadata: {finalizers: [a/b]}}", "spec.template.metadata.finalizers: only labels and annotations can be added to the pods"},
		"directive":      {"{spec: {containers: [{name: server, $patch: delete}]}}", `spec.template.spec.containers[0]["$patch"]: directives of patches are not allowed; the template adds to what Berth sets`},
		"replace":        {"{$patch: replace}", `spec.template["$patch"]: directives of patches are not allowed; the template adds to what Berth sets`},
		"no value":       {"{spec: {volumes: null}}", "spec.template.spec.volumes: it has no value, which would remove what Berth sets; leave it out"},
	}
	for name, tt := range tests {
		o := modelOf(t, "source: {preset: llama-3.1-8b}\ntemplate: "+tt.template)
		if err := CheckTemplate(o); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v\nwant %s", name, err, tt.want)
		}
		r := replicasOf(t, modelOf(t, "source: {preset: llama-3.1-8b}"), groupsOf(t, testNodes), true, anyForm)
		r.Model = o
		if _, err := options.Deployment(r, 1); err == nil {
			t.Errorf("%s: the Deployment is made", name)
		}
	}
	for _, fine := range []string{"placement: {unit: Node}\ntemplate: {spec: {hostNetwork: true}}", "template: {}"} {
		if err := CheckTemplate(modelOf(t, "source: {preset: llama-3.1-8b}\n"+fine)); err != nil {
			t.Error(err)
		}
	}
}

// Whatever a template is, it is merged or refused, and what Berth decides stays.
func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{`{"spec":{"containers":[{"name":"server"}]}}`, `{"spec":{"containers":[null]}}`, `{"spec":{"volumes":{}}}`, `[]`, `{"metadata":{"labels":{"a":1}}}`, `{"spec":{"containers":"x"}}`} {
		f.Add(seed)
	}
	r := replicasOf(f, modelOf(f, "source: {preset: llama-3.1-8b}"), groupsOf(f, testNodes), true, anyForm)
	plain, err := options.Deployment(r, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, template string) {
		own, m := *r, *r.Model
		own.Model = &m
		own.Model.Spec.Template = &runtime.RawExtension{Raw: []byte(template)}
		d, err := options.Deployment(&own, 1)
		if err != nil {
			return
		}
		was, is := &plain.Spec.Template, &d.Spec.Template
		i := slices.IndexFunc(is.Spec.Containers, func(c corev1.Container) bool { return c.Name == ContainerName })
		if diff := cmp.Diff(was.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"], is.Spec.Containers[i].Resources.Limits["nvidia.com/gpu"]); diff != "" {
			t.Errorf("%s: %s", template, diff)
		}
		for k, v := range was.Labels {
			if is.Labels[k] != v {
				t.Errorf("%s: the label %s is %s", template, k, is.Labels[k])
			}
		}
		if is.Spec.SchedulerName != was.Spec.SchedulerName || is.Spec.NodeName != "" || !cmp.Equal(is.Spec.NodeSelector, was.Spec.NodeSelector) || !cmp.Equal(is.Spec.Affinity, was.Spec.Affinity) {
			t.Errorf("%s: %+v", template, is.Spec)
		}
	})
}
