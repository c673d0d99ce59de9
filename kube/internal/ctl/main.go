// Package ctl is the command line of kubectl-berth. It lists the objects of a cluster, makes a
// State and an Engine of them as berth-scheduler does, and answers with the words of berth. It
// changes nothing in the cluster.
package ctl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
)

// Options of Main.
type Options struct {
	Registry *engine.Registry // the filters of Kubernetes are added to it
	// Profiles returns the profiles of berth-scheduler, given the name of a configuration file,
	// which may be "", and whether pods are evicted for others.
	Profiles func(configuration string, evictions bool) ([]engine.NamedProfile, error)
	// Names returns the scheduler names of berth-scheduler, given the profiles, the value of
	// --scheduler-name, and whether the flag is given.
	Names       func(profiles []engine.NamedProfile, names []string, given bool) ([]string, error)
	DefaultName string // the default of --scheduler-name
	Clock       func() time.Time
}

// program is what all commands share.
type program struct {
	options Options
	answers *root.Answers
	stdin   io.Reader
	flags   flags
	current *inputs // what the engine that is built next reads
	noted   bool    // the notes about objects are written
}

// name is what a user types.
const name = "kubectl berth"

// Main runs the command line and returns the exit code: 0 if the command succeeds, 1 if the
// answer is no, 2 for bad input or usage or if the cluster cannot be read, 3 for a bug.
func Main(o Options, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return root.Run(name, args, stdin, stdout, stderr, func(a *root.Answers) *cobra.Command {
		return (&program{options: o, answers: a, stdin: stdin}).root()
	})
}

func (p *program) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "kubectl-berth",
		Short: "Explains what Berth does with the pods and models of a cluster",
		Long: `Explains what Berth does with the pods and models of a cluster, and why.

It reads objects from the API server and decides as berth-scheduler would at this
moment, with the same profile and with the filters of Kubernetes. berth-scheduler
need not run. Nothing in the cluster changes.

The exit code is 0 if the command succeeds, 1 if the answer is no (a task is
pending and --fail-on-pending is set), 2 for bad input or usage or if the cluster
cannot be read, and 3 for a bug in Berth.`,
		Example: `  kubectl berth why train-0
  kubectl berth models
  kubectl berth whatif --add-nodes NVIDIA-L4=2
  kubectl berth snapshot | berth simulate -`,
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: name},
	}
	p.flags.add(c.PersistentFlags(), p.options.DefaultName)
	c.AddCommand(p.why(), p.whatif(), p.queues(), p.simulate(), p.snapshot(), p.top(), p.models(), p.estimate())
	return c
}

func (p *program) why() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "why POD|JOB|model/NAME",
		Short: "Explain why a pod, a gang or a model is placed where it is, or why it is pending",
		Long: `Explains why a pod is placed where it is. If it is pending, it explains why, and
lists the smallest changes with which it would be placed. Each of these changes
was tried in a simulation. The answer for a pod of a gang is about the gang.

A pod is named by POD or pod/POD. A gang is named by the object that it belongs
to, such as job/NAME, podgroup/NAME or jobset/NAME, by group/NAME if its pods name
it by a label, or by its ID, such as batchjob/NAMESPACE/NAME. KIND/NAMESPACE/NAME
names a workload of another namespace than that of -n.

model/NAME is a Model. The answer is about its first replica that is pending, in
all forms that it may take, and not about the pod that waits in one of them.
model/NAME-2 is its third replica. The changes that are tried include settings of
the Model. With -o json, each has the arguments of "kubectl berth whatif" that
make it.`,
		Example: "  kubectl berth why train-0\n  kubectl berth why job/train -n research -o json\n  kubectl berth why model/chat",
		Args:    oneArg("the name of a pod, of a job or of a model"),
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := p.read()
			if err != nil {
				return err
			}
			return p.runWhy(w, args[0], output)
		},
	}
	root.OutputFlag(c, &output, "text", "json")
	return c
}

