package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/internal/edit"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/berth-project/berth/internal/wire"
	"github.com/spf13/cobra"
)

func (p *program) why() *cobra.Command {
	var flags inputFlags
	var output string
	c := &cobra.Command{
		Use:   "why WORKLOAD|node/NAME|queue/NAME PATH...",
		Short: "Explain why a workload is placed where it is, or why it is pending",
		Long: `Explains why a workload is placed where it is. If the workload is pending, it
explains why, and lists the smallest changes with which it would be placed. Each
of these changes was tried in a simulation. With -o json or yaml, each change has
the arguments of berth whatif that make it.

A WORKLOAD is job/NAME, job/NAMESPACE/NAME, pod/NAMESPACE/NAME or model/NAME. The
NAME alone is enough if no other workload has the same name. For a model, the
answer is about its first pending replica; model/NAME-2 is its third replica.

For node/NAME, it lists what is on the node, what is free, and why pending
workloads are not placed there. For queue/NAME, it lists what the queue holds and
is entitled to, and why its workloads are pending.`,
		Example: "  berth why job/train-70b cluster/\n  berth why node/gpu-17 cluster/\n  berth why queue/research cluster/\n  kubectl get nodes,pods,pdb -A -o yaml | berth why pod/ml/web-0 -",
		Args:    minArgs(2, "a workload and a file or directory that describes a cluster"),

		ValidArgsFunction: completeWorkload,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("--output", output, "text", "json", "yaml"); err != nil {
				return err
			}
			in, err := p.open(args[1:], &flags)
			if err != nil {
				return err
			}
			switch kind, name, _ := strings.Cut(args[0], "/"); kind {
			case "node":
				return p.whyNode(in, name, output)
			case "queue":
				return p.whyQueue(in, name, output)
			}
			b, state := in.bundle, in.state
			id, err := workload(state, b.LeftOutWorkloads(), args[0])
			if err != nil {
				return err
			}
			if b.IsSnapshot() && isModel(state, id) {
				p.note("a snapshot does not contain the manifest of a model, so other settings of the model are not tried")
			}
			q := whatif.Question{Engine: in.engine, State: state, Workload: id, Now: in.now, Knobs: knobs(b.Plans(), model.NewFleet(state.View().Groups()), nil)}
			if !b.IsSnapshot() {
				q.Objects = edit.Manifests{Bundle: b}
			}
			shown := p.screen.start()
			defer shown.end()
			q.Progress = func(done whatif.Progress) {
				text := fmt.Sprintf("%s tried, %d of them would help", english.Count(done.Tried, "change"), done.Helped)
				if done.Cheapest != "" {
					text += ", such as: " + done.Cheapest
				}
				shown.set("%s", text)
			}
			report, err := whatif.Why(q)
			shown.end()
			if err != nil {
				return err
			}
			provision := provisionFor(model.Provisions(b.NodeRequests(), state), &report.Report)
			awaitNodes(&report.Report, provision)
			if output != "text" {
				return p.writeData(output, whyResult{&report.Report, provision})
			}
			report.Text(p.stdout)
			writeProvision(p.stdout, provision)
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "text", "format of the answer: text, json or yaml")
	flags.addFlags(c)
	completeValues(c, "output", "text", "json", "yaml")
	return c
}

// whyNode says what is on a node, and why pending workloads are not placed on it.
func (p *program) whyNode(in *input, name, output string) error {
	if in.state.Node(name) == nil {
		return fmt.Errorf("no node %q%s", name, nearest.Hint(name, nodeNames(in.state)))
	}
	r, err := whatif.AboutNode(in.engine, in.state, name, in.now)
	if err != nil {
		return err
	}
	if output != "text" {
		return p.writeData(output, r)
	}
	explain.WriteNode(p.stdout, in.state.Node(name), r)
	return nil
}

// whyQueue says what a queue holds, and why its workloads are pending.
func (p *program) whyQueue(in *input, name, output string) error {
	if in.state.Queue(name) == nil {
		var names []string
		for _, q := range in.state.Queues() {
			names = append(names, q.Name)
		}
		slices.SortFunc(names, explain.CompareNatural)
		return fmt.Errorf("no queue %q%s", name, nearest.Hint(name, names))
	}
	r, err := whatif.AboutQueue(in.engine, in.state, name, in.now)
	if err != nil {
		return err
	}
	if output != "text" {
		return p.writeData(output, r)
	}
	explain.WriteQueue(p.stdout, r)
	return nil
}

// whyResult is what why prints as JSON.
type whyResult struct {
	*wire.Report
	// Provision is the nodes that a provisioner has to create or delete for the model.
	Provision *model.Provision `json:"provision,omitempty"`
}

// awaitNodes notes in the report that nodes are going to be created for the workload.
func awaitNodes(r *wire.Report, v *model.Provision) {
	if v != nil && r.Refusal != nil {
		explain.AwaitNodes(r.Refusal, v.Create)
	}
}

// writeProvision writes which nodes a provisioner has to create or delete; nil: none.
func writeProvision(w io.Writer, v *model.Provision) {
	if v != nil {
		fmt.Fprintln(w)
		explain.Wrap(w, v.String(), "", "  ", columns())
	}
}

// provisionFor returns the provision of the model that the workload of the report
// is a replica of, or nil if there is none.
func provisionFor(all []model.Provision, r *wire.Report) *model.Provision {
	for i := range all {
		if r.Set != nil && all[i].Model == r.Set.Name {
			return &all[i]
		}
	}
	return nil
}
