package ctl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	root "github.com/berth-project/berth/command"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/spf13/cobra"
)

func (p *program) top() *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "top",
		Short: "Show the devices of each node and queue as a picture",
		Long: `Shows the devices of the cluster as they are now: a row for each node with a cell
for each device, and a letter for each queue that holds devices; and for each
queue how many devices its pods hold and request.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			w, err := p.read()
			if err != nil {
				return err
			}
			in, err := p.build(w)
			if err != nil {
				return err
			}
			tree, err := root.Shares(in.cluster(), in.profiles[0].Plugins)
			if err != nil {
				return err
			}
			t := newTop(in.State, tree)
			if output == "json" {
				return p.answers.JSON(t)
			}
			if len(in.State.Nodes()) == 0 {
				fmt.Fprintln(p.answers.Stdout(), "The cluster has no nodes.")
				return nil
			}
			explain.QueuePicture(p.answers.Stdout(), in.State, p.answers.Style(), queueTitle)
			fmt.Fprintln(p.answers.Stdout())
			p.answers.Grid(t.rows())
			return nil
		},
	}
	root.OutputFlag(c, &output, "text", "json")
	return c
}

// otherSchedulers is what stands for the queue of pods that other schedulers placed.
const otherSchedulers = "(other schedulers)"

func queueTitle(queue string) string {
	if queue == feed.ForeignQueue {
		return otherSchedulers
	}
	return cmp.Or(queue, cluster.DefaultQueue)
}

// top is what the command top writes as JSON. It is API: fields are added, never renamed.
type top struct {
	Devices float64    `json:"devices"` // of all nodes, without those that are lost
	Held    float64    `json:"held"`
	Nodes   []topNode  `json:"nodes"`
	Queues  []topQueue `json:"queues"`
}

type topNode struct {
	Name    string             `json:"name"`
	Product string             `json:"product,omitempty"`
	Devices int                `json:"devices"`
	Held    float64            `json:"held"`
	Queues  map[string]float64 `json:"queues,omitempty"` // the devices that each queue holds
}

type topQueue struct {
	Name      string  `json:"name"`
	Held      float64 `json:"held"`
	Pending   float64 `json:"pending"`             // the devices that pods without a node request
	Quota     string  `json:"quota,omitempty"`     // of cluster.DefaultDeviceResource
	FairShare string  `json:"fairShare,omitempty"` // of cluster.DefaultDeviceResource
}

func newTop(state *cluster.State, tree *fairshare.Tree) *top {
	out := &top{Nodes: []topNode{}, Queues: []topQueue{}}
	held, pending := map[string]float64{}, map[string]float64{}
	for _, n := range state.Nodes() {
		row := topNode{Name: n.Name, Queues: map[string]float64{}}
		for i := range n.Devices {
			if !n.Devices[i].Lost {
				row.Devices++
				row.Product = n.Devices[i].Product
			}
		}
		for _, t := range n.Tasks {
			if d := claimed(t); d > 0 {
				row.Held += d
				row.Queues[queueTitle(t.Job.Queue)] += d
				held[queueTitle(t.Job.Queue)] += d
			}
		}
		out.Devices += float64(row.Devices)
		out.Held += row.Held
		out.Nodes = append(out.Nodes, row)
	}
	for _, j := range state.Jobs() {
		for _, t := range j.Tasks() {
			if t.Node == nil && t.Status == cluster.Pending {
				pending[queueTitle(j.Queue)] += requested(t.Shape)
			}
		}
	}
	out.Queues = topQueues(tree, held, pending)
	return out
}

// topQueues returns the queues that hold or request devices, or have a share of them, by name.
func topQueues(tree *fairshare.Tree, held, pending map[string]float64) []topQueue {
	byName := map[string]*topQueue{}
	queue := func(name string) *topQueue {
		if byName[name] == nil {
			byName[name] = &topQueue{Name: name}
		}
		return byName[name]
	}
	for name, devices := range held { // the order has no effect on the result
		queue(name).Held = devices
	}
	for name, devices := range pending {
		queue(name).Pending = devices
	}
	for _, q := range tree.BySlot {
		if q == nil {
			continue
		}
		for i := range q.Shares {
			if s := &q.Shares[i]; s.Resource == cluster.DefaultDeviceResource {
				queue(q.Name).FairShare = amount(s.Share())
				if s.Quota >= 0 {
					queue(q.Name).Quota = amount(s.Quota)
				}
			}
		}
	}
	out := []topQueue{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, *byName[name])
	}
	return out
}

func amount(value int64) string {
	return quantity.Amount(cluster.DefaultDeviceResource, value, true, false)
}

// claimed returns how many devices the task holds, parts of devices included.
func claimed(t *cluster.Task) float64 {
	total := int64(0)
	for _, c := range t.Claims {
		total += int64(c.Milli)
	}
	return float64(total) / 1000
}

// barWidth is the number of columns of a bar.
const barWidth = 24

// rows returns the table of queues.
func (t *top) rows() [][]string {
	out := [][]string{{"QUEUE", "DEVICES", "HELD", "PENDING", "QUOTA", "FAIR SHARE"}}
	for _, q := range t.Queues {
		out = append(out, []string{q.Name, bar(q.Held, t.Devices), quantity.Decimal(q.Held, 2), quantity.Decimal(q.Pending, 2), cmp.Or(q.Quota, "-"), cmp.Or(q.FairShare, "-")})
	}
	return append(out, []string{"(all)", bar(t.Held, t.Devices), fmt.Sprintf("%s of %s", quantity.Decimal(t.Held, 2), quantity.Decimal(t.Devices, 2)), "", "", ""})
}

// bar draws the part of the whole.
func bar(part, whole float64) string {
	if whole == 0 {
		return strings.Repeat("·", barWidth)
	}
	full := min(barWidth, int(part/whole*barWidth+0.5))
	if part > 0 {
		full = max(full, 1)
	}
	return strings.Repeat("█", full) + strings.Repeat("·", barWidth-full)
}

// requested returns how many devices the shape requests, parts of devices included. A shape
// that requests memory of a device counts as the whole device, because its part depends on the
// device.
func requested(s *cluster.Shape) float64 {
	return float64(s.Need.Devices) * float64(s.Need.Milli()) / 1000
}
