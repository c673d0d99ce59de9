package oracle

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// String returns the case as text.
func (c *Case) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "case: %s %d\nnow: %dm\nnodes:\n", c.Kind, c.Number, c.Now/minute)
	for _, n := range c.State.Nodes() {
		fmt.Fprintf(&b, "- {name: %s, cores: %d, devices: %d, product: %s, classes: %v}\n", n.Name, n.Ledger(cluster.CPU).Capacity/1000, len(n.Devices), n.Devices[0].Product, n.SupportedIsolation.GPU)
	}
	b.WriteString("queues:\n")
	o := newObjects(c.State.View(), c.Now)
	o.divide(c.State.View())
	for _, q := range o.queues {
		own := c.State.Queue(q.name)
		fmt.Fprintf(&b, "- {name: %s, parent: %q, tier: %s, priority: %d, weight: %d, quota: %s, limit: %s, share: %s, used: %s", q.name, own.Parent, q.tier, own.Priority, own.Weight,
			amounts(own.Quota), amounts(own.Limits), amountsOf(q.share), amounts(own.Used))
		if q.minRunBeforePreempt+q.minRunBeforeReclaim > 0 {
			fmt.Fprintf(&b, ", minRunBeforePreempt: %dm, minRunBeforeReclaim: %dm", q.minRunBeforePreempt/minute, q.minRunBeforeReclaim/minute)
		}
		b.WriteString("}\n")
	}
	for _, k := range o.budgets {
		fmt.Fprintf(&b, "budget: {app: %v, bound: %d, percent: %v, unavailable: %v}\n", k.Selector[0].Values, k.Bound, k.Percent, k.Unavailable)
	}
	b.WriteString("jobs:\n")
	for _, f := range o.jobs {
		j := f.job
		fmt.Fprintf(&b, "- {id: %s, queue: %s, priority: %d, created: %d, preemptible: %v, min: %d, labels: %v, displaced: %v}\n", j.ID, j.Queue, j.Priority, j.Created, j.Preemptible, f.alt.Min, j.Labels, j.Displaced)
		for _, t := range f.tasks {
			fmt.Fprintf(&b, "  - {name: %s, asks: %s%s%s}\n", t.task.Name, describe(t), subgroup(t), where(t.task))
		}
	}
	return b.String()
}

// describe returns what the task requests as text.
func describe(t *task) string {
	shape := t.task.Shape
	need := &shape.Need
	out := fmt.Sprintf("%d cores %d GiB", t.amounts[cpu]/1000, t.amounts[memory]/int64(gib))
	switch {
	case need.Devices == 0:
	case need.Share > 0:
		out += fmt.Sprintf(" %d×%d‰ of a device", need.Devices, need.Share)
	case need.Memory > 0:
		out += fmt.Sprintf(" %d GiB of a device", need.Memory/gib)
	default:
		out += fmt.Sprintf(" %d devices", need.Devices)
	}
	return strings.TrimSpace(fmt.Sprint(out, " ", strings.Join(need.Products, ","), " ", shape.Isolation.GPU, shape.Isolation.Session))
}

func subgroup(t *task) string {
	if t.task.Subgroup == 0 {
		return ""
	}
	g := t.form.alt.Subgroups[t.task.Subgroup-1]
	return fmt.Sprintf(", of: %s (min %d)", g.Name, g.Min)
}

func where(t *cluster.Task) string {
	if t.Node == nil {
		return ""
	}
	var devices []int
	for _, c := range t.Claims {
		devices = append(devices, c.Device)
	}
	return fmt.Sprintf(", on: %s, devices: %v, started: %dm", t.Node.Name, devices, t.Started/minute)
}

func amounts(list cluster.Resources) string {
	var out []string
	for _, a := range list {
		if a.Name != cluster.Memory {
			out = append(out, fmt.Sprintf("%s %g", a.Name, float64(a.Value)/1000))
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func amountsOf(v vector) string {
	var list cluster.Resources
	for r := range v {
		if v[r] > 0 {
			list = list.With(resourceNames[r], v[r])
		}
	}
	return amounts(list)
}
