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
	w := newTable(c.State.View(), c.Now)
	w.divide(c.State.View())
	for _, q := range w.queues {
		own := c.State.Queue(q.name)
		fmt.Fprintf(&b, "- {name: %s, parent: %q, tier: %s, priority: %d, weight: %d, quota: %s, limit: %s, share: %s, used: %s", q.name, own.Parent, q.tier, own.Priority, own.Weight,
			amounts(own.Quota), amounts(own.Limits), amountsOf(q.share), amounts(own.Used))
		if q.minRunBeforePreempt+q.minRunBeforeReclaim > 0 {
			fmt.Fprintf(&b, ", minRunBeforePreempt: %dm, minRunBeforeReclaim: %dm", q.minRunBeforePreempt/minute, q.minRunBeforeReclaim/minute)
		}
		b.WriteString("}\n")
	}
	for _, k := range w.budgets {
		fmt.Fprintf(&b, "budget: {app: %v, bound: %d, percent: %v, unavailable: %v}\n", k.Selector[0].Values, k.Bound, k.Percent, k.Unavailable)
	}
	b.WriteString("jobs:\n")
	for _, j := range w.jobs {
		fmt.Fprintf(&b, "- {id: %s, queue: %s, priority: %d, created: %d, preemptible: %v, min: %d, labels: %v, displaced: %v}\n", j.ID, j.Queue, j.Priority, j.Created, j.Preemptible, j.alt.Min, j.Labels, j.Displaced)
		for _, t := range j.tasks {
			fmt.Fprintf(&b, "  - {name: %s, asks: %s%s%s}\n", t.Name, describe(t), subgroup(t), where(t))
		}
	}
	return b.String()
}

func describe(t *task) string {
	need := &t.Shape.Need
	out := fmt.Sprintf("%d cores %d GiB", t.asks[cpu]/1000, t.asks[memory]/int64(gib))
	switch {
	case need.Devices == 0:
	case need.Share > 0:
		out += fmt.Sprintf(" %d×%d‰ of a device", need.Devices, need.Share)
	case need.Memory > 0:
		out += fmt.Sprintf(" %d GiB of a device", need.Memory/gib)
	default:
		out += fmt.Sprintf(" %d devices", need.Devices)
	}
	return strings.TrimSpace(fmt.Sprint(out, " ", strings.Join(need.Products, ","), " ", t.Shape.Isolation.GPU, t.Shape.Isolation.Session))
}

func subgroup(t *task) string {
	if t.Subgroup == 0 {
		return ""
	}
	g := t.job.alt.Subgroups[t.Subgroup-1]
	return fmt.Sprintf(", of: %s (min %d)", g.Name, g.Min)
}

func where(t *task) string {
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
			list = list.With(names[r], v[r])
		}
	}
	return amounts(list)
}
