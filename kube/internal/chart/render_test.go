package chart

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	k8syaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// examples returns the arguments of helm for the default values and for each example, by name.
func examples(t testing.TB) map[string][]string {
	t.Helper()
	out := map[string][]string{"default": nil}
	files, err := filepath.Glob(filepath.Join(root(t), Dir, "examples", "*.yaml"))
	if err != nil || len(files) != 3 {
		t.Fatalf("%d example values files, want 3: %v", len(files), err)
	}
	for _, f := range files {
		out[strings.TrimSuffix(filepath.Base(f), ".yaml")] = []string{"--values", f}
	}
	return out
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// read returns a file of the repository.
func read(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), path))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// version returns the version of the programs that the chart installs.
func version(t testing.TB) string {
	t.Helper()
	var chart struct{ AppVersion string }
	if err := yaml.Unmarshal(read(t, Dir+"/Chart.yaml"), &chart); err != nil || chart.AppVersion == "" {
		t.Fatalf("the chart has no version: %v", err)
	}
	return chart.AppVersion
}

// render returns the manifest of the chart.
func render(t testing.TB, args ...string) string {
	t.Helper()
	out, err := Helm(append([]string{"template", Release, Dir, "--namespace", Namespace}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// objects returns the objects of a manifest.
func objects(t testing.TB, manifest string) []*unstructured.Unstructured {
	t.Helper()
	decoder := k8syaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	var out []*unstructured.Unstructured
	for {
		u := &unstructured.Unstructured{}
		if err := decoder.Decode(&u.Object); errors.Is(err, io.EOF) {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			out = append(out, u)
		}
	}
}

// as converts an object to its type. A field that the type does not have fails the test.
func as[T any](t testing.TB, u *unstructured.Unstructured) *T {
	t.Helper()
	var out T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(u.Object, &out, true); err != nil {
		t.Fatalf("%s %s: %v", u.GetKind(), u.GetName(), err)
	}
	return &out
}

// deployments returns the Deployments of a manifest.
func deployments(t testing.TB, manifest string) []*appsv1.Deployment {
	t.Helper()
	var out []*appsv1.Deployment
	for _, u := range objects(t, manifest) {
		if u.GetKind() == "Deployment" {
			out = append(out, as[appsv1.Deployment](t, u))
		}
	}
	return out
}

func TestLint(t *testing.T) {
	for name, args := range examples(t) {
		out, err := Helm(append([]string{"lint", Dir, "--strict", "--namespace", Namespace}, args...)...)
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if strings.Contains(out, "[WARNING]") || strings.Contains(out, "[ERROR]") {
			t.Errorf("%s: %s", name, out)
		}
	}
}

// TestSwitches checks that each switch adds and removes the objects that it is for.
func TestSwitches(t *testing.T) {
	kinds := func(args ...string) []string {
		var out []string
		for _, u := range objects(t, render(t, args...)) {
			out = append(out, u.GetKind()+"/"+u.GetName())
		}
		slices.Sort(out)
		return out
	}
	all := kinds()
	for set, want := range map[string]struct{ less, more []string }{
		"crds.install=false":                                {less: []string{"CustomResourceDefinition/queues.berth.dev"}},
		"podDisruptionBudget.enabled=false":                 {less: []string{"PodDisruptionBudget/berth-controller", "PodDisruptionBudget/berth-scheduler"}},
		"networkPolicy.enabled=false":                       {less: []string{"NetworkPolicy/berth-controller", "NetworkPolicy/berth-scheduler"}},
		"webhook.enabled=false":                             {less: []string{"Service/berth-webhook", "ValidatingWebhookConfiguration/berth-models"}},
		"policies.protectAnnotations=None":                  {less: []string{"ValidatingAdmissionPolicy/berth-annotations", "ValidatingAdmissionPolicyBinding/berth-annotations"}},
		"policies.modelPods=None":                           {less: []string{"ValidatingAdmissionPolicy/berth-model-pods", "ValidatingAdmissionPolicyBinding/berth-model-pods"}},
		"policies.modelSchedulerNames=None":                 {less: []string{"ValidatingAdmissionPolicy/berth-model-scheduler-names", "ValidatingAdmissionPolicyBinding/berth-model-scheduler-names"}},
		"metrics.serviceMonitor.enabled=true":               {more: []string{"ServiceMonitor/berth-controller", "ServiceMonitor/berth-scheduler"}},
		"metrics.dashboard.enabled=true":                    {more: []string{"ConfigMap/berth-dashboard"}},
		"resourceQuota.enabled=true":                        {more: []string{"ResourceQuota/berth-critical-pods"}},
		"scheduler.configuration.plugins[0].name=FairShare": {more: []string{"ConfigMap/berth-scheduler"}},
		"scheduler.secure.enabled=false": {less: []string{"ClusterRole/berth-sessions-reader", "ClusterRoleBinding/berth-scheduler-auth-delegator",
			"Role/berth-sessions-reader", "RoleBinding/berth-scheduler-authentication-reader"}},
		"controller.enabled=false": {less: []string{"ClusterRole/berth-controller", "ClusterRoleBinding/berth-controller", "Deployment/berth-controller", "NetworkPolicy/berth-controller",
			"PodDisruptionBudget/berth-controller", "Role/berth-controller", "RoleBinding/berth-controller", "Service/berth-controller", "Service/berth-webhook", "ServiceAccount/berth-controller",
			"ValidatingAdmissionPolicy/berth-model-pods", "ValidatingAdmissionPolicy/berth-model-scheduler-names", "ValidatingAdmissionPolicyBinding/berth-model-pods",
			"ValidatingAdmissionPolicyBinding/berth-model-scheduler-names", "ValidatingWebhookConfiguration/berth-models"}},
	} {
		got := kinds("--set", set)
		var less, more []string
		for _, k := range all {
			// Definitions are added with the kinds of Berth.
			if !slices.Contains(got, k) && (k == "CustomResourceDefinition/queues.berth.dev" || !strings.HasPrefix(k, "CustomResourceDefinition/")) {
				less = append(less, k)
			}
		}
		for _, k := range got {
			if !slices.Contains(all, k) {
				more = append(more, k)
			}
		}
		if !slices.Equal(less, want.less) || !slices.Equal(more, want.more) {
			t.Errorf("%s: without %q and with %q, want without %q and with %q", set, less, more, want.less, want.more)
		}
	}
}

// TestFlags runs the programs with the arguments of the chart and a kubeconfig file that does not
// exist: they read their flags and their configuration, and find no cluster.
func TestFlags(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "./cmd/...")
	build.Dir = filepath.Join(root(t), "kube")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	more := examples(t)
	more["every switch"] = []string{"--set", "devicesEnforced=true", "--set", "scheduler.dryRun=true", "--set", "scheduler.verbose=true", "--set", "scheduler.secure.profiling=true",
		"--set", "scheduler.tracing.endpoint=localhost:4317", "--set", "controller.verbose=true", "--set", "controller.nodeClass=karpenter.k8s.aws/EC2NodeClass/default", "--set", "controller.models.volume.emptyDir.sizeLimit=1Gi", "--set", "scheduler.extraArgs={--parallel=7}"}
	more["two names"] = []string{"--set", "scheduler.names={a.b,kube}", "--set", "controller.schedulerName=kube"}
	more["the second of two profiles"] = append(slices.Clone(more["alongside-kube-scheduler"]), "--set", "controller.schedulerName=berth-spread")
	more["fractions"] = []string{"--set", "scheduler.evictions.rate=0.5", "--set", "scheduler.kubeAPI.qps=2.5"}
	more["without webhook"] = []string{"--set", "webhook.enabled=false", "--set", "scheduler.secure.enabled=false"}
	for name, args := range more {
		manifest := render(t, args...)
		for _, d := range deployments(t, manifest) {
			c := d.Spec.Template.Spec.Containers[0]
			program := filepath.Join(bin, filepath.Base(c.Command[0]))
			if _, err := os.Stat(program); err != nil {
				t.Logf("%s: %s is not part of the module", name, c.Command[0])
				continue
			}
			flags := append(slices.Clone(c.Args), "--kubeconfig=/does/not/exist")
			for i, f := range flags {
				if strings.HasPrefix(f, "--config=") {
					flags[i] = "--config=" + configuration(t, manifest)
				}
				if strings.HasPrefix(f, "--models-directory=") {
					flags[i] = "--models-directory=" + t.TempDir()
				}
			}
			out, err := exec.CommandContext(t.Context(), program, flags...).CombinedOutput()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(string(out), "/does/not/exist") {
				t.Errorf("%s: %s %q: %v: %s", name, c.Command[0], flags, err, out)
			}
		}
	}
}

// configuration writes the SchedulerConfiguration of a manifest to a file and returns its name.
func configuration(t *testing.T, manifest string) string {
	t.Helper()
	for _, u := range objects(t, manifest) {
		if u.GetKind() == "ConfigMap" && u.GetName() == "berth-scheduler" {
			file := filepath.Join(t.TempDir(), "configuration.yaml")
			if err := os.WriteFile(file, []byte(as[corev1.ConfigMap](t, u).Data["configuration.yaml"]), 0o644); err != nil {
				t.Fatal(err)
			}
			return file
		}
	}
	t.Fatal("there is no ConfigMap with the configuration")
	return ""
}

// TestImage checks how the image is named.
func TestImage(t *testing.T) {
	const digest = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
	for want, args := range map[string][]string{
		"ghcr.io/berth-project/berth:" + version(t): nil,
		"ghcr.io/berth-project/berth:v2":            {"--set", "image.tag=v2"},
		"ghcr.io/berth-project/berth@" + digest:     {"--set", "image.tag=v2", "--set", "image.digest=" + digest},
		"mirror.example.com/berth:" + version(t):    {"--set", "image.repository=mirror.example.com/berth"},
	} {
		for _, d := range deployments(t, render(t, args...)) {
			if got := d.Spec.Template.Spec.Containers[0].Image; got != want {
				t.Errorf("%q: %s, want %s", args, got, want)
			}
		}
	}
}

// TestConfigurationRestarts checks that another configuration makes new pods of both programs.
func TestConfigurationRestarts(t *testing.T) {
	const annotation = "berth.dev/configuration"
	before := map[string]string{}
	for _, d := range deployments(t, render(t, "--set", "scheduler.configuration.plugins[0].name=FairShare")) {
		before[d.Name] = d.Spec.Template.Annotations[annotation]
	}
	for _, d := range deployments(t, render(t, "--set", "scheduler.configuration.plugins[0].name=Reclaim")) {
		if a, b := before[d.Name], d.Spec.Template.Annotations[annotation]; a == "" || a == b {
			t.Errorf("%s: the annotations are %q and %q", d.Name, a, b)
		}
	}
}

// TestKeysOnce checks that no key occurs twice where a label or an annotation is given in two
// values, or by a value and the chart. The value for the object takes precedence.
func TestKeysOnce(t *testing.T) {
	text := render(t, "--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.dashboard.enabled=true",
		"--set", "commonLabels.team=a", "--set", "commonLabels.grafana_dashboard=no", "--set", `commonLabels.rbac\.authorization\.k8s\.io/aggregate-to-view=no`,
		"--set", "metrics.serviceMonitor.labels.team=b", "--set", `controller.podAnnotations.kubectl\.kubernetes\.io/default-container=proxy`)
	for i, document := range strings.Split(text, "\n---\n") {
		if _, err := yaml.YAMLToJSONStrict([]byte(document)); err != nil {
			t.Errorf("document %d: %v", i, err)
		}
	}
	labels := map[string]map[string]string{}
	for _, u := range objects(t, text) {
		labels[u.GetKind()+"/"+u.GetName()] = u.GetLabels()
	}
	for _, want := range []struct{ object, label, value string }{
		{"ServiceMonitor/berth-scheduler", "team", "b"},
		{"ServiceMonitor/berth-controller", "team", "b"},
		{"Deployment/berth-scheduler", "team", "a"},
		{"ConfigMap/berth-dashboard", "grafana_dashboard", "1"},
		{"ClusterRole/berth-view", "rbac.authorization.k8s.io/aggregate-to-view", "true"},
	} {
		if got := labels[want.object][want.label]; got != want.value {
			t.Errorf("%s: label %s is %q, want %q", want.object, want.label, got, want.value)
		}
	}
	for _, d := range deployments(t, text) {
		want := map[string]string{"berth-controller": "proxy", "berth-scheduler": "berth-scheduler"}[d.Name]
		if got := d.Spec.Template.Annotations["kubectl.kubernetes.io/default-container"]; got != want {
			t.Errorf("%s: the default container is %q, want %q", d.Name, got, want)
		}
	}
}
