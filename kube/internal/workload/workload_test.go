package workload

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/feed"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the files in testdata")

// golden compares an object with a file.
func golden(t *testing.T, file string, o runtime.Object) {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (go test -update writes it):\n%s", file, diff)
	}
}

func TestDeployment(t *testing.T) {
	o := modelOf(t, `
source: {preset: llama-3.1-8b}
context: 8192
queue: team
preemptible: true
resources: {cpu: 4}
tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]
placement: {nodeSelector: {pool: gpu}, distributed: false}
server:
  cache: {claim: models}
  tokenSecret: {name: hub}
  imagePullSecrets: [registry]
`)
	o.Labels = map[string]string{"team": "search"}
	r := replicasOf(t, o, groupsOf(t, testNodes), true, anyForm)
	d, err := options.Deployment(r, 2)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "deployment.yaml", d)
	golden(t, "service.yaml", Service(o))
}

func TestLeaderWorkerSet(t *testing.T) {
	o := modelOf(t, "{source: {preset: llama-3.3-70b}, context: 4096, placement: {distributed: true}, server: {cache: {hostPath: /var/lib/models}}}")
	r := replicasOf(t, o, groupsOf(t, testNodes), true, func(a *cluster.Alternative) bool { return onSeveralPods(a) && a.Whole == nil })
	set, err := options.LeaderWorkerSet(r, ReplicaName(o.Name, 1))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "leaderworkerset.yaml", set)
}

// Ranks of SGLang are servers of their own, so that every pod answers requests, and one is
// restarted without the others.
func TestPodsThatServe(t *testing.T) {
	for spec, want := range map[string][]string{
		"{backend: sglang, source: {preset: llama-3.1-8b}, parallelism: {tensor: 1, data: 2}, placement: {distributed: true}}": {"true true None", "--model-path", "--model-path"},
		"{backend: vllm, source: {preset: llama-3.1-8b}, parallelism: {tensor: 1, data: 2}, placement: {distributed: true}}":   {"true  RecreateGroupOnPodRestart", "--data-parallel-size-local", "--headless"},
	} {
		r := replicasOf(t, modelOf(t, spec), groupsOf(t, testNodes), true, onSeveralPods)
		set, err := options.LeaderWorkerSet(r, "chat-r0")
		if err != nil {
			t.Fatal(err)
		}
		templates := templatesOf(t, set)
		restart := set.Object["spec"].(map[string]any)["leaderWorkerTemplate"].(map[string]any)["restartPolicy"].(string)
		if got := templates[0].Labels[LabelServes] + " " + templates[1].Labels[LabelServes] + " " + restart; got != want[0] {
			t.Errorf("%s: %s, want %s", spec, got, want[0])
		}
		for i, template := range templates {
			c := &template.Spec.Containers[0]
			if template.Spec.Affinity != nil {
				t.Errorf("%s: ranks must be on different nodes", spec)
			}
			if command := strings.Join(c.Command, " "); !strings.Contains(command, want[i+1]) {
				t.Errorf("%s: pod %d runs %s", spec, i, command)
			}
			if serves := template.Labels[LabelServes] != ""; serves != (c.ReadinessProbe != nil) || serves != (len(c.Ports) == 1) {
				t.Errorf("%s: pod %d serves: %v, %v, %v", spec, i, serves, c.ReadinessProbe, c.Ports)
			}
		}
	}
}

// A server that is divided by Berth sees the devices that were chosen, and requests none.
func TestDevicesEnforced(t *testing.T) {
	o := modelOf(t, "{source: {repository: example/small}, memory: {device: 4Gi}, placement: {distributed: false}, gpuMemoryUtilization: '0.3'}")
	enforced := Options{SchedulerName: "x", DevicesEnforced: true}
	d, err := enforced.Deployment(replicasOf(t, o, groupsOf(t, testNodes), false, anyForm), 1)
	if err != nil {
		t.Fatal(err)
	}
	c := &d.Spec.Template.Spec.Containers[0]
	if len(c.Resources.Limits) > 0 || !strings.Contains(strings.Join(c.Command, " "), "--gpu-memory-utilization 0.3") {
		t.Errorf("%v %v", c.Resources, c.Command)
	}
	last := c.Env[len(c.Env)-1]
	if last.Name != "NVIDIA_VISIBLE_DEVICES" || last.ValueFrom.FieldRef.FieldPath != "metadata.annotations['"+feed.AnnotationVisibleDevices+"']" {
		t.Errorf("%v", last)
	}
}

// The image depends on the devices.
func TestImages(t *testing.T) {
	groups := groupsOf(t, testNodes)
	for resource, want := range map[string]string{
		"nvidia.com/gpu": "vllm/vllm-openai:v0.27.1", "nvidia.com/mig-1g.10gb": "vllm/vllm-openai:v0.27.1", "amd.com/gpu": "vllm/vllm-openai-rocm:v0.27.1",
		"huawei.com/Ascend910": "", "gpu.intel.com/xe": "", "example.com/npu": "",
	} {
		r := replicasOf(t, modelOf(t, "source: {preset: llama-3.1-8b}"), groups, true, anyForm)
		r.Resource = resource
		image := ""
		if d, err := options.Deployment(r, 1); err == nil {
			image = d.Spec.Template.Spec.Containers[0].Image
		} else if want != "" {
			t.Error(err)
		}
		if image != want {
			t.Errorf("%s: %s, want %s", resource, image, want)
		}
	}
}

