// Package controlplane runs a Kubernetes control plane for tests: etcd, kube-apiserver and,
// on request, kube-controller-manager, kube-scheduler, kwok and the controller of
// LeaderWorkerSets, as processes on loopback ports. The programs are those that `make kube-tools` builds into bin/kube. Every process
// ends with the test process, however that ends.
package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A Component is a program of the control plane. Its value is the name of its binary.
type Component string

// The components. Etcd and APIServer are part of every control plane.
const (
	Etcd              Component = "etcd"
	APIServer         Component = "kube-apiserver"
	ControllerManager Component = "kube-controller-manager"
	Scheduler         Component = "kube-scheduler"
	Kwok              Component = "kwok"
	// LWS is the controller of LeaderWorkerSets, with its webhooks. It needs ControllerManager,
	// which creates the pods of its StatefulSets.
	LWS Component = "lws-manager"
)

// components lists every component in the order of starting.
var components = []Component{Etcd, APIServer, ControllerManager, Scheduler, Kwok, LWS}

// Options say what a control plane consists of. The zero value is etcd and kube-apiserver.
type Options struct {
	// Components lists the components to run besides etcd and kube-apiserver.
	Components []Component
	// Flags holds additional command-line flags of components. They follow the flags that
	// this package sets: a flag with one value is overridden, a list is extended.
	Flags map[Component][]string
	// LogDir is the directory of the log files, one per component, named after it. It is
	// created if necessary and kept by Stop. If it is empty, Stop removes the log files.
	LogDir string
}

// ControlPlane is a control plane that Start has started. Its methods may be called from
// several goroutines.
type ControlPlane struct {
	dir        string // certificates, data and the kubeconfig file
	logs       string
	config     *rest.Config
	client     kubernetes.Interface
	kubeconfig string
	ports      ports

	mu        sync.Mutex
	processes map[Component]*process
	stopped   bool
}

// Start starts a control plane and returns when all of its components are ready. The
// context bounds the start only. If a component does not become ready, Start stops all
// components and returns an error with the last lines of the log of that component.
func Start(ctx context.Context, o Options) (*ControlPlane, error) {
	selected, err := o.selected()
	if err != nil {
		return nil, err
	}
	bin, err := binaries(selected)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "berth-controlplane-")
	if err != nil {
		return nil, err
	}
	cp := &ControlPlane{dir: dir, logs: o.LogDir, processes: map[Component]*process{}}
	if cp.logs == "" {
		cp.logs = filepath.Join(dir, "logs")
	}
	if err := cp.start(ctx, selected, bin, o.Flags); err != nil {
		return nil, errors.Join(err, cp.Stop())
	}
	return cp, nil
}

// selected returns the components to run, in the order of starting.
func (o Options) selected() ([]Component, error) {
	for _, c := range o.Components {
		if !slices.Contains(components, c) {
			return nil, fmt.Errorf("unknown component %q; the components are %q", c, components)
		}
	}
	var selected []Component
	for _, c := range components {
		if c == Etcd || c == APIServer || slices.Contains(o.Components, c) {
			selected = append(selected, c)
		}
	}
	for c := range o.Flags {
		if !slices.Contains(selected, c) {
			return nil, fmt.Errorf("flags are given for %q, which is not among the components to run: %q", c, selected)
		}
	}
	return selected, nil
}

