package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/admission"
	"github.com/berth-project/berth/kube/internal/certificate"
	"github.com/berth-project/berth/kube/internal/controller"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/metrics"
	"github.com/berth-project/berth/kube/internal/workload"
	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
)

// ControllerName is the name of the controller, of its lease and of its service account.
const ControllerName = "berth-controller"

// modeOff is the value of --webhook-mode without a webhook.
const modeOff = "off"

// controllerFlags are the flags of berth-controller.
type controllerFlags struct {
	kubeconfig, configuration string
	names                     []string
	devicesEnforced           bool
	evictions                 bool
	modelsDirectory           string
	nodeClass                 string
	electionFlags
	address              string
	webhookAddress       string
	webhookMode          string
	webhookService       string
	webhookHosts         []string
	webhookSecret        string
	webhookConfiguration string
	webhookCheck         time.Duration
	webhookLifetime      time.Duration
	webhookAuthority     time.Duration
	webhookSettle        time.Duration
	qps                  float32
	burst                int
	verbose              bool
}

func (f *controllerFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster; without it, the service account of the pod is used")
	set.StringVar(&f.configuration, "config", "", "the file with the SchedulerConfiguration of berth-scheduler; without it, the default profile is used")
	set.StringSliceVar(&f.names, "scheduler-name", []string{DefaultName}, "the scheduler names of berth-scheduler; the first is that of models that name none")
	set.BoolVar(&f.devicesEnforced, "devices-enforced", false, "the value of this flag of berth-scheduler: whether models may hold parts of devices")
	set.BoolVar(&f.evictions, "evictions", true, "the value of this flag of berth-scheduler: whether pods may be evicted to make room for models")
	set.StringVar(&f.modelsDirectory, "models-directory", "", "a directory with the files of models, from which the paths under source are read; \"\" for none")
	set.StringVar(&f.nodeClass, "node-class", "", "the GROUP/KIND/NAME of the node class of the NodeClaims that are created for models with an instance type, such as karpenter.k8s.aws/EC2NodeClass/default; \"\": none are created")
	f.electionFlags.add(set, "write objects", ControllerName)
	set.StringVar(&f.address, "address", ":10273", "where /livez, /readyz and /metrics are served; \"\" for nowhere")
	set.StringVar(&f.webhookAddress, "webhook-address", ":9443", "where admission requests are answered, by TLS")
	set.StringVar(&f.webhookMode, "webhook-mode", admission.Deny, "what happens to a model that no node can ever serve: deny, warn, or off for no webhook")
	set.StringVar(&f.webhookService, "webhook-service", "kube-system/berth-webhook", "the namespace and name of the Service by which the API server reaches the webhook")
	set.StringSliceVar(&f.webhookHosts, "webhook-host", nil, "further names or addresses by which the API server reaches the webhook")
	set.StringVar(&f.webhookSecret, "webhook-secret", "kube-system/berth-webhook", "the namespace and name of the Secret with the certificate of the webhook, which is created and renewed")
	set.StringVar(&f.webhookConfiguration, "webhook-configuration", "berth-models", "the ValidatingWebhookConfiguration to which the certificate authority is written; \"\" for none")
	set.DurationVar(&f.webhookCheck, "webhook-check-every", time.Minute, "how often the certificate of the webhook is checked")
	set.DurationVar(&f.webhookLifetime, "webhook-certificate-lifetime", 365*24*time.Hour, "how long a certificate of the webhook is valid; it is renewed after two thirds of that")
	set.DurationVar(&f.webhookAuthority, "webhook-authority-lifetime", 10*365*24*time.Hour, "how long a certificate authority of the webhook is valid; it is renewed after nine tenths of that")
	set.DurationVar(&f.webhookSettle, "webhook-authority-settle", 5*time.Minute, "how long API servers may take to know a new certificate authority")
	set.Float32Var(&f.qps, "kube-api-qps", 100, "how many requests per second are sent to the API server")
	set.IntVar(&f.burst, "kube-api-burst", 200, "how many requests may be sent at once")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "log more")
}

// Controller runs berth-controller until it is told to stop, and returns the exit code. Logs and
// errors are written to stderr. A program with plugins of its own passes a registry that has them,
// as to Main.
func Controller(registry *engine.Registry, args []string, stderr io.Writer) int {
	var f controllerFlags
	set := pflag.NewFlagSet(ControllerName, pflag.ContinueOnError)
	set.SetOutput(stderr)
	f.add(set)
	err := set.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		return exitOK
	}
	if err == nil && set.NArg() > 0 {
		err = fmt.Errorf("%q is not a flag; see --help", set.Arg(0))
	}
	var profiles []engine.NamedProfile
	if err == nil {
		profiles, err = readProfiles(f.configuration, f.evictions)
	}
	if err == nil {
		f.names, err = schedulerNames(profiles, f.names, set.Changed("scheduler-name"))
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		fmt.Fprintln(stderr, ControllerName+":", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx, registry, profiles, stderr); err != nil {
		fmt.Fprintln(stderr, ControllerName+":", err)
		return exitError
	}
	return exitOK
}

