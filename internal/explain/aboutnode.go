package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// NewNodeReport says what is on the node, and why the refused workloads are not placed on it. The
// State is the one that the refusals are about.
func NewNodeReport(n *cluster.Node, refusals []*engine.Refusal, ph Phrases) *wire.NodeReport {
	const most = 20
	r := &wire.NodeReport{Node: n.Name, Cell: n.Cell, Status: nodeStatus(n), Resources: []wire.NodeResource{}, Tasks: []wire.NodeTask{}, Devices: len(n.Devices)}
	if g := n.Group(); g != nil {
		group := wire.NewGroup(g.Key)
		r.Group = &group
	}
	for _, t := range n.Taints {
		if t.Effect != cluster.PreferNoSchedule {
			r.Taints = append(r.Taints, TaintText(t))
		}
	}
	for _, l := range n.Resources {
		if l.Name != PodSlots {
			r.Resources = append(r.Resources, wire.NodeResource{Name: l.Name, Capacity: quantity.Amount(l.Name, l.Capacity, false, true), Free: quantity.Amount(l.Name, max(0, l.Free()), false, true)})
		}
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && d.Idle() {
			r.FreeDevices++
		}
	}
	for _, t := range n.Tasks {
		r.Tasks = append(r.Tasks, newNodeTask(t))
	}
	slices.SortStableFunc(r.Tasks, func(a, b wire.NodeTask) int { return strings.Compare(a.Workload, b.Workload) })
	for _, refused := range refusals {
		miss, ok := nodeMiss(n, refused, ph)
		if !ok || len(r.Pending) == most {
			r.MorePending++
			continue
		}
		r.Pending = append(r.Pending, miss)
	}
	return r
}

func nodeStatus(n *cluster.Node) string {
	switch {
	case !n.Ready():
		return string(n.Phase)
	case n.Unschedulable:
		return "cordoned"
	}
	return "ready"
}

func newNodeTask(t *cluster.Task) wire.NodeTask {
	out := wire.NodeTask{Workload: t.Job.ID, Task: t.Name, Devices: []int{}, Queue: t.Job.Queue, Priority: t.Job.Priority, Preemptible: t.Job.Preemptible}
	for _, c := range t.Claims {
		out.Devices = append(out.Devices, c.Device)
	}
	out.Names = wire.DeviceNames(t.Node, t.Claims)
	switch t.Status {
	case cluster.Nominated:
		out.Status = "reserved"
	case cluster.Releasing:
		out.Status = "releasing"
	}
	return out
}

// nodeMiss returns why the refused workload is not placed on the node. It returns false if the
// refusal does not list the node.
func nodeMiss(n *cluster.Node, refused *engine.Refusal, ph Phrases) (wire.NodeMiss, bool) {
	a := wire.MainAttempt(refused)
	x := a.Before
	for i := range a.Nearest {
		if a.Nearest[i].Node == n.Name {
			x = &a.Nearest[i].Rejection
		}
	}
	if x == nil {
		return wire.NodeMiss{}, false
	}
	words := ph.rejectionText(x, nil)
	if have := quantity.Of(x.Have, 1); have != "" && !strings.Contains(words, have) {
		words += " (has " + have + ")"
	}
	return wire.NodeMiss{Workload: refused.Job, Plugin: x.Plugin, Reason: string(x.Reason), Words: words}, true
}

// TaintText returns key=value:effect.
func TaintText(t cluster.Taint) string {
	s := t.Key
	if t.Value != "" {
		s += "=" + t.Value
	}
	return s + ":" + string(t.Effect)
}

