// Package command is the program berth-scheduler, for schedulers with plugins of their own:
//
//	func main() {
//		registry := standard.Registry() // the plugins that are included in Berth
//		if err := registry.RegisterPluginBuilder(mine.Name, mine.New); err != nil {
//			log.Fatal(err)
//		}
//		os.Exit(command.Main(registry, os.Args[1:], os.Stderr))
//	}
//
// A plugin that is registered takes part when a SchedulerConfiguration names it.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/ctl"
	"github.com/berth-project/berth/kube/internal/lease"
	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/berth-project/berth/kube/internal/trace"
	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
)

// The exit codes of Main.
const (
	exitOK    = 0
	exitError = 1 // the scheduler could not start, could not go on, or lost its lease
	exitUsage = 2 // a flag or the configuration is wrong
)

// DefaultName is the value of spec.schedulerName of the pods that berth-scheduler places.
const DefaultName = "berth-scheduler"

// flags are the command-line flags.
type flags struct {
	kubeconfig, configuration string
	names                     []string
	dryRun, evictions         bool
	devicesEnforced           bool
	electionFlags
	parallel               int
	evictionRate           float32
	hold                   time.Duration
	rejectionPause         time.Duration
	address, secureAddress string
	certificate, key       string
	qps                    float32
	burst                  int
	profiling              bool
	traceEndpoint          string
	traceRate              int32
	verbose                bool
}

func (f *flags) add(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster; without it, the service account of the pod is used")
	set.StringVar(&f.configuration, "config", "", "a file with a SchedulerConfiguration; without it, the default profile is used")
	set.StringSliceVar(&f.names, "scheduler-name", []string{DefaultName}, "the values of spec.schedulerName of the pods to place; if the configuration has profiles, their names are used instead")
	set.BoolVar(&f.dryRun, "dry-run", false, "decide and log, and change nothing in the cluster")
	set.BoolVar(&f.evictions, "evictions", true, "evict pods to make room for others, as queues and priorities say")
	set.Float32Var(&f.evictionRate, "eviction-rate", 10, "how many pods are evicted per second")
	set.BoolVar(&f.devicesEnforced, "devices-enforced", false, "containers get the devices that the annotation "+feed.AnnotationDevices+" lists, so that pods may request parts of devices")
	f.electionFlags.add(set, "schedule", DefaultName)
	set.IntVar(&f.parallel, "parallel", 32, "how many bindings and evictions may be under way at the same time")
	set.DurationVar(&f.hold, "hold", 5*time.Minute, "how long room is reserved for a pod for which others are evicted")
	set.DurationVar(&f.rejectionPause, "rejection-pause", time.Minute, "how long a node is avoided by pods like one that its kubelet rejected")
	set.StringVar(&f.address, "address", ":10271", "where /livez, /readyz and /metrics are served; \"\" for nowhere")
	set.Float32Var(&f.qps, "kube-api-qps", 500, "how many requests per second are sent to the API server")
	set.IntVar(&f.burst, "kube-api-burst", 1000, "how many requests may be sent at once")
	set.StringVar(&f.secureAddress, "secure-address", ":10272", "where /debug/sessions and /metrics are served by TLS to users of the cluster with the permission; \"\" for nowhere")
	set.StringVar(&f.certificate, "tls-cert-file", "", "the certificate of the secure address (default: one that is signed by itself)")
	set.StringVar(&f.key, "tls-private-key-file", "", "the key of --tls-cert-file")
	set.BoolVar(&f.profiling, "profiling", false, "serve /debug/pprof at the secure address")
	set.StringVar(&f.traceEndpoint, "tracing-endpoint", "", "the host:port of an OpenTelemetry collector that receives spans by OTLP over gRPC, without TLS; \"\" for none")
	set.Int32Var(&f.traceRate, "tracing-sampling-rate-per-million", 10_000, "how many of a million sessions are sent to the collector, with a span for each job and hook")
	set.BoolVarP(&f.verbose, "verbose", "v", false, "log every decision")
}