// check returns what is wrong with the values of flags.
func (f *controllerFlags) check() error {
	if !slices.Contains([]string{admission.Deny, admission.Warn, modeOff}, f.webhookMode) {
		return fmt.Errorf("--webhook-mode %s: want deny, warn or off", f.webhookMode)
	}
	for flag, value := range map[string]string{"--webhook-service": f.webhookService, "--webhook-secret": f.webhookSecret} {
		if namespace, name, found := strings.Cut(value, "/"); !found || namespace == "" || name == "" {
			return fmt.Errorf("%s %s: want NAMESPACE/NAME", flag, value)
		}
	}
	if _, err := controller.ParseNodeClass(f.nodeClass); err != nil {
		return fmt.Errorf("--node-class %w", err)
	}
	if f.modelsDirectory == "" {
		return nil
	}
	if info, err := os.Stat(f.modelsDirectory); err != nil || !info.IsDir() {
		return fmt.Errorf("--models-directory %s: it is no directory", f.modelsDirectory)
	}
	return nil
}

// run runs the controller until the context ends.
func (f *controllerFlags) run(ctx context.Context, registry *engine.Registry, profiles []engine.NamedProfile, stderr io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("%w; name a kubeconfig file with --kubeconfig", err)
	}
	log := newLog(stderr, f.verbose)
	own, err := kubernetes.NewForConfig(otherConfig(config)) // for the lease and the certificate
	if err != nil {
		return err
	}
	election, err := f.election(own)
	if err != nil {
		return err
	}
	clients, err := newClients(config, election.left, f.qps, f.burst)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.events.EventsV1()})
	defer broadcaster.Shutdown()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	worlds, err := f.worlds(registry, profiles)
	if err != nil {
		return err
	}
	class, err := controller.ParseNodeClass(f.nodeClass)
	if err != nil {
		return err
	}
	c, err := controller.New(controller.Options{
		Client: clients.typed, Dynamic: clients.dynamic, Mapper: clients.mapper, World: worlds[0], Others: worlds[1:], Held: election.held, Log: log, NodeClass: class,
		Events: broadcaster.NewRecorder(scheme.Scheme, ControllerName),
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	server, err := f.serve(ctx, c, worlds[1], own, log)
	if err != nil {
		return err
	}
	defer server.stop()
	return election.run(ctx, stop, c.Run)
}

// worlds returns the world of the controller and that of the webhook. Each has a State of its own,
// so that a request need not wait for a turn of the controller.
func (f *controllerFlags) worlds(registry *engine.Registry, profiles []engine.NamedProfile) ([]*controller.World, error) {
	own := slices.Clone(profiles)
	for i, p := range own { // a model has no pod yet that the filters of Kubernetes could read
		own[i].Plugins = slices.DeleteFunc(slices.Clone(p.Plugins), func(c engine.PluginConfig) bool { return c.Name == intree.Name })
	}
	var out []*controller.World
	for i := range 2 {
		e, err := engine.NewProfiles(registry, own)
		if err != nil {
			return nil, err
		}
		out = append(out, controller.NewWorld(controller.WorldOptions{
			Engine: e, SchedulerNames: f.names, Profiles: profiles[0].Name != "", Workload: workload.Options{SchedulerName: f.names[0], DevicesEnforced: f.devicesEnforced},
			ModelsDirectory: f.modelsDirectory, AdmitOnly: i == 1, Clock: time.Now,
		}))
	}
	return out, nil
}

// serve starts the servers of probes, metrics and the webhook.
func (f *controllerFlags) serve(ctx context.Context, c *controller.Controller, w *controller.World, client kubernetes.Interface, log *slog.Logger) (*servers, error) {
	var out servers
	figures := metrics.NewController()
	var keeper *certificate.Keeper
	if f.webhookMode != modeOff {
		namespace, name, _ := strings.Cut(f.webhookSecret, "/")
		keeper = certificate.New(certificate.Options{Client: client, Namespace: namespace, Secret: name, Configuration: f.webhookConfiguration, Hosts: f.hosts(), Log: log,
			Every: f.webhookCheck, Server: f.webhookLifetime, Authority: f.webhookAuthority, Settle: f.webhookSettle})
		go keeper.Run(ctx)
		mux := http.NewServeMux()
		mux.Handle(admission.Path, &admission.Handler{Cluster: w, Mode: f.webhookMode, Ready: c.Synced, Log: log, Observe: figures.Admission})
		if err := out.start("--webhook-address", f.webhookAddress, keeper.TLS(), mux, log); err != nil {
			return nil, err
		}
	}
	if f.address == "" {
		return &out, nil
	}
	mux := http.NewServeMux()
	checks := func() []check {
		loop := check{name: "loop"}
		if since := time.Since(c.Turned()); since > stuckAfter {
			loop.err = fmt.Errorf("no turn of the loop has ended for %s", since.Round(time.Second))
		}
		return []check{loop}
	}
	mux.HandleFunc("/livez", func(w http.ResponseWriter, r *http.Request) { probe(w, r, checks()) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		caches, webhook := check{name: "caches"}, check{name: "webhook"}
		if !c.Synced() {
			caches.err = errors.New("not all objects are known yet")
		}
		if keeper != nil && !keeper.HasCertificate() {
			webhook.err = errors.New("there is no certificate yet")
		}
		probe(w, r, append(checks(), caches, webhook))
	})
	mux.Handle("/metrics", figures.Handler())
	if err := out.start("--address", f.address, nil, mux, log); err != nil {
		out.stop()
		return nil, err
	}
	return &out, nil
}

// hosts returns the names by which the API server reaches the webhook.
func (f *controllerFlags) hosts() []string {
	namespace, name, _ := strings.Cut(f.webhookService, "/")
	out := []string{name + "." + namespace + ".svc", name + "." + namespace + ".svc.cluster.local", "localhost", net.IPv4(127, 0, 0, 1).String()}
	return append(out, f.webhookHosts...)
}
