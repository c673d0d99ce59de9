package ctl

import (
	"fmt"
	"time"

	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/feed"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// flags are the flags of all commands.
type flags struct {
	kubeconfig, configuration, now string
	file                           string
	modelsDirectory                string
	access                         clientcmd.ConfigOverrides
	names                          []string
	namesGiven                     func() bool // whether --scheduler-name is given
	profiled                       bool        // the names are those of profiles
	evictions, devicesEnforced     bool
	rejectionPause                 time.Duration
}

// shown are the flags of access that the help lists, with their meaning. The others are
// those of kubectl, too.
var shown = map[string]string{
	"context":         "the context of the kubeconfig file",
	"namespace":       "the namespace of names that have none",
	"as":              "the user name with which the cluster is read",
	"request-timeout": "how long a request to the API server may take, such as 10s; 0 for any time",
}

func (f *flags) add(set *pflag.FlagSet, defaultName string) {
	access := pflag.NewFlagSet("", pflag.ContinueOnError)
	clientcmd.BindOverrideFlags(&f.access, access, clientcmd.RecommendedConfigOverrideFlags(""))
	access.VisitAll(func(flag *pflag.Flag) {
		if text, isShown := shown[flag.Name]; isShown {
			flag.Usage = text
		} else {
			flag.Hidden = true
		}
		set.AddFlag(flag)
	})
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "the kubeconfig file of the cluster (default: as kubectl)")
	set.StringVarP(&f.file, "filename", "f", "", "a file that \"snapshot --objects\" wrote, to read instead of the API server; - for standard input")
	set.StringVar(&f.configuration, "config", "", "the file with a SchedulerConfiguration that berth-scheduler reads")
	set.StringSliceVar(&f.names, "scheduler-name", []string{defaultName}, "the values of spec.schedulerName of the pods that berth-scheduler places (may be repeated); if the configuration has profiles, their names are used instead")
	f.namesGiven = func() bool { return set.Changed("scheduler-name") }
	set.BoolVar(&f.evictions, "evictions", true, "pods may be evicted for others, as with the flag of berth-scheduler")
	set.BoolVar(&f.devicesEnforced, "devices-enforced", false, "pods may request parts of devices, as with the flag of berth-scheduler")
	set.DurationVar(&f.rejectionPause, "rejection-pause", time.Minute, "how long a node is avoided after its kubelet rejected a pod, as with the flag of berth-scheduler")
	set.StringVar(&f.modelsDirectory, "models-directory", "", "a directory with the files of models, from which the paths under source of Models are read, as with the flag of berth-controller")
	set.StringVar(&f.now, "now", "", "the time at which to decide, such as 2026-01-02T15:04:05Z (default: the time of the clock)")
}

// nameProfiles replaces the scheduler names by those of the profiles, if they have names.
func (f *flags) nameProfiles(profiles []engine.NamedProfile, names func([]engine.NamedProfile, []string, bool) ([]string, error)) (err error) {
	f.names, err = names(profiles, f.names, f.namesGiven())
	f.profiled = profiles[0].Name != ""
	return err
}

func (f *flags) feed() feed.Options {
	return feed.Options{SchedulerNames: f.names, Profiles: f.profiled, DevicesEnforced: f.devicesEnforced, RejectionPause: int64(f.rejectionPause)}
}

// time returns the time of the decisions, in nanoseconds since 1970.
func (f *flags) time(clock func() time.Time) (int64, error) {
	if f.now == "" {
		return clock().UnixNano(), nil
	}
	at, err := time.Parse(time.RFC3339, f.now)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return 0, fmt.Errorf("--now %s: want a time between 1970 and 2200, such as 2026-01-02T15:04:05Z", f.now)
	}
	return at.UnixNano(), nil
}

// connect returns the configuration of a client, and the namespace of names without one.
func (f *flags) connect() (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = f.kubeconfig
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &f.access)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, "", explainConfig(err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, "", explainConfig(err)
	}
	config = rest.CopyConfig(config)
	config.QPS, config.UserAgent = -1, rest.DefaultKubernetesUserAgent()
	return config, namespace, nil
}