// Main runs berth-scheduler until it is told to stop, and returns the exit code. Logs and
// errors are written to stderr.
func Main(registry *engine.Registry, args []string, stderr io.Writer) int {
	var f flags
	set := pflag.NewFlagSet(DefaultName, pflag.ContinueOnError)
	set.SetOutput(stderr)
	f.add(set)
	switch err := set.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		return exitOK
	case err == nil && set.NArg() > 0:
		err = fmt.Errorf("%q is not a flag; see --help", set.Arg(0))
		fallthrough
	case err != nil:
		fmt.Fprintln(stderr, "berth-scheduler:", err)
		return exitUsage
	}
	profiles, err := readProfiles(f.configuration, f.evictions)
	if err == nil {
		f.names, err = schedulerNames(profiles, f.names, set.Changed("scheduler-name"))
	}
	if err == nil {
		err = f.check()
	}
	if err != nil {
		fmt.Fprintln(stderr, "berth-scheduler:", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := f.run(ctx, registry, profiles, stderr); err != nil {
		fmt.Fprintln(stderr, "berth-scheduler:", err)
		return exitError
	}
	return exitOK
}

// check returns what is wrong with the values of flags. A dry run takes no lease, which would
// keep the real scheduler from leading.
func (f *flags) check() error {
	f.leaderElect = f.leaderElect && !f.dryRun
	switch {
	case f.parallel < 1:
		return fmt.Errorf("--parallel: want at least 1, have %d", f.parallel)
	case f.evictionRate <= 0:
		return fmt.Errorf("--eviction-rate: want more than 0, have %g; --evictions=false turns evictions off", f.evictionRate)
	case f.hold <= 0 || f.rejectionPause < 0:
		return errors.New("--hold and --rejection-pause: want durations above 0")
	case f.traceRate < 0 || f.traceRate > 1_000_000:
		return fmt.Errorf("--tracing-sampling-rate-per-million: want 0 to 1000000, have %d", f.traceRate)
	case (f.certificate == "") != (f.key == ""):
		return errors.New("--tls-cert-file and --tls-private-key-file: want both or neither")
	case f.profiling && f.secureAddress == "":
		return errors.New("--profiling: want a --secure-address, where profiles are served")
	}
	return nil
}

// run runs the scheduler until the context ends.
func (f *flags) run(ctx context.Context, registry *engine.Registry, profiles []engine.NamedProfile, stderr io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	if err != nil {
		return fmt.Errorf("%w; name a kubeconfig file with --kubeconfig", err)
	}
	log := newLog(stderr, f.verbose)
	electionClient, err := kubernetes.NewForConfig(otherConfig(config))
	if err != nil {
		return err
	}
	election, err := f.election(electionClient)
	if err != nil {
		return err
	}
	clients, err := newClients(config, election.left, f.qps, f.burst)
	if err != nil {
		return err
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: clients.events.EventsV1()})
	defer broadcaster.Shutdown()
	if !f.dryRun {
		if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
			return err
		}
	}
	tracer, err := trace.Start(ctx, trace.Options{Endpoint: f.traceEndpoint, RatePerMillion: f.traceRate, Service: DefaultName})
	if err != nil {
		return fmt.Errorf("--tracing-endpoint: %w", err)
	}
	defer tracer.Stop()
	configuration, err := ctl.Configuration(f.configuration, profiles[0].Plugins)
	if err != nil {
		return err
	}
	s, err := scheduler.New(scheduler.Options{
		Client: clients.typed, Dynamic: clients.dynamic, Mapper: clients.mapper, Registry: registry, Profiles: profiles, Configuration: configuration,
		Feed: feed.Options{SchedulerNames: f.names, Profiles: profiles[0].Name != "", DevicesEnforced: f.devicesEnforced, RejectionPause: int64(f.rejectionPause)},
		Held: election.held, DryRun: f.dryRun, Parallel: f.parallel, Hold: f.hold, EvictionRate: f.evictionRate,
		Events: broadcaster.NewRecorder(scheme.Scheme, f.names[0]), Log: log, Tracer: tracer,
	})
	if err != nil {
		return err
	}
	server, err := f.serve(s, clients.reviews, log)
	if err != nil {
		return err
	}
	defer server.stop()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	return election.run(ctx, stop, s.Run)
}

// clients are the clients of a scheduler. The lease, events and reviews of the secure address have
// clients of their own, so that many requests of one sort do not delay those of another.
type clients struct {
	typed, events, reviews kubernetes.Interface
	dynamic                dynamic.Interface
	mapper                 *restmapper.DeferredDiscoveryRESTMapper
}

// newClients returns clients of which typed and dynamic change objects only while time is left.
func newClients(config *rest.Config, left func() time.Duration, qps float32, burst int) (*clients, error) {
	other := otherConfig(config)
	config = lease.Fence(config, left)
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.QPS, config.Burst = qps, burst
	binary := rest.CopyConfig(config)
	binary.AcceptContentTypes, binary.ContentType = "application/vnd.kubernetes.protobuf,application/json", "application/vnd.kubernetes.protobuf"
	c := &clients{}
	var errs [4]error
	c.typed, errs[0] = kubernetes.NewForConfig(binary)
	c.events, errs[1] = kubernetes.NewForConfig(other)
	c.dynamic, errs[2] = dynamic.NewForConfig(config)
	c.reviews, errs[3] = kubernetes.NewForConfig(other)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	d, err := discovery.NewDiscoveryClientForConfig(other)
	if err != nil {
		return nil, err
	}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(d))
	return c, nil
}

// otherConfig returns the configuration of clients that send few requests.
func otherConfig(config *rest.Config) *rest.Config {
	other := rest.CopyConfig(config)
	other.UserAgent = rest.DefaultKubernetesUserAgent()
	other.QPS, other.Burst = 50, 200
	return other
}
