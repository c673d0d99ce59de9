package models

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

// marked matches code in the page that has a comment above it: "run" for commands, "file: PATH" for
// a whole file.
var marked = regexp.MustCompile("(?m)^( *)<!-- ([a-z]+)(?:: (.*))? -->\n *```[a-z]*\n((?s).*?) *```$")

// TestFirstModel runs the commands of the introduction to models, on a node with 4 A100.
func TestFirstModel(t *testing.T) {
	text, err := os.ReadFile("../../../docs/kubernetes-models.md")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.AddNodes(testcluster.Node("gpu-1", 4, a100x40))
	w.startScheduler()
	w.withWebhook("Fail")
	bin, err := controlplane.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, m := range marked.FindAllStringSubmatch(string(text), -1) {
		code := strings.ReplaceAll("\n"+m[4], "\n"+m[1], "\n")[1:]
		if m[2] == "file" {
			if file, err := os.ReadFile(filepath.Join("../../..", m[3])); err != nil || string(file) != code {
				t.Errorf("the page shows an outdated version of %s (%v)", m[3], err)
			}
			continue
		}
		for _, line := range strings.Split(strings.TrimSpace(code), "\n") {
			ran++
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = "../../.."
			cmd.Env = append(os.Environ(), "KUBECONFIG="+w.CP.Kubeconfig(), "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			t.Logf("$ %s\n%s", line, out)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
	}
	if ran < 10 {
		t.Errorf("only %d commands were run", ran)
	}
}
