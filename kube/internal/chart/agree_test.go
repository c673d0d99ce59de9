package chart

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestSameScheduler checks that berth-controller and the policy about Models know the scheduler
// names of berth-scheduler, and that both programs read the same configuration.
func TestSameScheduler(t *testing.T) {
	type test struct {
		args  []string
		names []string // of berth-controller, the first is that of models that name none
		files bool     // whether there is a configuration
	}
	tests := map[string]test{
		"two names":                   {[]string{"--set", "scheduler.names={a.b,kube}"}, []string{"a.b", "kube"}, false},
		"the second of two names":     {[]string{"--set", "scheduler.names={a.b,kube}", "--set", "controller.schedulerName=kube"}, []string{"kube", "a.b"}, false},
		"two names and plugins":       {[]string{"--set", "scheduler.names={a,b}", "--set", "scheduler.configuration.plugins[0].name=FairShare"}, []string{"a", "b"}, true},
		"names that profiles replace": {[]string{"--set", "scheduler.names={a,b}", "--set", "scheduler.configuration.profiles[0].schedulerName=c"}, []string{"c"}, true},
		"a volume with models":        {[]string{"--set", "controller.models.volume.configMap.name=m", "--set", "scheduler.configuration.plugins[0].name=FairShare"}, []string{"berth-scheduler"}, true},
	}
	for name, args := range examples(t) {
		tests[name] = test{args, []string{"berth-scheduler"}, false}
		if name == "alongside-kube-scheduler" {
			tests[name] = test{args, []string{"berth-scheduler", "berth-spread"}, true}
			tests["the second of two profiles"] = test{append(slices.Clone(args), "--set", "controller.schedulerName=berth-spread"), []string{"berth-spread", "berth-scheduler"}, true}
		}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := render(t, tt.args...)
			list := deployments(t, text)
			slices.SortFunc(list, func(a, b *appsv1.Deployment) int { return strings.Compare(a.Name, b.Name) })
			if len(list) != 2 {
				t.Fatalf("%d Deployments, want 2", len(list))
			}
			controller, scheduler := list[0], list[1]
			if got := schedulerNames(t, text, controller); !slices.Equal(got, tt.names) {
				t.Errorf("berth-controller has the names %q, want %q", got, tt.names)
			}
			if got := schedulerNames(t, text, scheduler); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(tt.names))) {
				t.Errorf("berth-scheduler has the names %q, want %q", got, tt.names)
			}
			for _, n := range tt.names {
				if !strings.Contains(namesRule(t, text), `"`+n+`"`) {
					t.Errorf("the policy does not admit %s: %s", n, namesRule(t, text))
				}
			}
			own, other := configurationOf(t, text, controller), configurationOf(t, text, scheduler)
			if own != other || (own != "") != tt.files {
				t.Errorf("berth-controller reads %q, and berth-scheduler reads %q", own, other)
			}
			const annotation = "berth.dev/configuration"
			if a, b := controller.Spec.Template.Annotations[annotation], scheduler.Spec.Template.Annotations[annotation]; a != b || (a != "") != tt.files {
				t.Errorf("the annotations of the pods are %q and %q", a, b)
			}
		})
	}
}

// schedulerNames returns the scheduler names of a program: those of its flag, or else those of the
// profiles of its configuration.
func schedulerNames(t *testing.T, manifest string, d *appsv1.Deployment) []string {
	t.Helper()
	if value := flag(d, "scheduler-name"); value != "" {
		return strings.Split(value, ",")
	}
	var c v1alpha1.SchedulerConfiguration
	if err := yaml.UnmarshalStrict([]byte(configurationOf(t, manifest, d)), &c); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, p := range c.Profiles {
		out = append(out, p.SchedulerName)
	}
	return out
}

// flag returns the value of a flag of a program; "" if it is not given.
func flag(d *appsv1.Deployment, name string) string {
	for _, a := range d.Spec.Template.Spec.Containers[0].Args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// configurationOf returns the text of the file that the flag --config of a program names, which is
// mounted from a ConfigMap; "" without the flag.
func configurationOf(t *testing.T, manifest string, d *appsv1.Deployment) string {
	t.Helper()
	file, pod := flag(d, "config"), d.Spec.Template.Spec
	if file == "" {
		return ""
	}
	for _, m := range pod.Containers[0].VolumeMounts {
		if m.MountPath != path.Dir(file) {
			continue
		}
		for _, v := range pod.Volumes {
			if v.Name != m.Name {
				continue
			}
			for _, u := range objects(t, manifest) {
				if u.GetKind() == "ConfigMap" && u.GetName() == v.ConfigMap.Name && u.GetNamespace() == d.Namespace {
					return as[corev1.ConfigMap](t, u).Data[path.Base(file)]
				}
			}
		}
	}
	t.Fatalf("%s: %s is in no ConfigMap that is mounted", d.Name, file)
	return ""
}

// namesRule returns the expression of the policy about the scheduler names of Models.
func namesRule(t *testing.T, manifest string) string {
	t.Helper()
	for _, u := range objects(t, manifest) {
		if u.GetKind() == "ValidatingAdmissionPolicy" && u.GetName() == "berth-model-scheduler-names" {
			return as[admissionregistrationv1.ValidatingAdmissionPolicy](t, u).Spec.Validations[0].Expression
		}
	}
	t.Fatal("there is no policy about scheduler names")
	return ""
}
