package ctl

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/scheduler"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (p *program) snapshot() *cobra.Command {
	var objects bool
	var session sessionFlags
	c := &cobra.Command{
		Use:   "snapshot [FILE]",
		Short: "Write the cluster as a snapshot, which all commands of berth read",
		Long: `Writes the cluster as a snapshot to the file, or to standard output. All commands of
berth read it: "kubectl berth snapshot | berth simulate -".

The snapshot has what decisions depend on: nodes with their labels, taints, devices
and amounts; queues; pod disruption budgets; pods and gangs with their names,
labels, requests, conditions on nodes and the nodes that they are on; and the
profile. It has no environment variables, commands, images, annotations or
secrets.

A snapshot does not have what only the filters of Kubernetes read: volumes, host
ports, topology spread constraints, and affinity to other pods. If a pod has any
of these, a note says so, in the snapshot as well; "kubectl berth simulate"
decides with them.

With --objects it writes the objects of Kubernetes, which "kubectl berth simulate
-f FILE" and the other commands read. They have no environment variables,
commands and status of other kinds than pods and nodes, and only annotations that
Berth or Kubernetes reads.

With --session N it asks the berth-scheduler that leads for the input of one of
its last sessions. "berth simulate FILE" gives the decisions that were made in
that session or, if notes name what only the filters of Kubernetes read, "kubectl
berth simulate -f FILE". "--session list" lists the sessions. The user needs the
verb get for the non-resource URL /debug/sessions/*.`,
		Example: "  kubectl berth snapshot now.json\n  kubectl berth snapshot | berth simulate -\n  kubectl berth snapshot --session list\n  kubectl berth snapshot --session 17 then.json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s writes one file, and %q is a second one", c.CommandPath(), args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if session.session != "" {
				return p.runSession(&session, args)
			}
			w, err := p.read()
			if err != nil {
				return err
			}
			if objects {
				return p.save(args, w.write)
			}
			in, err := p.build(w)
			if err != nil {
				return err
			}
			s, err := p.snapshotOf(w, in)
			if err != nil {
				return err
			}
			for _, note := range s.Notes {
				fmt.Fprintln(p.answers.Stderr(), "note: "+note)
			}
			if len(s.Notes) > 0 {
				fmt.Fprintln(p.answers.Stderr(), "note: berth-scheduler reads what these notes name; \"kubectl berth simulate\" decides as it does")
			}
			return p.save(args, s.Write)
		},
	}
	c.Flags().BoolVar(&objects, "objects", false, "write the objects of Kubernetes instead, which the other commands read with -f")
	session.add(c.Flags(), p.options.DefaultName)
	return c
}

