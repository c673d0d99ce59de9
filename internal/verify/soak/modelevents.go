package soak

import (
	"slices"

	"github.com/berth-project/berth/cluster"
)

// modelEvents has the steps that happen to models. The replicas of a model are a Set.
type modelEvents struct {
	dice      *dice
	maker     *modelMaker
	site      *site
	scheduler *scheduler
	workload  *workload
}

// add adds a random model with its replicas.
func (e *modelEvents) add() error {
	if e.workload.isFull() {
		return nil
	}
	template := e.maker.template(e.scheduler.state)
	e.site.models[template.Set.Name] = template
	return e.addReplicas(template)
}

// scale removes retired replicas, and changes the desired number of replicas of a
// model.
func (e *modelEvents) scale() error {
	if err := e.removeRetired(); err != nil || len(e.site.models) == 0 {
		return err
	}
	template := e.site.models[pick(e.dice, sorted(e.site.models))]
	template.OwnDetails().Set.Desired = e.dice.roll(5)
	for _, j := range e.site.jobs {
		if j.Set.Name == template.Set.Name {
			j.OwnDetails().Set.Desired = template.Set.Desired
		}
	}
	if err := e.scheduler.apply(cluster.SetScaled{Set: template.Set.Name, Desired: template.Set.Desired}); err != nil {
		return err
	}
	return e.addReplicas(template)
}

// removeRetired removes some of the retired replicas that have stopped.
func (e *modelEvents) removeRetired() error {
	for _, id := range sorted(e.site.jobs) {
		j := e.scheduler.state.Job(id)
		if j.Retired && !slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Node != nil }) && e.dice.chance(60) {
			if err := e.workload.remove(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// addReplicas adds the replicas that are missing.
func (e *modelEvents) addReplicas(template *cluster.Job) error {
	for i := len(e.scheduler.state.View().Sets().Jobs(template.Set.Name)); i < template.Set.Desired && !e.workload.isFullForReplicas(); i++ {
		if err := e.workload.put(e.maker.replica(template, i)); err != nil {
			return err
		}
	}
	return nil
}