func (cp *ControlPlane) start(ctx context.Context, selected []Component, bin string, flags map[Component][]string) error {
	if err := os.MkdirAll(cp.logs, 0o755); err != nil {
		return err
	}
	commands, err := cp.prepare()
	if err != nil {
		return err
	}
	for _, c := range selected {
		command := commands[c]
		p := &process{
			component: c,
			path:      filepath.Join(bin, string(c)),
			args:      append(command.args, flags[c]...),
			dir:       cp.dir,
			log:       filepath.Join(cp.logs, string(c)+".log"),
			ready:     command.ready,
		}
		if c == APIServer && !slices.Contains(selected, ControllerManager) {
			// The API server gives a new node the taint not-ready, which only the controller
			// manager removes.
			p.args = append(p.args, "--disable-admission-plugins=TaintNodesByCondition")
		}
		if c == Kwok {
			p.args = append(p.args, "--config="+filepath.Join(bin, stages))
		}
		if command.install != nil {
			if err := command.install(ctx); err != nil {
				return err
			}
		}
		if err := p.start(); err != nil {
			return err
		}
		cp.processes[c] = p
		// The other components need the API server, which needs etcd. They are started
		// together.
		if c == Etcd || c == APIServer {
			if err := p.wait(ctx); err != nil {
				return err
			}
		}
	}
	for _, c := range selected {
		if err := cp.processes[c].wait(ctx); err != nil {
			return err
		}
	}
	return cp.waitForNamespaces(ctx)
}

// waitForNamespaces waits for the namespaces that the API server creates after it has
// become ready. Without them, objects in them are rejected.
func (cp *ControlPlane) waitForNamespaces(ctx context.Context) error {
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, "kube-node-lease"} {
		err := poll(ctx, func() error {
			_, err := cp.client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
			return err
		})
		if err != nil {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// Config returns the configuration of a client with all permissions. Each call returns a
// copy of its own.
func (cp *ControlPlane) Config() *rest.Config { return rest.CopyConfig(cp.config) }

// Kubeconfig returns the path of a kubeconfig file with all permissions. Stop removes it.
func (cp *ControlPlane) Kubeconfig() string { return cp.kubeconfig }

// Log returns the path of the log file of a component.
func (cp *ControlPlane) Log(c Component) string {
	return filepath.Join(cp.logs, string(c)+".log")
}

// Pid returns the process identifier of a component, and 0 if it does not run.
func (cp *ControlPlane) Pid(c Component) int {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	p, ok := cp.processes[c]
	if !ok || !p.running() {
		return 0
	}
	return p.cmd.Process.Pid
}

// Kill ends a component at once, as a crash does. Its data remain, and Restart starts it
// again. Killing a component that does not run has no effect.
func (cp *ControlPlane) Kill(c Component) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	p, err := cp.process(c)
	if err != nil {
		return err
	}
	return p.kill()
}

// Restart starts a component again, with the same ports, certificates and data, and returns
// when it is ready. If it runs, it is asked to end first and is killed if it does not end
// in time. After a restart of etcd, Restart waits for the API server as well.
func (cp *ControlPlane) Restart(ctx context.Context, c Component) error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	p, err := cp.process(c)
	if err != nil {
		return err
	}
	if err := p.terminate(); err != nil {
		return err
	}
	if err := p.start(); err != nil {
		return err
	}
	if err := p.wait(ctx); err != nil {
		return err
	}
	if server := cp.processes[APIServer]; c == Etcd && server.running() {
		return server.wait(ctx)
	}
	return nil
}

func (cp *ControlPlane) process(c Component) (*process, error) {
	if cp.stopped {
		return nil, errors.New("the control plane is stopped")
	}
	p, ok := cp.processes[c]
	if !ok {
		return nil, fmt.Errorf("%s is not part of this control plane", c)
	}
	return p, nil
}

// Stop kills all components and removes the data. It returns when no process is left.
// Further calls have no effect.
func (cp *ControlPlane) Stop() error {
	cp.mu.Lock()
	defer cp.mu.Unlock()
	if cp.stopped {
		return nil
	}
	cp.stopped = true
	var errs []error
	for _, c := range slices.Backward(components) {
		if p, ok := cp.processes[c]; ok {
			errs = append(errs, p.kill())
		}
	}
	errs = append(errs, cp.ports.release(), os.RemoveAll(cp.dir))
	return errors.Join(errs...)
}

// poll calls f until it returns nil, and returns its last error when the context is done or
// a start has taken too long.
func poll(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := f()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last error: %w", context.Cause(ctx), err)
		case <-time.After(pollInterval):
		}
	}
}
