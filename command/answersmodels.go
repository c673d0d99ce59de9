package command

import (
	"errors"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/internal/wire"
	"github.com/spf13/cobra"
)

// Models are models of which replicas are jobs of a State.
type Models struct {
	Plans []*model.Result // the jobs without a node are in the State
	Fleet *model.Fleet    // on which the plans were made
	// Adopt is called with each job that is made of a changed model, before the job is put into
	// the State. It may be nil.
	Adopt func(*cluster.Job)
}

// provision returns what a provisioner must do for the model of the report, and notes in the report
// that its nodes are awaited. It returns nil if the report is about no model with an instance type.
func (c *Cluster) provision(r *wire.Report) *model.Provision {
	if c.Models == nil {
		return nil
	}
	out := provisionFor(modelset.Provisions(c.State, c.Models.Plans), r)
	awaitNodes(r, out)
	return out
}

// EstimateFlags are the flags of estimate, without those that name devices.
type EstimateFlags struct{ options estimateOptions }

// NewEstimateFlags adds the flags to the command. contextFlag is the name of the flag for the tokens
// of a sequence.
func NewEstimateFlags(c *cobra.Command, contextFlag string) *EstimateFlags {
	f := &EstimateFlags{}
	f.options.addFlags(c, contextFlag)
	c.ValidArgsFunction = completeModel
	return f
}

// Check returns an error for values that no model can have.
func (f *EstimateFlags) Check() error { return f.options.check() }

// IsManifest reports whether the argument of estimate is the name of a manifest.
func IsManifest(name string) bool { return isManifest(name) }

// Estimate writes how much memory a model needs, and on which devices of the groups it fits. The
// model is the name of a preset, a .gguf file, a directory, or a manifest with one or more models.
func (a *Answers) Estimate(f *EstimateFlags, name string, groups []*cluster.Group) error {
	rows := func() (rowAdder, error) { return rowsOf(groups), checkGroups(groups) }
	if isManifest(name) {
		return a.p.estimateManifest(name, &f.options, rows)
	}
	return a.p.estimateNamed(name, &f.options, rows)
}

// EstimateSpec is like Estimate, for a model that was read already.
func (a *Answers) EstimateSpec(f *EstimateFlags, s *model.Spec, groups []*cluster.Group) error {
	if err := checkGroups(groups); err != nil {
		return err
	}
	v, err := f.options.specViewOn(s, rowsOf(groups))
	if err != nil {
		return err
	}
	return a.p.writeEstimates(&f.options, v, v)
}

func checkGroups(groups []*cluster.Group) error {
	if len(groups) == 0 {
		return errors.New("no node of the cluster has devices")
	}
	return nil
}
