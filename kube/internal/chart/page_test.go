package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"github.com/berth-project/berth/kube/internal/testcluster"
)

// command matches commands in the page that have the comment "run" above them.
var command = regexp.MustCompile("(?m)^( *)<!-- run -->\n *```\n((?s).*?) *```$")

// TestInstallPage runs the commands of docs/install.md, in their order. When the chart is
// uninstalled, a Model is left that has a finalizer and is being deleted.
func TestInstallPage(t *testing.T) {
	c := testcluster.New(t, controlplane.ControllerManager, controlplane.Scheduler)
	c.AddNodes(controlplane.Node{Name: "a"}, controlplane.Node{Name: "b"})
	bin := must(controlplane.Binaries())(t)
	commands := command.FindAllStringSubmatch(string(read(t, "docs/install.md")), -1)
	if len(commands) < 5 {
		t.Fatalf("the page has %d commands to run", len(commands))
	}
	home := t.TempDir()
	for _, m := range commands {
		run := exec.CommandContext(t.Context(), "bash", "-e", "-c", m[2])
		run.Dir = root(t)
		run.Env = append(os.Environ(), "KUBECONFIG="+c.CP.Kubeconfig(), "HOME="+home, "PATH="+bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
		out, err := run.CombinedOutput()
		t.Logf("%s%s", m[2], out)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m[2], "helm uninstall") {
			c.Apply(`{"apiVersion": "berth.dev/v1alpha1", "kind": "Model", "metadata": {"name": "left", "finalizers": ["berth.dev/model"]}, "spec": {"source": {"preset": "phi-4"}}}`)
			c.Kubectl("", "delete", "model", "left", "--wait=false")
		}
	}
	if left := c.Kubectl("", "get", "models", "--all-namespaces", "-o", "name"); left != "" {
		t.Errorf("after the last command, there is %s", left)
	}
	if left := c.Kubectl("", "get", "deployments", "-n", Namespace, "-o", "name"); strings.TrimSpace(left) != "" {
		t.Errorf("after the last command, there is %s", left)
	}
}

// TestInstallPageShows checks what the page says about messages and files.
func TestInstallPageShows(t *testing.T) {
	page := string(read(t, "docs/install.md"))
	_, err := Helm("template", Release, Dir, "--set", "scheduler.replica=3")
	if err == nil {
		t.Fatal("a wrong value is accepted")
	}
	_, message, _ := strings.Cut(err.Error(), "Error: ")
	if !strings.Contains(page, strings.TrimSpace(message)) {
		t.Errorf("the page does not show the message:\n%s", message)
	}
	for name := range examples(t) {
		if name != "default" && !strings.Contains(page, "(../charts/berth/examples/"+name+".yaml)") {
			t.Errorf("the page does not name the example %s", name)
		}
	}
	for _, d := range []string{"berth-annotations", "berth-model-pods", "berth-model-scheduler-names"} {
		if !strings.Contains(page, "| `"+d+"` |") {
			t.Errorf("the page does not name the policy %s", d)
		}
	}
}