// runWhy answers why the workload that the text names is placed where it is, or is pending.
func (p *program) runWhy(w *world, text, output string) error {
	r := parseReference(text, w.namespace)
	if r.kind == kindModel {
		return p.whyModel(w, r, output)
	}
	in, err := p.build(w)
	if err != nil {
		return err
	}
	id, err := p.workload(w, in, text)
	var unknown *unknownError
	if errors.As(err, &unknown) && r.kind == "" {
		if _, _, noModel := w.findModel(r); noModel == nil {
			return p.whyModel(w, r, output)
		}
	}
	if err != nil {
		return err
	}
	if why := whyIdle(w, in, id); why != "" {
		return fmt.Errorf("%s is not scheduled: %s", id, why)
	}
	in.trials.subject = id
	return p.answers.Why(in.cluster(), id, output)
}

func (p *program) queues() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "queues",
		Short: "Show the quota, use and fair share of each queue, and how the share is computed",
		Long: `Shows the tree of queues as it is now: for each queue and resource the quota, the
limit, what its jobs request, what they use, the fair share, and how this share is
computed. "berth queues --help" explains the columns.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			w, err := p.read()
			if err != nil {
				return err
			}
			in, err := p.build(w)
			if err != nil {
				return err
			}
			p.noteQueueKind(w)
			return p.answers.Queues(in.cluster(), in.profiles[0].Plugins, output)
		},
	}
	root.OutputFlag(c, &output, "table", "json")
	return c
}

func (p *program) simulate() *cobra.Command {
	var o root.SimulateOptions
	c := &cobra.Command{
		Use:   "simulate",
		Short: "Show on which nodes and devices the pending pods would be placed",
		Long: `Shows on which nodes and devices the pending pods would be placed, which pods
would be evicted for them, and which would stay pending and why. The filters of
Kubernetes take part, as they do in berth-scheduler.

For the input of a session of berth-scheduler ("kubectl berth snapshot --session
N FILE", then "kubectl berth simulate -f FILE") it runs this session again, and
says whether it decided the same.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if p.flags.file != "" {
				data, err := p.readInput(p.stdin)
				if err != nil {
					return err
				}
				if isSnapshot(data) {
					return p.simulateSession(p.flags.file, data, o)
				}
				p.stdin = bytes.NewReader(data)
			}
			w, err := p.read()
			if err != nil {
				return err
			}
			in, err := p.build(w)
			if err != nil {
				return err
			}
			return p.answers.Simulate(in.cluster(), o)
		},
	}
	root.OutputFlag(c, &o.Output, "table", "wide", "json", "yaml")
	c.Flags().BoolVar(&o.Explain, "explain", false, "list all feasible nodes and groups of each decision, and all nodes of each refusal (json and yaml only)")
	c.Flags().BoolVar(&o.FailOnPending, "fail-on-pending", false, "exit with 1 if any task is still pending")
	return c
}

// noArgs returns an error if there are arguments.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, and %q is one; the cluster is read from the API server", c.CommandPath(), args[0])
	}
	return nil
}

// oneArg requires one argument. The errors say what it is.
func oneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) > 1 {
			return fmt.Errorf("%s takes one argument, %s, and %q is a second one", c.CommandPath(), what, args[1])
		}
		return root.MinArgs(1, what)(c, args)
	}
}

// explainConfig returns the error of a client configuration with a remedy.
func explainConfig(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errors.New("no cluster is configured; name a kubeconfig file with --kubeconfig, or set KUBECONFIG")
	}
	return fmt.Errorf("%w; check --kubeconfig and --context", err)
}

// register adds the plugins that read objects of Kubernetes. Each engine reads the inputs that
// are current when it is built.
func (p *program) register() error {
	err := p.options.Registry.RegisterPluginBuilder(intree.Name, func(a engine.Arguments) (engine.Plugin, error) {
		return intree.Builder(p.current.store)(a)
	})
	if err != nil {
		return err
	}
	return p.options.Registry.RegisterPluginBuilder(trialsName, engine.WithoutArguments(func() engine.Plugin { return p.current.trials }))
}
