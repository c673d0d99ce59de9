package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// roles returns the rules of the roles of a manifest, by kind and name.
func roles(t *testing.T, manifest string) map[string][]rbacv1.PolicyRule {
	t.Helper()
	out := map[string][]rbacv1.PolicyRule{}
	for _, u := range objects(t, manifest) {
		switch u.GetKind() {
		case "ClusterRole":
			out[u.GetKind()+"/"+u.GetName()] = as[rbacv1.ClusterRole](t, u).Rules
		case "Role":
			out[u.GetKind()+"/"+u.GetName()] = as[rbacv1.Role](t, u).Rules
		}
	}
	return out
}

// bindings returns the role and the service accounts of each binding, without the namespace of
// the service accounts.
func bindings(t *testing.T, manifest string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, u := range objects(t, manifest) {
		if u.GetKind() != "ClusterRoleBinding" && u.GetKind() != "RoleBinding" {
			continue
		}
		// Both kinds have the same fields.
		b := as[rbacv1.RoleBinding](t, u)
		text := b.RoleRef.Kind + "/" + b.RoleRef.Name
		for _, s := range b.Subjects {
			text += " " + s.Kind + "/" + s.Name
		}
		out[b.Kind+"/"+b.Name] = text
	}
	return out
}

// TestSchedulerPermissions checks that berth-scheduler has the permissions of
// kube/config/rbac.yaml, with which its tests run.
func TestSchedulerPermissions(t *testing.T) {
	want, got := string(read(t, "kube/config/rbac.yaml")), render(t)
	ours := func(name string, _ []rbacv1.PolicyRule) bool {
		return !strings.HasSuffix(name, "/berth-scheduler") && !strings.HasSuffix(name, "/berth-sessions-reader")
	}
	rolesWant, rolesGot := roles(t, want), roles(t, got)
	maps.DeleteFunc(rolesWant, ours)
	maps.DeleteFunc(rolesGot, ours)
	if d := cmp.Diff(rolesWant, rolesGot); d != "" || len(rolesGot) != 4 {
		t.Errorf("%d roles (-kube/config/rbac.yaml +chart):\n%s", len(rolesGot), d)
	}
	bound := func(_ string, text string) bool { return !strings.Contains(text, "ServiceAccount/berth-scheduler") }
	bindingsWant, bindingsGot := bindings(t, want), bindings(t, got)
	maps.DeleteFunc(bindingsWant, bound)
	maps.DeleteFunc(bindingsGot, bound)
	if d := cmp.Diff(bindingsWant, bindingsGot); d != "" || len(bindingsGot) != 4 {
		t.Errorf("%d bindings (-kube/config/rbac.yaml +chart):\n%s", len(bindingsGot), d)
	}
}

// TestNoWildcards checks that no rule has a wildcard, that secrets are read by name only, and that
// no role allows what makes more permissions.
func TestNoWildcards(t *testing.T) {
	for example, args := range examples(t) {
		for name, rules := range roles(t, render(t, args...)) {
			for _, r := range rules {
				for _, field := range [][]string{r.APIGroups, r.Resources, r.Verbs} {
					if slices.ContainsFunc(field, func(s string) bool { return strings.Contains(s, "*") }) {
						t.Errorf("%s: %s has a wildcard: %v", example, name, r)
					}
				}
				for _, verb := range []string{"escalate", "bind", "impersonate"} {
					if slices.Contains(r.Verbs, verb) {
						t.Errorf("%s: %s allows %s: %v", example, name, verb, r)
					}
				}
				checkSecrets(t, name, r)
			}
		}
	}
}

func checkSecrets(t *testing.T, name string, r rbacv1.PolicyRule) {
	t.Helper()
	switch {
	case !slices.Contains(r.Resources, "secrets"):
	case name != "Role/berth-controller":
		t.Errorf("%s has permissions for secrets: %v", name, r)
	case slices.Equal(r.Verbs, []string{"create"}):
	case !slices.Equal(r.ResourceNames, []string{"berth-webhook"}) || !slices.Equal(r.Verbs, []string{"get", "update"}):
		t.Errorf("%s has permissions for secrets that are not its own: %v", name, r)
	}
}

// TestWithoutWebhook checks that the permissions for the webhook are left out with it.
func TestWithoutWebhook(t *testing.T) {
	for name, rules := range roles(t, render(t, "--set", "webhook.enabled=false")) {
		for _, r := range rules {
			if slices.Contains(r.Resources, "secrets") || slices.Contains(r.Resources, "validatingwebhookconfigurations") {
				t.Errorf("%s: %v", name, r)
			}
		}
	}
}

// TestNamespaces checks that each object is in the namespace of the release, apart from the
// binding that Kubernetes requires in kube-system.
func TestNamespaces(t *testing.T) {
	cluster := []string{"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	for example, args := range examples(t) {
		for _, u := range objects(t, render(t, args...)) {
			if got, want := u.GetNamespace(), namespaceOf(u, cluster); got != want {
				t.Errorf("%s: %s %s is in namespace %q, want %q", example, u.GetKind(), u.GetName(), got, want)
			}
		}
	}
}

func namespaceOf(u *unstructured.Unstructured, cluster []string) string {
	switch {
	case slices.Contains(cluster, u.GetKind()):
		return ""
	case u.GetName() == "berth-scheduler-authentication-reader":
		return "kube-system"
	}
	return Namespace
}