// WriteNode writes the report for people.
func WriteNode(w io.Writer, n *cluster.Node, r *wire.NodeReport) {
	title := "no devices"
	if g := n.Group(); g != nil {
		title = GroupTitle(g.Key)
	}
	cell := ""
	if r.Cell != "" {
		cell = ", cell " + r.Cell
	}
	wrapped(w, fmt.Sprintf("Node %s: %s%s, %s.", r.Node, title, cell, r.Status), "", "  ")
	if len(r.Tasks) == 0 {
		fmt.Fprintln(w, "No task is on it.")
	} else {
		fmt.Fprintf(w, "\n%s on it:\n", english.Count(len(r.Tasks), "task"))
		tasks := slices.Clone(r.Tasks)
		slices.SortStableFunc(tasks, func(a, b wire.NodeTask) int {
			return cmp.Or(CompareNatural(a.Workload, b.Workload), CompareNatural(a.Task, b.Task))
		})
		writeNodeTasks(w, tasks)
	}
	fmt.Fprintln(w)
	wrapped(w, couldTake(n, r), "", "  ")
	if len(r.Pending) == 0 && r.MorePending == 0 {
		fmt.Fprintln(w, "No workload is pending.")
		return
	}
	fmt.Fprintln(w, "\nPending, and why not here:")
	for _, m := range NaturalOrder(r.Pending, func(m *wire.NodeMiss) string { return m.Workload }) {
		wrapped(w, m.Workload+": "+m.Words, "  ", "    ")
	}
	if r.MorePending > 0 {
		fmt.Fprintf(w, "  and %s\n", english.Count(r.MorePending, "more workload"))
	}
}

func writeNodeTasks(w io.Writer, tasks []wire.NodeTask) {
	width := 0
	for _, t := range tasks {
		width = max(width, len(t.Workload)+1+len(t.Task))
	}
	for _, t := range tasks {
		var facts []string
		if len(t.Devices) > 0 {
			facts = append(facts, indexText(t.Devices, t.Names))
		}
		facts = append(facts, "queue "+t.Queue)
		if t.Priority != 0 {
			facts = append(facts, "priority "+strconv.Itoa(int(t.Priority)))
		}
		if t.Preemptible {
			facts = append(facts, "preemptible")
		}
		if t.Status != "" {
			facts = append(facts, t.Status)
		}
		wrapped(w, strings.Join(facts, ", "), "  "+pad(t.Workload+" "+t.Task, width)+"  ", "      ")
	}
}

// indexText returns "device 3", "devices 0, 1 and 2" or, with names, "device rocm:0".
func indexText(devices []int, names []string) string {
	if len(names) == 0 {
		names = wire.Map(devices, strconv.Itoa)
	}
	return english.Noun(len(names), "device") + " " + List(names, 8)
}

// couldTake returns a sentence that says what is free on the node, and which taints it has.
func couldTake(n *cluster.Node, r *wire.NodeReport) string {
	if n.Closed() {
		return "It takes no new task while it is " + r.Status + "."
	}
	var free []string
	if r.Devices > 0 {
		free = append(free, fmt.Sprintf("%d of %s", r.FreeDevices, english.Count(r.Devices, "device")))
	}
	for _, l := range n.Resources {
		if l.Name == cluster.CPU || l.Name == cluster.Memory {
			free = append(free, fmt.Sprintf("%s of %s", quantity.Amount(l.Name, max(0, l.Free()), false, false), quantity.Resource(l.Name, l.Capacity)))
		}
	}
	text := "Free: " + listInOrder(free, len(free)) + "."
	if len(free) == 0 {
		text = "It offers nothing."
	}
	if parts := partsFree(n); parts != "" {
		text += " " + parts
	}
	if len(r.Taints) > 0 {
		text += " Only tasks that tolerate " + List(r.Taints, 4) + " are placed on it."
	}
	return text
}

// partsFree returns a sentence about the free memory of devices that tasks hold in part.
func partsFree(n *cluster.Node) string {
	parts, most := 0, cluster.Bytes(0)
	for i := range n.Devices {
		if d := &n.Devices[i]; !d.Lost && !d.Idle() && d.FreeMilli() > 0 && d.Free() > 0 {
			parts++
			most = max(most, d.Free())
		}
	}
	if parts == 0 {
		return ""
	}
	return fmt.Sprintf("%s held in part, with up to %s free.", english.Count(parts, "more device")+" "+ifOne(parts, "is", "are"), quantity.Memory(most))
}
