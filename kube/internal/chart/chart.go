// Package chart makes what is derived from the Helm chart charts/berth: the copies of the
// CustomResourceDefinitions in it, the manifest deploy/berth.yaml for users without Helm, and the
// pages of docs/reference about its values and permissions. Its tests install the chart on a
// real API server.
package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/berth-project/berth/kube/internal/controlplane"
)

// The namespace and the release of deploy/berth.yaml, and of the commands in docs/install.md.
const (
	Namespace = "berth-system"
	Release   = "berth"
)

// Paths in the repository.
const (
	Dir             = "charts/berth"
	definitions     = "kube/config/crd"
	copies          = Dir + "/files/crds"
	valuesFile      = Dir + "/values.yaml"
	manifest        = "deploy/berth.yaml"
	valuesPage      = "docs/reference/chart-values.md"
	permissionsPage = "docs/reference/chart-permissions.md"
)

// Root returns the root of the repository that contains the working directory.
func Root() (string, error) {
	bin, err := controlplane.Binaries()
	return filepath.Dir(filepath.Dir(bin)), err
}

// Helm runs helm in the root of the repository and returns what it prints. The error has what
// helm printed to standard error.
func Helm(args ...string) (string, error) {
	bin, err := controlplane.Binaries()
	if err != nil {
		return "", err
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(bin, "helm")
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("helm is missing; `make helm` builds it: %w", err)
	}
	var out, failure bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, &out, &failure
	// Settings of the user, such as another namespace or a plugin, have no effect.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "HELM_CACHE_HOME=" + os.TempDir(), "HELM_CONFIG_HOME=" + os.TempDir(), "HELM_DATA_HOME=" + os.TempDir()}
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("helm %s: %w: %s", args[0], err, failure.String())
	}
	return out.String(), nil
}

// Files returns the content of every file that is derived from the chart, by its path in the
// repository.
func Files() (map[string][]byte, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	files, err := Definitions()
	if err != nil {
		return nil, err
	}
	text, err := Manifest()
	if err != nil {
		return nil, err
	}
	files[manifest] = []byte(text)
	permissions, err := permissions(text)
	if err != nil {
		return nil, err
	}
	files[permissionsPage] = []byte(permissions)
	source, err := os.ReadFile(filepath.Join(root, valuesFile))
	if err != nil {
		return nil, err
	}
	values, err := values(source)
	if err != nil {
		return nil, err
	}
	files[valuesPage] = []byte(values)
	return files, nil
}

// Definitions returns the copies of the CustomResourceDefinitions, by their path in the repository.
func Definitions() (map[string][]byte, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	found, err := filepath.Glob(filepath.Join(root, definitions, "*.yaml"))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, f := range found {
		if files[copies+"/"+filepath.Base(f)], err = os.ReadFile(f); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Write writes the files and removes copies of definitions that do not exist any more. The copies
// come first, since the manifest has them.
func Write() error {
	root, err := Root()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, copies)); err != nil {
		return err
	}
	definitions, err := Definitions()
	if err != nil {
		return err
	}
	if err := write(root, definitions); err != nil {
		return err
	}
	files, err := Files()
	if err != nil {
		return err
	}
	return write(root, files)
}

func write(root string, files map[string][]byte) error {
	for path, content := range files {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

const manifestHead = `# Berth for "kubectl apply --server-side -f", without Helm. Written by ` + "`make manifest`" + ` from the chart
# charts/berth with its default values; change the chart instead. docs/install.md has the steps.
apiVersion: v1
kind: Namespace
metadata:
  name: ` + Namespace + `
  labels:
    app.kubernetes.io/part-of: berth
    pod-security.kubernetes.io/enforce: restricted
`

// Manifest returns the objects of the chart with its default values, without the labels and
// annotations that are for Helm.
func Manifest() (string, error) {
	out, err := Helm("template", Release, Dir, "--namespace", Namespace, "--set", "crds.keep=false")
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(manifestHead)
	for line := range strings.Lines(out) {
		switch trimmed := strings.TrimSpace(line); {
		case strings.HasPrefix(trimmed, "helm.sh/chart:"), strings.HasPrefix(trimmed, "app.kubernetes.io/managed-by:"), strings.HasPrefix(line, "# Source:"):
		default:
			text.WriteString(line)
		}
	}
	return text.String(), nil
}