// A GGUF model of the nodes is mounted with its directory, because it may have several files.
func TestLocalPaths(t *testing.T) {
	for path, want := range map[string]string{"/srv/models/a-00001-of-00002.gguf": "/srv/models", "/srv/models/llama/": "/srv/models/llama"} {
		r := replicasOf(t, modelOf(t, "{source: {localPath: "+path+"}, memory: {device: 4Gi}, draft: {localPath: /srv/draft/}}"), groupsOf(t, testNodes), true, anyForm)
		if strings.HasSuffix(path, "/") {
			r.Model.Spec.Source.LocalPath = path
		}
		d, err := options.Deployment(r, 1)
		if err != nil {
			t.Fatal(err)
		}
		spec := &d.Spec.Template.Spec
		var got []string
		for i := range spec.Volumes[1:] {
			v, m := spec.Volumes[i+1], spec.Containers[0].VolumeMounts[i+1]
			if v.Name != m.Name || v.HostPath.Path != m.MountPath || !m.ReadOnly {
				t.Errorf("%v is mounted as %v", v, m)
			}
			got = append(got, m.MountPath)
		}
		if diff := cmp.Diff([]string{want, "/srv/draft"}, got); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
}

// A port below 1024 needs a capability.
func TestSecurity(t *testing.T) {
	for port, want := range map[int32][]corev1.Capability{80: {"NET_BIND_SERVICE"}, 8000: nil} {
		s := securityOf(port)
		if diff := cmp.Diff(want, s.Capabilities.Add); diff != "" || *s.AllowPrivilegeEscalation || s.RunAsNonRoot != nil {
			t.Errorf("%d: %s %v", port, diff, s)
		}
	}
}

// The Service selects the pods that answer requests, by labels of the templates and by the name of
// the port.
func TestService(t *testing.T) {
	o := modelOf(t, "{source: {preset: llama-3.3-70b}, context: 4096, placement: {distributed: true}}")
	groups := groupsOf(t, testNodes)
	s := Service(o)
	if s.Spec.Ports[0].TargetPort != intstr.FromString("http") {
		t.Errorf("%v", s.Spec.Ports)
	}
	for _, form := range []func(*cluster.Alternative) bool{func(a *cluster.Alternative) bool { return len(a.Tasks) == 1 }, onSeveralPods} {
		object, err := objectOf(t, options, replicasOf(t, o, groups, true, form))
		if err != nil {
			t.Fatal(err)
		}
		for i, template := range templatesOf(t, object) {
			selected := true
			for k, v := range s.Spec.Selector {
				selected = selected && template.Labels[k] == v
			}
			if selected != (i == 0) {
				t.Errorf("pod %d is selected: %v", i, selected)
			}
		}
	}
}

func TestExpressible(t *testing.T) {
	form := func(backend string, devices ...int) *cluster.Alternative {
		a := &cluster.Alternative{}
		for _, n := range devices {
			a.Tasks = append(a.Tasks, &cluster.Task{Shape: &cluster.Shape{Backend: backend, Need: cluster.Need{Devices: n}}})
		}
		return a
	}
	for name, tt := range map[string]struct {
		form *cluster.Alternative
		want bool
	}{
		"none": {form("vllm"), false}, "one": {form("sglang", 8), true}, "equal": {form("sglang", 8, 8), true},
		"more on the leader": {form("vllm", 8, 4), true}, "more on the leader of sglang": {form("sglang", 8, 4), false}, "different workers": {form("vllm", 8, 4, 2), false},
	} {
		if got := Expressible(tt.form); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestCheckName(t *testing.T) {
	tests := map[string]struct{ name, spec, want string }{
		"plain":           {"deepseek-r1", "", ""},
		"63":              {strings.Repeat("a", 63), "placement: {distributed: false}", ""},
		"64":              {strings.Repeat("a", 64), "placement: {distributed: false}", "metadata.name: the name has 64 characters; 63 are the most, because a Service and a label have its name"},
		"44":              {strings.Repeat("a", 44), "", ""},
		"45":              {strings.Repeat("a", 45), "", "metadata.name: the name has 45 characters; 44 are the most, because its replicas may be on several nodes, and labels of their pods contain the name; write a shorter one, or set placement.distributed to false"},
		"whole nodes":     {strings.Repeat("a", 45), "placement: {unit: Node}", "metadata.name: the name has 45 characters; 44 are the most, because its replicas may be on several nodes, and labels of their pods contain the name; write a shorter one"},
		"a dot":           {"llama-3.1", "", "metadata.name: llama-3.1 cannot be the name of a Service: use lower-case letters, digits and -, begin with a letter, and end with a letter or digit"},
		"a digit":         {"3b", "", "metadata.name: 3b cannot be the name of a Service: use lower-case letters, digits and -, begin with a letter, and end with a letter or digit"},
		"another service": {"deepseek-r1-0", "", "metadata.name: deepseek-r1-0 may be the name of the Service of a replica of another model; do not end a name with -r, a number and -0"},
	}
	for name, tt := range tests {
		o := modelOf(t, "source: {preset: llama-3.1-8b}\n"+tt.spec)
		o.Name = tt.name
		r := replicasOf(t, o, groupsOf(t, testNodes), true, anyForm)
		got := ""
		if err := CheckName(o, r.Spec); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s\nwant %s", name, got, tt.want)
		}
		if _, err := options.Deployment(r, 1); (err != nil) != (tt.want != "") {
			t.Errorf("%s: the Deployment: %v", name, err)
		}
	}
}
