// Package modelset decides about the replicas of models on a State that something else keeps:
// which node group and which form each replica takes, and which replicas are retired. It tries
// the decisions in the State and undoes them, so that the State is as before.
package modelset

import (
	"cmp"
	"errors"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/wire"
)

// Cluster is where models are served. Its State has the replicas that have nodes as jobs of the
// set that is named by the ID of the model.
type Cluster struct {
	Engine *engine.Engine
	State  *cluster.State
	Now    int64 // in nanoseconds since 1970
	// WholeDevices is set if tasks can only hold whole devices; see model.Fleet.
	WholeDevices bool
	// Fleet is what is known of the devices from one call of Decide to the next; nil: nothing.
	Fleet *Fleet
	// MaxForms is how many forms a replica may have; with more, the answer is ErrTooManyForms. 0:
	// any number.
	MaxForms int
	// Once is set if one session is enough, because only the question matters whether a replica can
	// ever be placed.
	Once bool
}

// ErrTooManyForms is the error about a model that is not decided because it has too many forms.
var ErrTooManyForms = errors.New("a replica has too many forms")

// Want is a model to decide about.
type Want struct {
	// Spec is the model. Its Existing is not read: the replicas that exist are in the State.
	Spec *model.Spec
	// Missing is how many replicas have no node, of Spec.Replicas.
	Missing int
}

// Answer is what was decided about a model.
type Answer struct {
	Err      error // the model cannot be served on this cluster; nothing else is set
	Result   *model.Result
	Forms    []cluster.Alternative // that replicas may take, in the order in which they are tried
	Replicas []Replica             // one for each that is missing
	// Group is the node group of a model that takes whole nodes; nil if none was chosen, or if
	// it takes devices.
	Group *cluster.GroupKey
	// Order has the replicas that are in the State, the one that is most worth keeping first, and
	// says which are retired; nil if there are not too many.
	Order *engine.RetirementOrder
	// Provision is what a provisioner must do for the model; nil if it has no instance type.
	Provision *model.Provision
}

// Replica is what was decided about a replica that has no node.
type Replica struct {
	// Form is the alternative that it takes or, if it was refused, the first that it requests.
	Form    *cluster.Alternative
	Places  []Place       // one for each task of the form; nil if it was refused
	Refusal *wire.Refusal // nil if it was placed
}

// Place is where a task would be placed.
type Place struct {
	Task     string
	Node     string
	Devices  []cluster.DeviceID // sorted
	Resource string             // the resource name of the devices; "" if it has none
}

// Decide returns an answer for each model. The models are decided together, as in one simulation.
func (c *Cluster) Decide(wants []Want) ([]Answer, error) {
	mark := c.State.Mark()
	defer func() {
		c.State.Undo(mark)
		c.State.Release(mark)
	}()
	fleet := c.Fleet.of(c.State)
	fleet.WholeDevices = c.WholeDevices
	out := make([]Answer, len(wants))
	for i := range wants {
		if err := c.add(fleet, &wants[i], &out[i]); err != nil {
			return nil, err
		}
	}
	o := sim.Options{Now: c.Now, Brief: true}
	if c.Once {
		o.Enough = func(*sim.Simulation) bool { return true }
	}
	simulation, err := sim.Simulate(c.Engine, c.State, o)
	if err != nil {
		return nil, err
	}
	provisions := c.provisions(out)
	results := explain.Results{Phrases: explain.PhrasesOf(c.Engine), State: c.State, AwaitedNodes: model.NodesToCreate(provisions)}
	refusals := map[string]*wire.Refusal{}
	for _, r := range simulation.Refusals {
		refusal := results.Refusal(r, false)
		refusals[r.Job] = &refusal
	}
	for i := range wants {
		if out[i].Err == nil {
			c.read(&wants[i], &out[i], simulation, refusals)
		}
		for k := range provisions {
			if provisions[k].Model == wants[i].Spec.ID {
				out[i].Provision = &provisions[k]
			}
		}
	}
	return out, nil
}

// add adds the jobs of the replicas that have no node.
func (c *Cluster) add(fleet *model.Fleet, w *Want, a *Answer) error {
	own := *w.Spec
	own.Existing = nil
	result, err := fleet.Convert(&own)
	if err != nil {
		a.Err = err
		return nil
	}
	if len(result.Jobs) > 0 {
		a.Forms = result.Jobs[0].Alternatives
	}
	if c.MaxForms > 0 && len(a.Forms) > c.MaxForms {
		a.Err = ErrTooManyForms
		return nil
	}
	result.Jobs = result.Jobs[:min(w.Missing, len(result.Jobs))]
	a.Result = result
	for _, j := range result.Jobs {
		if err := c.State.Apply(cluster.JobPut{Job: *j}); err != nil {
			return err
		}
	}
	return c.State.Apply(cluster.SetScaled{Set: own.ID, Desired: own.Replicas})
}

// read takes what was decided about the model from the State.
func (c *Cluster) read(w *Want, a *Answer, simulation *sim.Simulation, refusals map[string]*wire.Refusal) {
	for _, j := range a.Result.Jobs {
		a.Replicas = append(a.Replicas, c.replica(j, refusals[j.ID]))
	}
	if w.Spec.Place.WholeNodes {
		if home := c.State.View().Sets().Home(w.Spec.ID); home != nil {
			key := *home
			a.Group = &key
		}
	}
	for i := range simulation.RetirementOrders {
		if o := &simulation.RetirementOrders[i]; o.Set == w.Spec.ID {
			a.Order = o
		}
	}
}

// replica returns what was decided about the job, of which the State has a copy.
func (c *Cluster) replica(j *cluster.Job, refusal *wire.Refusal) Replica {
	refused := Replica{Form: &j.Alternatives[0], Refusal: refusal}
	now := c.State.Job(j.ID)
	if now == nil || now.Chosen < 0 || refusal != nil {
		return refused
	}
	r := Replica{Form: &j.Alternatives[now.Chosen]}
	for _, t := range now.Alternatives[now.Chosen].Tasks {
		if t.Node == nil {
			return refused
		}
		p := Place{Task: t.Name, Node: t.Node.Name}
		for _, claim := range t.Claims {
			d := &t.Node.Devices[claim.Device]
			p.Devices, p.Resource = append(p.Devices, d.ID), d.Resource
		}
		slices.SortFunc(p.Devices, cluster.DeviceID.Compare)
		r.Places = append(r.Places, p)
	}
	return r
}

// provisions returns what a provisioner must do for the models of the answers.
func (c *Cluster) provisions(answers []Answer) []model.Provision {
	var results []*model.Result
	for i := range answers {
		if answers[i].Result != nil {
			results = append(results, answers[i].Result)
		}
	}
	return Provisions(c.State, results)
}

// Provisions returns what a provisioner must do for the models. The replicas that have nodes are
// jobs of the State as well.
func Provisions(s *cluster.State, results []*model.Result) []model.Provision {
	requests := model.NodeRequests(results)
	for i := range requests {
		for _, j := range s.View().Sets().Jobs(requests[i].Model) {
			if !slices.Contains(requests[i].Jobs, j.ID) {
				requests[i].Jobs = append(requests[i].Jobs, j.ID)
			}
		}
	}
	slices.SortFunc(requests, func(a, b model.NodeRequest) int { return cmp.Compare(a.Model, b.Model) })
	return model.Provisions(requests, s)
}
