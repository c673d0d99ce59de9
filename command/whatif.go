package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/nearest"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/sim"
	"github.com/berth-project/berth/internal/whatif"
	"github.com/spf13/cobra"
)

type whatifOptions struct {
	inputFlags
	output           string
	add, remove, set []string
	waitUntil        string
}

func (p *program) whatif() *cobra.Command {
	var o whatifOptions
	c := &cobra.Command{
		Use:   "whatif PATH... [--add-nodes GROUP=N] [--remove NODE|WORKLOAD] [--set OBJECT.FIELD=VALUE] [--wait-until TIME]",
		Short: "Show what a change of the cluster or of a workload would cause",
		Long: `Simulates the cluster without the change and with it, and lists the tasks that
would be placed, moved, evicted, pending or no longer requested because of the
change.

A GROUP is a product (NVIDIA-L4), a product and a count of devices per node
("NVIDIA-L4 x 8"), or the name of a node, to add empty copies of it. An OBJECT is
job/NAME, model/NAME, queue/NAME, node/NAME, budget/NAME or pod/NAMESPACE/NAME. A
job, model or budget with a namespace is written job/NAMESPACE/NAME. Without a
VALUE, the field is removed. The arguments that berth why -o json lists for a
change can be given as they are.`,
		Example: `  berth whatif cluster/ --add-nodes NVIDIA-L4=2
  berth whatif cluster/ --remove gpu-17 --set job/train.spec.priority=10
  berth whatif cluster/ --remove job/sweep-3
  berth whatif cluster/ --set 'job/train.spec.tasks[0].devices.count=4'
  berth whatif cluster/ --set queue/research.spec.quota.nvidia.com/gpu=20`,
		Args: minArgs(1, "a file or directory that describes a cluster"),
		RunE: func(_ *cobra.Command, args []string) error { return p.runWhatif(args, o) },
	}
	f := c.Flags()
	f.StringVarP(&o.output, "output", "o", "text", "format of the answer: text, json or yaml")
	f.StringArrayVar(&o.add, "add-nodes", nil, "GROUP=N: add N empty nodes to a group (may be repeated)")
	f.StringArrayVar(&o.remove, "remove", nil, "NODE or WORKLOAD: remove a node, a job, a pod or a model (may be repeated)")
	f.StringArrayVar(&o.set, "set", nil, "OBJECT.FIELD=VALUE: set a field of an object (may be repeated)")
	f.StringVar(&o.waitUntil, "wait-until", "", "TIME: simulate the change at a later time, such as 2026-01-02T15:04:05Z")
	o.inputFlags.addFlags(c)
	completeValues(c, "output", "text", "json", "yaml")
	completeFlag(c, "add-nodes", completeGroup)
	completeFlag(c, "remove", completeRemoved)
	completeFlag(c, "set", completeObject)
	return c
}

func (p *program) runWhatif(args []string, o whatifOptions) error {
	if err := oneOf("--output", o.output, "text", "json", "yaml"); err != nil {
		return err
	}
	if len(o.add)+len(o.remove)+len(o.set)+len(o.waitUntil) == 0 {
		return fmt.Errorf("whatif needs a change: --add-nodes, --remove, --set or --wait-until")
	}
	in, err := p.open(args, &o.inputFlags)
	if err != nil {
		return err
	}
	later := in.now
	if o.waitUntil != "" {
		if later, err = parseTime("--wait-until", o.waitUntil); err != nil {
			return err
		}
	}
	if later < in.now {
		return fmt.Errorf("--wait-until %s is before the time of the input, %s", o.waitUntil, quantity.ExactTime(in.now))
	}
	before, err := sim.Simulate(in.engine, in.state, sim.Options{Now: in.now})
	if err != nil {
		return err
	}
	for _, s := range o.set {
		if err := in.bundle.Set(s); err != nil {
			return err
		}
	}
	state, err := in.bundle.State()
	if err != nil {
		return err
	}
	for _, name := range o.remove {
		if err := remove(state, in.bundle.LeftOutWorkloads(), name); err != nil {
			return err
		}
	}
	if err := addNodes(state, o.add); err != nil {
		return err
	}
	after, err := sim.Simulate(in.engine, state, sim.Options{Now: later})
	if err != nil {
		return err
	}
	d := whatif.Compare(explain.PhrasesOf(in.engine), before, after)
	if o.output != "text" {
		return p.writeData(o.output, d)
	}
	explain.WriteDifference(p.stdout, d)
	return nil
}

