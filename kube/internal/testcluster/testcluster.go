// Package testcluster is a cluster for tests: a control plane with the nodes of kwok, pods and
// nodes that are short to describe, and berth-scheduler as a process.
package testcluster

import (
	"context"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/controlplane"
	"k8s.io/client-go/kubernetes"
)

const (
	// GPU is the resource of whole devices.
	GPU = "nvidia.com/gpu"
	// Namespace is the namespace of the pods.
	Namespace = "default"
	// Patience is how long a condition may take to become true on a slow machine.
	Patience = 2 * time.Minute
)

// Cluster is a control plane with a client.
type Cluster struct {
	// TB is the test that uses the cluster now. A subtest sets it to itself.
	testing.TB
	Ctx      context.Context
	CP       *controlplane.ControlPlane
	Client   kubernetes.Interface
	Logs     string   // the folder of the logs of schedulers
	starts   int      // how many logs there are
	audit    string   // the log of all requests; "" if there is none
	starting []period // when the API server was started again
}

// New starts a control plane with kwok and the components. It is stopped when the test ends.
func New(t testing.TB, components ...controlplane.Component) *Cluster {
	t.Helper()
	return NewWith(t, controlplane.Options{Components: components})
}

// NewWith starts a control plane with kwok and the options.
func NewWith(t testing.TB, o controlplane.Options) *Cluster {
	t.Helper()
	o.Components = append(o.Components, controlplane.Kwok)
	c := &Cluster{TB: t, Ctx: t.Context(), Logs: t.TempDir(), CP: controlplane.StartForTest(t, o)}
	config := c.CP.Config()
	config.QPS = -1 // without a limit
	var err error
	if c.Client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return c
}

// Eventually waits until the condition returns "", and fails the test with what it returned
// last if it does not.
func (c *Cluster) Eventually(condition func() string) {
	c.Helper()
	Eventually(c.TB, condition)
}

// Eventually waits until the condition returns "", and fails the test with what it returned
// last if it does not.
func Eventually(t testing.TB, condition func() string) {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = condition(); last == "" {
			return
		}
	}
	t.Fatal(last)
}
