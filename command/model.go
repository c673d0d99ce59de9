package command

import (
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/whatif"
)

// knobs returns a function that lists, for a replica of a model, the settings of
// the model's manifest that why can vary to find out what would help. The jobs of the plans were
// made on the fleet. adopt is called with each job that is made; it may be nil.
func knobs(plans []*model.Result, fleet *model.Fleet, adopt func(*cluster.Job)) func(id string) []whatif.Knob {
	return func(id string) []whatif.Knob {
		i := slices.IndexFunc(plans, func(p *model.Result) bool {
			return slices.ContainsFunc(p.Jobs, func(j *cluster.Job) bool { return j.ID == id })
		})
		if i < 0 {
			return nil
		}
		var out []whatif.Knob
		for _, k := range plans[i].Relaxations() {
			out = append(out, whatif.Knob{Steps: k.Steps, At: func(step int) (string, int, []string, []*cluster.Job) {
				r := k.At(step)
				var arguments []string
				for _, field := range r.Set {
					arguments = append(arguments, "--set", r.Spec.ID+"."+field)
				}
				plan, err := fleet.Convert(r.Spec)
				if err != nil || !slices.ContainsFunc(plan.Jobs, func(j *cluster.Job) bool { return j.ID == id }) {
					return r.Text, r.Cost, arguments, nil
				}
				if adopt != nil {
					for _, j := range plan.Jobs {
						adopt(j)
					}
				}
				return r.Text, r.Cost, arguments, plan.Jobs
			}})
		}
		return out
	}
}

// isModel reports whether the workload is a model or a replica of one.
func isModel(state *cluster.State, id string) bool {
	jobs := state.View().Sets().Jobs(id)
	if j := state.Job(id); j != nil {
		jobs = []*cluster.Job{j}
	}
	return slices.ContainsFunc(jobs, func(j *cluster.Job) bool {
		return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Shape.ServesModel() })
	})
}
