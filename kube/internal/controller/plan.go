package controller

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/kube/internal/workload"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// plan is what should exist for a model, and what is said about it.
type plan struct {
	key      types.NamespacedName
	model    *v1alpha1.Model
	spec     *model.Spec // nil if the model is not valid
	invalid  error       // why the model cannot be served, whatever the cluster
	answer   modelset.Answer
	existing []replica
	claims   *claimPlan        // nil if the model is not valid
	group    *cluster.GroupKey // the node group of a model that takes whole nodes; nil if none is chosen

	inputs      string // see inputs
	renewed     bool   // a LeaderWorkerSet that runs follows a change of the spec
	deployments []*unstructured.Unstructured
	sets        []*unstructured.Unstructured
	// remove are the names of objects that should not exist.
	removeDeployments, removeSets []string
	// scaled are Deployments whose template stays as it is: no form of the spec is theirs.
	scaled map[string]int32
	costs  map[string]string // pods by name: the pod-deletion-cost that they must have
	later  time.Time         // when the rest is carried out; zero: now
	// unserved is why the model has no Service; nil if it has one.
	unserved error
	chosen   map[string]string // by key: the name of each form that is known
}

// newPlan returns a plan without objects.
func newPlan(key types.NamespacedName, m *v1alpha1.Model, existing []replica) *plan {
	return &plan{key: key, model: m, existing: existing, scaled: map[string]int32{}, costs: map[string]string{}, chosen: map[string]string{}}
}

// placed returns the number of replicas that have nodes.
func (p *plan) placed() int {
	n := 0
	for i := range p.existing {
		if p.existing[i].placed {
			n++
		}
	}
	return n
}

// plans returns the plans of all models that are not being deleted.
func (w *World) plans() ([]*plan, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*plan
	var wants []modelset.Want
	var asked []*plan
	for _, key := range w.names() {
		m := w.models[key]
		if m.DeletionTimestamp != nil {
			continue
		}
		p := newPlan(key, m, w.owned[key].replicas(key.Namespace))
		out = append(out, p)
		if p.spec, p.invalid = w.spec(m); p.invalid != nil {
			continue
		}
		asked = append(asked, p)
		wants = append(wants, modelset.Want{Spec: p.spec, Missing: max(0, p.spec.Replicas-p.placed())})
	}
	answers, err := w.decide(wants)
	if err != nil {
		return nil, err
	}
	for i, p := range asked {
		p.answer = answers[i]
		if p.answer.Err != nil {
			p.invalid = p.answer.Err
			continue
		}
		if p.group = p.spec.Group; p.group == nil {
			p.group = p.answer.Group
		}
		p.invalid = w.fill(p)
	}
	w.planClaims(out)
	return out, nil
}

// fill computes which objects should exist.
func (w *World) fill(p *plan) error {
	x := w.owned[p.key]
	if x == nil {
		x = newOwned()
	}
	forms, err := w.forms(p)
	if err != nil {
		return err
	}
	p.inputs = inputs(p.model, &w.options.Workload)
	counts, kept := map[string]int32{}, map[string]bool{}
	retired := p.retired()
	outdated := w.outdated(p, x, forms)
	if outdated != nil {
		retired[outdated.job] = true
	}
	for i := range p.existing {
		r := &p.existing[i]
		switch {
		case !r.placed || retired[r.job]:
		case r.several:
			kept[r.workload] = true
		default:
			counts[r.form]++
		}
	}
	if p.spec.Place.WholeNodes && p.group == nil {
		return p.removeRest(x, counts, kept) // without a group there is nothing to run
	}
	var several []*workload.Replicas
	for _, f := range w.missingForms(p, forms) {
		if f.OnSeveralNodes() {
			several = append(several, f)
		} else {
			counts[f.Key()]++
		}
	}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		f := forms[key]
		if f == nil {
			if name := x.deploymentOf(key); name != "" {
				p.scaled[name] = counts[key]
			}
			continue
		}
		d, err := w.deployment(p, x, f, counts[key])
		if err != nil {
			return err
		}
		p.deployments = append(p.deployments, d)
	}
	if err := w.addSets(p, x, forms, several, kept); err != nil {
		return err
	}
	p.setCosts()
	if outdated != nil && !outdated.several {
		p.costs[outdated.pods[0].Name] = strconv.Itoa(math.MinInt32)
	}
	return p.removeRest(x, counts, kept)
}

// forms returns the forms that replicas may take, by their keys. The key of a form depends on the
// resource name of the devices, of which a cluster may have several.
func (w *World) forms(p *plan) (map[string]*workload.Replicas, error) {
	out := map[string]*workload.Replicas{}
	groups := w.state.View().Groups()
	for i := range p.answer.Forms {
		alt := &p.answer.Forms[i]
		if alt.Running || !workload.Expressible(alt) {
			continue
		}
		form := p.answer.Result.FormOf(alt)
		if form == nil {
			return nil, fmt.Errorf("the form %s is not known", alt.Name)
		}
		for _, resource := range resourcesOf(groups, alt) {
			r := &workload.Replicas{Model: p.model, Spec: p.spec, Context: p.answer.Result.Context(), Form: form, Alternative: alt, Resource: resource}
			p.chosen[r.Key()] = alt.Name
			if key := groupOf(alt, p.group); key != nil {
				at := slices.IndexFunc(groups, func(g *cluster.Group) bool { return g.Key == *key })
				if at < 0 {
					continue // the nodes of the group are gone, and its labels with them
				}
				r.Devices, r.Selector = key.Count, workload.GroupSelector(groups[at])
			}
			out[r.Key()] = r
		}
	}
	return out, nil
}

