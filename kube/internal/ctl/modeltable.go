package ctl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/printable"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/kube/internal/modelsource"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

func (p *program) models() *cobra.Command {
	var output string
	var all bool
	c := &cobra.Command{
		Use:   "models [NAME]",
		Short: "List models: where their replicas are, how much memory they need, and why some have no node",
		Long: `Lists the Models of the namespace, or one of them. PLACEMENT is the node group of a
model that takes whole nodes, and the forms of the replicas of other models. READY
is how many replicas are ready, of those that are requested. NODES is how many
nodes a replica takes, and MEMORY how much a replica needs of each device. WHY is
the reason why a replica has no node or is not ready; the lines below the table
say more, and "kubectl berth why model/NAME" what would help.

These are the figures of berth-controller in the status of the Models. If a status
is missing, or is about an earlier version of the spec, the model is decided about
as "kubectl berth why" does, and a note says so.`,
		Example: "  kubectl berth models\n  kubectl berth models -A -o json",
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%s takes one name at most, and %q is a second one", c.CommandPath(), args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			w, err := p.read()
			if err != nil {
				return err
			}
			t := modelTable{p, w, all}
			list, err := t.selected(args)
			if err != nil {
				return err
			}
			rows, err := t.rows(list)
			if err != nil {
				return err
			}
			if output == "json" {
				return p.answers.JSON(modelList{rows})
			}
			t.write(rows)
			return nil
		},
	}
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "list the Models of all namespaces")
	root.OutputFlag(c, &output, "table", "json")
	return c
}

// modelList is what the command models writes as JSON. It is API: fields are added, never renamed.
type modelList struct {
	Models []modelRow `json:"models"`
}

type modelRow struct {
	Namespace       string   `json:"namespace"`
	Name            string   `json:"name"`
	Group           string   `json:"group,omitempty"` // the node group of a model that takes whole nodes
	Forms           []string `json:"forms,omitempty"` // of the replicas, each once
	Ready           int      `json:"ready"`
	Desired         int      `json:"desired"`
	NodesPerReplica int      `json:"nodesPerReplica,omitempty"`
	Memory          int64    `json:"memoryPerDevice,omitempty"` // in bytes
	Reason          string   `json:"reason,omitempty"`          // why a replica has no node or is not ready; "" if all are ready
	Message         string   `json:"message,omitempty"`
	Created         string   `json:"created,omitempty"`
	// Decided is set if the status has no such figures, so that they were decided now.
	Decided bool `json:"decided,omitempty"`

	created metav1.Time
}

// modelTable makes the table of the command models.
type modelTable struct {
	program *program
	world   *world
	all     bool // of all namespaces
}

// selected returns the Models that the arguments select.
func (t *modelTable) selected(args []string) ([]*v1alpha1.Model, error) {
	w := t.world
	if err := w.checkModels(); err != nil {
		return nil, err
	}
	if len(args) == 0 {
		list, errs := w.models()
		for _, err := range errs {
			fmt.Fprintf(t.program.answers.Stderr(), "note: %v\n", err)
		}
		return slices.DeleteFunc(list, func(m *v1alpha1.Model) bool { return !t.all && m.Namespace != w.namespace }), nil
	}
	r := parseReference(args[0], w.namespace)
	if r.kind != "" && r.kind != kindModel {
		return nil, fmt.Errorf("%q is no Model; write NAME or %s/NAME", args[0], kindModel)
	}
	m, number, err := w.findModel(r)
	if err == nil && number != anyReplica {
		list, _ := w.models()
		err = noModel(list, r)
	}
	return []*v1alpha1.Model{m}, err
}

