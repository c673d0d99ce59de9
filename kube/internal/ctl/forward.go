package ctl

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// forwarding is a port of this machine that leads to a port of a pod.
type forwarding struct {
	address string
	stop    func()
}

// forward finds the pod of the scheduler that leads, and forwards a port to it through the API
// server.
func (f *sessionFlags) forward(ctx context.Context, config *rest.Config) (*forwarding, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, explainConfig(err)
	}
	pod, err := f.leader(ctx, client)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, explainConfig(err)
	}
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	ready, stop, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", f.port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	go func() { ended <- forwarder.ForwardPorts() }()
	fail := func(err error) (*forwarding, error) {
		return nil, fmt.Errorf("no port can be forwarded to pod %s/%s: %w; the user needs the verb create for pods/portforward, or name the address with --scheduler-address", pod.Namespace, pod.Name, err)
	}
	select {
	case err := <-ended:
		return fail(err)
	case <-ctx.Done():
		close(stop)
		return nil, ctx.Err()
	case <-time.After(time.Minute):
		close(stop)
		return fail(fmt.Errorf("no answer within a minute"))
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return fail(err)
	}
	return &forwarding{fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() { close(stop); <-ended }}, nil
}

// leader returns the pod of the scheduler that holds the lease. The identity of a holder begins
// with the name of its host, which is that of its pod.
func (f *sessionFlags) leader(ctx context.Context, client kubernetes.Interface) (*corev1.Pod, error) {
	lease, err := client.CoordinationV1().Leases(f.leaseNamespace).Get(ctx, f.leaseName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no lease %s/%s; check that berth-scheduler runs, and --lease-namespace and --lease-name", f.leaseNamespace, f.leaseName)
	case err != nil:
		return nil, fmt.Errorf("the lease of berth-scheduler cannot be read: %w", err)
	case lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "":
		return nil, fmt.Errorf("no berth-scheduler holds the lease %s/%s", f.leaseNamespace, f.leaseName)
	}
	name, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_")
	pod, err := client.CoreV1().Pods(f.leaseNamespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("berth-scheduler runs on host %s, which is not a pod in namespace %s; name its address with --scheduler-address", name, f.leaseNamespace)
	}
	if err != nil {
		return nil, fmt.Errorf("the pod of berth-scheduler cannot be read: %w", err)
	}
	return pod, nil
}
