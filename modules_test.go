package berth_test

import (
	"os"
	"strings"
	"testing"
)

// TestSharedVersions checks that kube/ and hack/kube require the same versions of the modules
// that both have. Otherwise `make test` compiles Kubernetes twice.
func TestSharedVersions(t *testing.T) {
	product, tools := versions(t, "kube/go.mod"), versions(t, "hack/kube/go.mod")
	shared := 0
	for module, version := range product {
		if tools[module] == "" || strings.HasPrefix(module, "k8s.io/") { // those are replaced
			continue
		}
		shared++
		if tools[module] != version {
			t.Errorf("%s is %s in kube/go.mod and %s in hack/kube/go.mod; run go get %s@VERSION in the folder of the older", module, version, tools[module], module)
		}
	}
	if shared < 50 {
		t.Errorf("only %d modules are in both; want most of them", shared)
	}
}

// versions returns the required version of each module.
func versions(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && strings.HasPrefix(f[1], "v") {
			out[f[0]] = f[1]
		}
	}
	return out
}
