package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// loopback is the address of every component.
const loopback = "127.0.0.1"

// command is how a component is run and how its readiness is found out.
type command struct {
	args    []string
	ready   func(context.Context) error
	install func(context.Context) error // what the component needs before it starts; may be nil
}

// prepare reserves ports, creates certificates and the kubeconfig file, and returns the
// command of every component.
func (cp *ControlPlane) prepare() (map[Component]command, error) {
	port := map[Component]string{}
	for _, c := range components {
		var err error
		if port[c], err = cp.ports.reserve(); err != nil {
			return nil, err
		}
	}
	peer, err := cp.ports.reserve()
	if err != nil {
		return nil, err
	}
	if err := cp.prepareAccess(port[APIServer]); err != nil {
		return nil, err
	}
	check, err := checks(cp.config)
	if err != nil {
		return nil, err
	}
	lws, err := cp.lwsArgs(port[LWS])
	if err != nil {
		return nil, err
	}
	return map[Component]command{
		Etcd:              {args: cp.etcdArgs(port[Etcd], peer), ready: check("http", port[Etcd], "/health")},
		APIServer:         {args: cp.apiServerArgs(port[APIServer], port[Etcd]), ready: check("https", port[APIServer], "/readyz")},
		ControllerManager: {args: cp.controllerManagerArgs(port[ControllerManager]), ready: check("https", port[ControllerManager], "/healthz")},
		Scheduler:         {args: cp.clientArgs(port[Scheduler]), ready: check("https", port[Scheduler], "/readyz")},
		Kwok:              {args: cp.kwokArgs(port[Kwok]), ready: check("http", port[Kwok], "/healthz")},
		LWS: {
			args: lws, ready: check("https", port[LWS], lastLWSWebhook),
			install: func(ctx context.Context) error { return cp.installLWS(ctx, port[LWS]) },
		},
	}, nil
}

// prepareAccess creates the certificates, the client configuration and the kubeconfig file.
func (cp *ControlPlane) prepareAccess(port string) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	server, err := ca.server()
	if err != nil {
		return err
	}
	admin, err := ca.client("admin", "system:masters")
	if err != nil {
		return err
	}
	_, accounts, err := newKey()
	if err != nil {
		return err
	}
	err = errors.Join(
		os.WriteFile(cp.path("ca.crt"), ca.pem, 0o644),
		os.WriteFile(cp.path("accounts.key"), accounts, 0o600),
		server.write(cp.dir, "server"),
	)
	if err != nil {
		return err
	}
	cp.config = &rest.Config{
		Host:            "https://" + net.JoinHostPort(loopback, port),
		TLSClientConfig: rest.TLSClientConfig{CAData: ca.pem, CertData: admin.certificate, KeyData: admin.key},
		QPS:             1000,
		Burst:           2000,
	}
	if cp.client, err = kubernetes.NewForConfig(cp.config); err != nil {
		return err
	}
	cp.kubeconfig = cp.path("kubeconfig")
	return writeKubeconfig(cp.kubeconfig, cp.config)
}

func writeKubeconfig(path string, config *rest.Config) error {
	const name = "berth-test"
	file := clientcmdapi.NewConfig()
	file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	file.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	file.CurrentContext = name
	return clientcmd.WriteToFile(*file, path)
}

func (cp *ControlPlane) path(name string) string { return filepath.Join(cp.dir, name) }

// etcdArgs turns off the synchronisation of writes with the disk. What is written then
// survives the end of etcd, but not the end of the machine.
func (cp *ControlPlane) etcdArgs(port, peer string) []string {
	clients, peers := "http://"+net.JoinHostPort(loopback, port), "http://"+net.JoinHostPort(loopback, peer)
	return []string{
		"--name=default",
		"--data-dir=" + cp.path("etcd"),
		"--listen-client-urls=" + clients,
		"--advertise-client-urls=" + clients,
		"--listen-peer-urls=" + peers,
		"--initial-advertise-peer-urls=" + peers,
		"--initial-cluster=default=" + peers,
		"--unsafe-no-fsync=true",
	}
}

// apiServerArgs turns off the admission plugin for service accounts, which rejects pods in
// a namespace until the controller manager has created a service account there, and the
// endpoints of the service "kubernetes", which may not be loopback addresses.
func (cp *ControlPlane) apiServerArgs(port, etcd string) []string {
	return []string{
		"--etcd-servers=http://" + net.JoinHostPort(loopback, etcd),
		"--bind-address=" + loopback,
		"--advertise-address=" + loopback,
		"--secure-port=" + port,
		"--endpoint-reconciler-type=none",
		"--cert-dir=" + cp.dir,
		"--tls-cert-file=" + cp.path("server.crt"),
		"--tls-private-key-file=" + cp.path("server.key"),
		"--client-ca-file=" + cp.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + cp.path("accounts.key"),
		"--service-account-signing-key-file=" + cp.path("accounts.key"),
		"--service-cluster-ip-range=10.0.0.0/16",
		"--disable-admission-plugins=ServiceAccount",
		"--allow-privileged=true",
	}
}

// clientArgs are the flags that kube-controller-manager and kube-scheduler have in common.
func (cp *ControlPlane) clientArgs(port string) []string {
	return []string{
		"--kubeconfig=" + cp.kubeconfig,
		"--authentication-kubeconfig=" + cp.kubeconfig,
		"--authorization-kubeconfig=" + cp.kubeconfig,
		"--bind-address=" + loopback,
		"--secure-port=" + port,
		"--tls-cert-file=" + cp.path("server.crt"),
		"--tls-private-key-file=" + cp.path("server.key"),
		"--leader-elect=false",
	}
}

func (cp *ControlPlane) controllerManagerArgs(port string) []string {
	return append(cp.clientArgs(port),
		"--service-account-private-key-file="+cp.path("accounts.key"),
		"--root-ca-file="+cp.path("ca.crt"),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
	)
}

// kwokArgs lets kwok act as the kubelet of the nodes that AddNodes creates.
func (cp *ControlPlane) kwokArgs(port string) []string {
	return []string{
		"--kubeconfig=" + cp.kubeconfig,
		"--manage-all-nodes=false",
		"--manage-nodes-with-annotation-selector=" + fakeNode + "=" + fakeNodeValue,
		"--node-lease-duration-seconds=40",
		"--server-address=" + net.JoinHostPort(loopback, port),
		"--node-port=" + port,
	}
}

// checks returns a function that makes readiness checks, which request a path from a
// server on the loopback address with the credentials of the given configuration.
func checks(config *rest.Config) (func(scheme, port, path string) func(context.Context) error, error) {
	certificate, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(config.CAData)
	client := &http.Client{Timeout: checkTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
	}}
	return func(scheme, port, path string) func(context.Context) error {
		url := scheme + "://" + net.JoinHostPort(loopback, port) + path
		return func(ctx context.Context) error { return get(ctx, client, url) }
	}, nil
}

// get returns an error unless the answer has the status 200.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, answer.Status, body)
	}
	return nil
}