// rows returns the rows of the Models. Those without figures in the status are decided about.
func (t *modelTable) rows(list []*v1alpha1.Model) ([]modelRow, error) {
	out := []modelRow{}
	var undecided []string
	var d *decided
	for _, m := range list {
		row := modelRow{Namespace: m.Namespace, Name: m.Name, Desired: 1, created: m.CreationTimestamp}
		if m.Spec.Replicas != nil {
			row.Desired = *m.Spec.Replicas
		}
		if !m.CreationTimestamp.IsZero() {
			row.Created = m.CreationTimestamp.UTC().Format(time.RFC3339)
		}
		switch {
		case m.DeletionTimestamp != nil:
			row.Reason, row.Message = "Deleting", "The model is being deleted."
		case isCurrent(m):
			row.fromStatus(&m.Status)
		default:
			if d == nil {
				var err error
				if d, err = t.program.decideModels(t.world); err != nil {
					return nil, err
				}
			}
			undecided = append(undecided, "model/"+m.Namespace+"/"+m.Name)
			row.decide(d, m)
		}
		out = append(out, row)
	}
	if len(undecided) > 0 {
		fmt.Fprintf(t.program.answers.Stderr(), "note: berth-controller has not reported about the present spec of %s; check that it runs. What is shown was decided now, from the nodes and pods of the cluster\n", explain.List(undecided, 3))
	}
	return out, nil
}

// isCurrent reports whether the status is about the spec as it is.
func isCurrent(m *v1alpha1.Model) bool {
	return m.Status.ObservedGeneration == m.Generation && meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionPlaced) != nil
}

// fromStatus fills in what berth-controller has reported.
func (r *modelRow) fromStatus(s *v1alpha1.ModelStatus) {
	r.Ready, r.NodesPerReplica, r.Group = int(s.ReadyReplicas), int(s.NodesPerReplica), s.GroupName
	for _, x := range s.Replicas {
		r.addForm(x.Form)
	}
	if e := s.Estimate; e != nil {
		r.Memory = e.PerDevice.Value()
		if len(r.Forms) == 0 {
			r.addForm(e.Form)
		}
	}
	for _, kind := range []string{v1alpha1.ConditionPlaced, v1alpha1.ConditionNodesClaimed, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil && c.Status != metav1.ConditionTrue {
			r.Reason, r.Message = c.Reason, c.Message
			return
		}
	}
}

func (r *modelRow) addForm(name string) {
	if name != "" && !slices.Contains(r.Forms, name) {
		r.Forms = append(r.Forms, name)
	}
}

// decided is what was decided about all Models.
type decided struct {
	in         *inputs
	simulation *sim.Simulation
	results    explain.Results
}

// decideModels decides about all Models together.
func (p *program) decideModels(w *world) (*decided, error) {
	in, err := p.buildModels(w)
	if err != nil {
		return nil, err
	}
	s, err := sim.Simulate(in.engine, in.State, sim.Options{Now: in.now, Brief: true})
	if err != nil {
		return nil, err
	}
	return &decided{in, s, explain.Results{Phrases: explain.PhrasesOf(in.engine), State: in.State}}, nil
}

// Reasons of models about which berth-controller has not reported.
const (
	reasonInvalid    = "ModelInvalid"
	reasonUnreported = "WaitingForController"
)

// decide fills in what was decided about the Model.
func (r *modelRow) decide(d *decided, o *v1alpha1.Model) {
	r.Decided = true
	m := d.in.models.of(o)
	for _, e := range m.existing {
		if !slices.ContainsFunc(e.pods, func(x *corev1.Pod) bool { return feed.Health(x) != cluster.HealthRunning }) {
			r.Ready++
		}
		r.NodesPerReplica = max(r.NodesPerReplica, len(e.pods))
	}
	if m.problem != nil {
		r.Reason, r.Message = reasonInvalid, modelsource.ProblemText(m.problem)
		return
	}
	view := d.in.State.View()
	if home := view.Sets().Home(m.id()); home != nil && m.plan.Spec.Place.WholeNodes {
		r.Group = fmt.Sprintf("%s, %s each", home, quantity.Memory(cluster.Bytes(home.Memory<<20)))
	}
	placed := len(m.existing)
	for _, planned := range m.plan.Jobs {
		j := view.Job(planned.ID)
		if j == nil || j.Retired {
			continue
		}
		alt := &planned.Alternatives[max(0, j.Chosen)]
		if f := m.plan.FormOf(alt); f != nil && r.Memory == 0 {
			r.Memory = int64(f.PerDevice)
		}
		if refusal := d.simulation.RefusalOf(j.ID); refusal != nil {
			if r.Reason == "" {
				text := d.results.Refusal(refusal, false)
				r.Reason, r.Message = text.Reason, text.Message
			}
			continue
		}
		r.addForm(alt.Name)
		r.NodesPerReplica = max(r.NodesPerReplica, len(alt.Tasks))
	}
	switch {
	case r.Reason != "":
		r.Message = fmt.Sprintf("%d of %d replicas have nodes: %s", placed, r.Desired, r.Message)
	case placed < r.Desired:
		r.Reason, r.Message = reasonUnreported, fmt.Sprintf("%d of %d replicas have nodes; there is room for the others.", placed, r.Desired)
	}
}