// groupOf returns the node group that the alternative is on; nil if it is on any.
func groupOf(alt *cluster.Alternative, chosen *cluster.GroupKey) *cluster.GroupKey {
	switch {
	case alt.Whole == nil:
		return nil
	case alt.Whole.Only != nil:
		return alt.Whole.Only
	}
	return chosen
}

// resourcesOf returns the resource names of the devices that the alternative may use.
func resourcesOf(groups []*cluster.Group, alt *cluster.Alternative) []string {
	need := &alt.Tasks[0].Shape.Need
	if need.None() {
		return []string{""}
	}
	found := map[string]bool{}
	for _, g := range groups {
		for i := range g.Nodes[0].Devices {
			if d := &g.Nodes[0].Devices[i]; need.Kind(d) {
				found[d.Resource] = true
			}
		}
	}
	if len(found) == 0 {
		found[cluster.DefaultDeviceResource] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// missingForms returns the form of each replica that has no node: the one that was chosen, or, if
// it was refused, the one that it waits in already, or else the first.
func (w *World) missingForms(p *plan, forms map[string]*workload.Replicas) []*workload.Replicas {
	var waiting []string
	for i := range p.existing {
		if r := &p.existing[i]; !r.placed && forms[r.form] != nil {
			waiting = append(waiting, r.form)
		}
	}
	var out []*workload.Replicas
	var refused int
	for i := range p.answer.Replicas {
		r := &p.answer.Replicas[i]
		f := formFor(forms, r)
		if r.Places == nil || f == nil {
			refused++
			continue
		}
		out = append(out, f)
		if at := slices.Index(waiting, f.Key()); at >= 0 {
			waiting = slices.Delete(waiting, at, at+1)
		}
	}
	first := w.firstForm(p, forms)
	for range refused {
		switch {
		case len(waiting) > 0:
			out, waiting = append(out, forms[waiting[0]]), waiting[1:]
		case first != nil:
			out = append(out, first)
		}
	}
	return out
}

// formFor returns the form of a replica for which there is room; nil if it cannot be run.
func formFor(forms map[string]*workload.Replicas, r *modelset.Replica) *workload.Replicas {
	resource := ""
	for _, place := range r.Places {
		resource = place.Resource
	}
	for _, key := range slices.Sorted(maps.Keys(forms)) {
		if f := forms[key]; f.Alternative.Name == r.Form.Name && f.Resource == resource {
			return f
		}
	}
	return nil
}

// firstForm returns the form in which a replica waits if there is room for none.
func (w *World) firstForm(p *plan, forms map[string]*workload.Replicas) *workload.Replicas {
	for i := range p.answer.Forms {
		for _, key := range slices.Sorted(maps.Keys(forms)) {
			if f := forms[key]; f.Alternative == &p.answer.Forms[i] {
				return f
			}
		}
	}
	return nil
}

// retired returns the jobs of replicas that are to be removed, because there are too many.
func (p *plan) retired() map[string]bool {
	out := map[string]bool{}
	if o := p.answer.Order; o != nil {
		for _, j := range o.Jobs {
			if j.Retired {
				out[j.Job] = true
			}
		}
	}
	return out
}

// addSets adds the LeaderWorkerSets of replicas that have no nodes. Those that exist and wait are
// used first.
func (w *World) addSets(p *plan, x *objects, forms map[string]*workload.Replicas, several []*workload.Replicas, kept map[string]bool) error {
	add := func(f *workload.Replicas, name string) error {
		set, err := w.set(p, x, f, name)
		if err != nil {
			return err
		}
		p.sets = append(p.sets, set)
		kept[name] = true
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(kept)) { // replicas with nodes follow changes of the template
		if set := x.sets[name]; set != nil {
			if f := forms[formOfSet(set)]; f != nil {
				if err := add(f, name); err != nil {
					return err
				}
			}
		}
	}
	var waiting []string
	retired := p.retired()
	for i := range p.existing {
		if r := &p.existing[i]; r.several && !r.placed && !retired[r.job] {
			waiting = append(waiting, r.workload)
		}
	}
	for _, f := range several {
		var name string
		if len(waiting) > 0 {
			name, waiting = waiting[0], waiting[1:]
		}
		for n := 0; name == ""; n++ {
			free := workload.ReplicaName(p.model.Name, n)
			if _, other := w.others[resourceKey(sets, p.key.Namespace, free)]; x.sets[free] == nil && !kept[free] && !other {
				name = free
			}
		}
		if err := add(f, name); err != nil {
			return err
		}
	}
	return nil
}

// setCosts gives the pods of Deployments costs in the order in which they are kept. A ReplicaSet
// removes the pods with the lowest cost first.
func (p *plan) setCosts() {
	o := p.answer.Order
	if o == nil {
		return
	}
	pods := map[string]string{}
	for i := range p.existing {
		if r := &p.existing[i]; !r.several && r.placed {
			pods[r.job] = r.pods[0].Name
		}
	}
	for i, j := range o.Jobs { // the job that is most worth keeping first
		if name := pods[j.Job]; name != "" {
			cost := len(o.Jobs) - i
			if j.Retired {
				cost = -1 - i
			}
			p.costs[name] = strconv.Itoa(cost)
		}
	}
}

// removeRest removes the objects that no replica needs. It returns nil.
func (p *plan) removeRest(x *objects, counts map[string]int32, kept map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(x.deployments)) {
		if d := x.deployments[name]; d.DeletionTimestamp == nil && counts[formOf(d)] == 0 {
			p.removeDeployments = append(p.removeDeployments, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.sets)) {
		if x.sets[name].GetDeletionTimestamp() == nil && !kept[name] {
			p.removeSets = append(p.removeSets, name)
		}
	}
	return nil
}