// save writes to the file that the arguments name, or to standard output if they name none.
func (p *program) save(args []string, write func(io.Writer) error) error {
	if len(args) == 0 {
		return write(p.answers.Stdout())
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	return os.WriteFile(args[0], b.Bytes(), 0o600)
}

// snapshotOf returns the snapshot of the inputs.
func (p *program) snapshotOf(w *world, in *inputs) (*manifest.Snapshot, error) {
	c, err := Configuration(p.flags.configuration, in.profiles[0].Plugins)
	if err != nil {
		return nil, err
	}
	s := (&manifest.Bundle{}).Snapshot(in.State, in.now, nil)
	s.Configuration = scheduler.PlainConfiguration(c)
	s.Notes = p.notesAbout(w.pods())
	return s, nil
}

// notesAbout returns notes about what a snapshot does not have of the pods.
func (p *program) notesAbout(all []*corev1.Pod) []string {
	pods := slices.DeleteFunc(slices.Clone(all), func(o *corev1.Pod) bool {
		return !slices.Contains(p.flags.names, o.Spec.SchedulerName) || len(o.Spec.SchedulingGates) > 0
	})
	// Pods of other schedulers count only while they are on a node.
	counted := slices.DeleteFunc(slices.Clone(all), func(o *corev1.Pod) bool {
		return o.Spec.NodeName == "" && !slices.Contains(p.flags.names, o.Spec.SchedulerName)
	})
	notes := append(manifest.PodNotes(pods), missingNotes(counted)...)
	slices.Sort(notes)
	return notes
}

// missingNotes returns notes about conditions of pods that the filters of Kubernetes read and
// that State does not have. Affinity counts for pods on nodes, too: the anti-affinity of a pod
// excludes others from its node.
func missingNotes(pods []*corev1.Pod) []string {
	var affinity, volumes []string
	for _, o := range pods {
		id := convert.PodID(o)
		if convert.Ended(o) {
			continue
		}
		if hasRequiredTerms(o) {
			affinity = append(affinity, id)
		}
		mayRestrict := func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil } // of those that feed.Strip keeps
		if o.Spec.NodeName == "" && slices.ContainsFunc(o.Spec.Volumes, mayRestrict) {
			volumes = append(volumes, id)
		}
	}
	var out []string
	for _, n := range []struct {
		names []string
		what  string
	}{{affinity, "required affinity or anti-affinity to other pods"}, {volumes, "volumes that not every node can attach"}} {
		if slices.Sort(n.names); len(n.names) > 0 {
			out = append(out, fmt.Sprintf("%s with %s, which a snapshot does not have: %s", english.Count(len(n.names), "pod"), n.what, explain.List(n.names, 3)))
		}
	}
	return out
}

// hasRequiredTerms reports whether the pod has required terms about other pods.
func hasRequiredTerms(o *corev1.Pod) bool {
	a := o.Spec.Affinity
	return a != nil && (a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0)
}

// Configuration returns a configuration with the profiles of berth-scheduler, of which the first
// is given. It has what the configuration file says, if there is one, and disables the plugins
// that berth-scheduler does not use.
func Configuration(file string, profile engine.Profile) (*v1alpha1.SchedulerConfiguration, error) {
	b := &manifest.Bundle{}
	if file != "" {
		var err error
		if b, err = manifest.Load([]string{file}); err != nil {
			return nil, err
		}
	}
	own, err := scenario.Profiles(b)
	if err != nil {
		return nil, err
	}
	return configurationFor(b.Snapshot(cluster.NewState(), 0, nil).Configuration, own[0].Plugins, profile), nil
}

// configurationFor returns the configuration with which berth has the profiles of
// berth-scheduler. The first profile of c, which may be nil, is own, and that of berth-scheduler
// is profile. It disables the plugins that berth-scheduler does not use, which are the same for
// all profiles.
func configurationFor(c *v1alpha1.SchedulerConfiguration, own, profile engine.Profile) *v1alpha1.SchedulerConfiguration {
	out := v1alpha1.SchedulerConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindSchedulerConfiguration}}
	if c != nil {
		out = *c
	}
	var unused []string
	for _, plugin := range own {
		if plugin.Name != intree.Name && !slices.ContainsFunc(profile, func(p engine.PluginConfig) bool { return p.Name == plugin.Name }) {
			unused = append(unused, plugin.Name)
		}
	}
	out.Profiles = slices.Clone(out.Profiles)
	for i, p := range out.Profiles {
		out.Profiles[i].Plugins = slices.DeleteFunc(slices.Clone(p.Plugins), func(p v1alpha1.PluginConfig) bool { return slices.Contains(unused, p.Name) })
	}
	out.Plugins = slices.Clone(out.Plugins)
	for _, name := range unused {
		disabled := v1alpha1.PluginConfig{Name: name, Disabled: true}
		if at := slices.IndexFunc(out.Plugins, func(p v1alpha1.PluginConfig) bool { return p.Name == name }); at >= 0 {
			out.Plugins[at] = disabled
		} else {
			out.Plugins = append(out.Plugins, disabled)
		}
	}
	return &out
}
