package testcluster

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-project/berth/kube/internal/controlplane"
)

// Kubectl runs kubectl and returns its output.
func (c *Cluster) Kubectl(input string, args ...string) string {
	c.Helper()
	out, err := c.TryKubectl(input, args...)
	if err != nil {
		c.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// TryKubectl runs kubectl, and returns its output also if it fails.
func (c *Cluster) TryKubectl(input string, args ...string) (string, error) {
	bin, err := controlplane.Binaries()
	if err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(bin, "kubectl"), append([]string{"--kubeconfig", c.CP.Kubeconfig()}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Install applies a file of manifests.
func (c *Cluster) Install(file string) {
	c.Helper()
	c.Kubectl("", "apply", "--server-side", "-f", file)
}

// Apply applies manifests.
func (c *Cluster) Apply(manifests string) {
	c.Helper()
	c.Eventually(func() string { // a definition that was just installed is not served at once
		if out, err := c.TryKubectl(manifests, "apply", "-f", "-"); err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return ""
	})
}