// mostMessage is the longest message that the table has, in characters.
const mostMessage = 400

// write writes the rows as a table, and below it why replicas have no node or are not ready.
func (t *modelTable) write(rows []modelRow) {
	if len(rows) == 0 {
		t.writeNone()
		return
	}
	table := [][]string{{"NAME", "PLACEMENT", "READY", "NODES", "MEMORY", "WHY", "AGE"}}
	for i := range rows {
		r := &rows[i]
		cells := []string{r.Name, cmp.Or(r.Group, strings.Join(r.Forms, ", "), "-"), fmt.Sprintf("%d/%d", r.Ready, r.Desired), "-", "-", cmp.Or(r.Reason, "-"), r.age(t.world.now)}
		if r.NodesPerReplica > 0 {
			cells[3] = fmt.Sprint(r.NodesPerReplica)
		}
		if r.Memory > 0 {
			cells[4] = quantity.Memory(cluster.Bytes(r.Memory))
		}
		for k := range cells {
			cells[k] = printable.Text(cells[k])
		}
		table = append(table, cells)
	}
	if t.all {
		table[0] = append([]string{"NAMESPACE"}, table[0]...)
		for i := range rows {
			table[i+1] = append([]string{rows[i].Namespace}, table[i+1]...)
		}
	}
	t.program.answers.Grid(table)
	t.writeReasons(rows)
}

// writeReasons writes why replicas have no node or are not ready.
func (t *modelTable) writeReasons(rows []modelRow) {
	out, first := t.program.answers.Stdout(), true
	for i := range rows {
		r := &rows[i]
		if r.Message == "" {
			continue
		}
		if first {
			fmt.Fprintln(out)
			first = false
		}
		name := "model/" + r.Name
		if t.all {
			name = "model/" + r.Namespace + "/" + r.Name
		}
		explain.Wrap(out, name+": "+printable.Text(shortened(r.Message)), "", "  ", t.program.answers.Style().Width)
	}
}

// writeNone says that there are no Models, and which namespaces have some.
func (t *modelTable) writeNone() {
	w, out := t.world, t.program.answers.Stdout()
	if t.all {
		fmt.Fprintln(out, "The cluster has no models.")
		return
	}
	list, _ := w.models()
	var elsewhere []string
	for _, m := range list {
		elsewhere = append(elsewhere, m.Namespace)
	}
	text := "Namespace " + w.namespace + " has no models."
	if elsewhere = slices.Compact(elsewhere); len(elsewhere) > 0 {
		text += " There are some in " + explain.List(elsewhere, 3) + " (see -n and -A)."
	}
	fmt.Fprintln(out, text)
}

// age returns how long the Model exists.
func (r *modelRow) age(now int64) string {
	if r.created.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(0, time.Unix(0, now).Sub(r.created.Time)))
}

// shortened returns the message without what is too long for a table.
func shortened(message string) string {
	if runes := []rune(message); len(runes) > mostMessage {
		return string(runes[:mostMessage]) + "…"
	}
	return message
}