// remove removes the node or the workload of that name. The parameter leftOut is as for
// workload.
func remove(state *cluster.State, leftOut map[string]string, name string) error {
	if node, is := strings.CutPrefix(name, "node/"); is || !strings.Contains(name, "/") {
		err := removeNode(state, node)
		if err != nil && state.Node(name) == nil {
			return fmt.Errorf("%w; a workload is written with its kind, such as job/NAME", err)
		}
		return err
	}
	id, err := workload(state, leftOut, name)
	if err != nil {
		return fmt.Errorf("--remove: %w", err)
	}
	return whatif.Remove(state, id)
}

// removeNode removes the node. The tasks that ran on it are pending afterwards. A
// gang that no longer has its minimum is pending as a whole.
func removeNode(state *cluster.State, name string) error {
	if state.Node(name) == nil {
		return fmt.Errorf("--remove %s: no such node%s", name, nearest.Hint(name, nodeNames(state)))
	}
	return sim.RemoveNode(state, name)
}

func nodeNames(state *cluster.State) []string {
	var out []string
	for _, n := range state.Nodes() {
		out = append(out, n.Name)
	}
	slices.SortFunc(out, explain.CompareNatural)
	return out
}

// Limits on the sum of all --add-nodes flags. They keep the process from running
// out of memory.
const (
	mostAdded        = 100_000
	mostAddedDevices = 2_000_000
)

func addNodes(state *cluster.State, specs []string) error {
	nodes, devices := 0, 0
	for _, spec := range specs {
		i := strings.LastIndexByte(spec, '=') // the name of a product may contain "=", that of a node cannot
		n, err := strconv.Atoi(spec[i+1:])
		if i < 0 || (err != nil && !errors.Is(err, strconv.ErrRange)) || n < 1 {
			return fmt.Errorf("--add-nodes %s: write GROUP=N with N from 1 to %d", spec, mostAdded)
		}
		if err != nil || n > mostAdded-nodes {
			return fmt.Errorf("--add-nodes %s: at most %d nodes can be added", spec, mostAdded)
		}
		template, err := findTemplate(state, strings.TrimSpace(spec[:i]))
		if err != nil {
			return fmt.Errorf("--add-nodes %s: %w", spec, err)
		}
		nodes += n
		if devices += n * len(template.Devices); devices > mostAddedDevices {
			return fmt.Errorf("--add-nodes %s: at most %d devices can be added, and each of these nodes has %d", spec, mostAddedDevices, len(template.Devices))
		}
		if _, err = whatif.AddNodesLike(state, template, n); err != nil {
			return err
		}
	}
	return nil
}

// findTemplate returns the node that the added nodes are copies of: the node of
// that name, or a node of the group of that name.
func findTemplate(state *cluster.State, name string) (*cluster.Node, error) {
	if n := state.Node(name); n != nil {
		return n, nil
	}
	want := strings.ReplaceAll(name, " x ", " × ")
	var names, matches []string
	var found *cluster.Node
	for _, g := range state.View().Groups() {
		names = append(names, strings.ReplaceAll(explain.GroupName(g.Key), " × ", " x "))
		if want == g.Key.Product || want == explain.GroupName(g.Key) {
			matches = append(matches, names[len(names)-1])
			found = g.Nodes[0]
		}
	}
	switch len(matches) {
	case 1:
		return found, nil
	case 0:
		if len(names) == 0 {
			return nil, fmt.Errorf("no such group, and no node has devices; name a node instead")
		}
		slices.SortFunc(names, explain.CompareNatural)
		return nil, fmt.Errorf("no such group; the groups are %s; or name a node", strings.Join(names, ", "))
	}
	if slices.Compact(matches)[0] == matches[len(matches)-1] {
		return nil, fmt.Errorf("several groups have this name and differ in memory; name one of their nodes instead")
	}
	return nil, fmt.Errorf("several groups match; name one of %s", strings.Join(matches, " or "))
}
