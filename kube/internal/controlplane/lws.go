package controlplane

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const (
	// lastLWSWebhook is the path of the webhook that the LeaderWorkerSet controller sets up last.
	lastLWSWebhook = "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"
	lwsGroup       = "leaderworkerset.x-k8s.io"
	// lwsLabel is a label of the pods of a LeaderWorkerSet.
	lwsLabel = "leaderworkerset.sigs.k8s.io/name"
	// lwsConfiguration lets the controller serve webhooks with a certificate of the control plane.
	lwsConfiguration = `apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
leaderElection: {leaderElect: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
internalCertManagement: {enable: false}
webhook: {host: %q, port: %s, certDir: %q}
`
)

// lwsArgs writes the configuration and the certificate of the LeaderWorkerSet controller, and
// returns its flags.
func (cp *ControlPlane) lwsArgs(port string) ([]string, error) {
	dir := cp.path("lws")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for from, to := range map[string]string{"server.crt": "tls.crt", "server.key": "tls.key"} {
		if err := os.Link(cp.path(from), filepath.Join(dir, to)); err != nil {
			return nil, err
		}
	}
	file := cp.path("lws.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, lwsConfiguration, loopback, port, dir), 0o644); err != nil {
		return nil, err
	}
	return []string{"--kubeconfig=" + cp.kubeconfig, "--config=" + file}, nil
}

// installLWS installs the definitions that the LeaderWorkerSet controller needs to start, and
// its webhooks, which it serves at the port.
func (cp *ControlPlane) installLWS(ctx context.Context, port string) error {
	dir, err := lwsModule()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(cp.config)
	if err != nil {
		return err
	}
	for _, pattern := range []string{"crd/bases/*.yaml", "webhook/manifests.yaml"} {
		files, err := filepath.Glob(filepath.Join(dir, "config", filepath.FromSlash(pattern)))
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("no file %s in %s", pattern, dir)
		}
		for _, file := range files {
			if err := cp.createAll(ctx, client, file, port); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return poll(ctx, cp.findLWS)
}

// findLWS returns an error until clients find LeaderWorkerSets, which is some time after their
// definition was created.
func (cp *ControlPlane) findLWS() error {
	_, lists, err := cp.client.Discovery().ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		if strings.HasPrefix(list.GroupVersion, lwsGroup+"/") {
			return nil
		}
	}
	return fmt.Errorf("%s is not served", lwsGroup)
}

// lwsModule returns the directory of the module of the LeaderWorkerSet controller.
func lwsModule() (string, error) {
	bin, err := Binaries()
	if err != nil {
		return "", err
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/lws")
	list.Dir = filepath.Join(filepath.Dir(filepath.Dir(bin)), "hack", "kube")
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("the module of the LeaderWorkerSet controller is not found: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// createAll creates the objects of a file. Webhooks in it are called at the port.
func (cp *ControlPlane) createAll(ctx context.Context, client dynamic.Interface, file, port string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, document := range strings.Split(strings.TrimPrefix(string(text), "---\n"), "\n---\n") {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			return err
		}
		if err := cp.redirect(&o, port); err != nil {
			return err
		}
		kind := o.GroupVersionKind()
		resource := kind.GroupVersion().WithResource(strings.ToLower(kind.Kind) + "s")
		if _, err := client.Resource(resource).Create(ctx, &o, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// redirect lets the webhooks of the object, if it has any, be called at the port instead of a
// service. A webhook for pods is restricted to those of a LeaderWorkerSet, as in an
// installation.
func (cp *ControlPlane) redirect(o *unstructured.Unstructured, port string) error {
	list, found, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil || !found {
		return err
	}
	for _, entry := range list {
		webhook, ok := entry.(map[string]any)
		path, found, err := unstructured.NestedString(webhook, "clientConfig", "service", "path")
		if !ok || !found || err != nil {
			return fmt.Errorf("webhook %v has no path: %v", entry, err)
		}
		webhook["clientConfig"] = map[string]any{
			"url":      "https://" + net.JoinHostPort(loopback, port) + path,
			"caBundle": base64.StdEncoding.EncodeToString(cp.config.CAData),
		}
		if strings.HasSuffix(path, "-v1-pod") {
			webhook["objectSelector"] = map[string]any{"matchExpressions": []any{map[string]any{"key": lwsLabel, "operator": "Exists"}}}
		}
	}
	return unstructured.SetNestedSlice(o.Object, list, "webhooks")
}
