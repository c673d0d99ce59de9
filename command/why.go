package command

import (
	"fmt"

	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/berth-project/berth/internal/wire"
	"github.com/spf13/cobra"
)

func (p *program) why() *cobra.Command {
	var config, output string
	var t clock
	c := &cobra.Command{
		Use:   "why WORKLOAD PATH...",
		Short: "Say why a workload is where it is or pending, and what would change that",
		Long: `Says why a workload is where it is, or why it is pending and the smallest
changes under which it would fit. Each of these was tried on a copy of the
cluster, by the same engine.

A WORKLOAD is job/NAME, job/NAMESPACE/NAME, pod/NAMESPACE/NAME, model/NAME, or
just a name that only one of them has. Of a model it is the first replica that
is pending; model/NAME-2 is the third one.`,
		Example: "  berth why job/train-70b cluster/\n  kubectl get nodes,pods,pdb -A -o yaml | berth why pod/ml/web-0 -",
		Args:    paths(2, "a workload and a file or directory that describes a cluster"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("--output", output, "text", "json"); err != nil {
				return err
			}
			b, err := p.load(args[1:], config)
			if err != nil {
				return err
			}
			e, state, err := p.prepare(b)
			if err != nil {
				return err
			}
			id, err := workload(state, b.LeftOut(), args[0])
			if err != nil {
				return err
			}
			now, err := t.read(b)
			if err != nil {
				return err
			}
			if b.Snapshotted() && served(state, id) {
				fmt.Fprintln(p.stderr, "note: a snapshot does not hold the manifest of a model, so that other settings of it are not tried")
			}
			report, err := whatif.Why(whatif.Question{Engine: e, State: state, Workload: id, Now: now, Knobs: knobs(b.Plans(), state)})
			if err != nil {
				return err
			}
			provision := provisionFor(model.Provisions(b.NodeRequests(), state), &report.Report)
			if provision != nil && report.Refusal != nil {
				explain.Await(report.Refusal, provision.Create)
			}
			if output == "json" {
				return writeJSON(p.stdout, answer{&report.Report, provision})
			}
			report.Text(p.stdout)
			if provision != nil {
				fmt.Fprintln(p.stdout)
				explain.Wrap(p.stdout, provision.String(), "", "  ", columns())
			}
			return nil
		},
	}
	c.Flags().StringVar(&config, "config", "", "file with a SchedulerConfiguration")
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	t.flag(c)
	choices(c, "output", "text", "json")
	return c
}

// answer is what why prints as JSON.
type answer struct {
	*wire.Report
	// Provision is what a provisioner is to do for the model.
	Provision *model.Provision `json:"provision,omitempty"`
}

// provisionFor is that of the model which the workload is a replica of; nil: it has none.
func provisionFor(all []model.Provision, r *wire.Report) *model.Provision {
	for i := range all {
		if r.Set != nil && all[i].Model == r.Set.Name {
			return &all[i]
		}
	}
	return nil
}
