package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/sim/scenario"
	"github.com/spf13/cobra"
)

func (p *program) queues() *cobra.Command {
	var flags inputFlags
	var output string
	c := &cobra.Command{
		Use:   "queues PATH...",
		Short: "Show the quota, use and fair share of each queue, and how the share is computed",
		Long: `Shows the tree of queues as it is in the input, before any session: for each
queue and resource the quota, the limit, what its jobs request, what they use,
the fair share, and how this share is computed.

Each queue gets what it requests, up to its quota. What is left is divided by
priority and then by weight. The children of a queue divide the share of their
parent. A quota in parentheses is not set on the queue itself; it is the sum of
the quotas of its children.

Devices are always divided. Another resource is divided only if a quota, limit or
weight of some queue names it, or the profile does (FairShare with divide). The
remaining resources are not divided; every queue may use them.

If past use counts (FairShare with halfLife), the weight that is shown is the one
that results from it, followed by the weight of the queue in parentheses.`,
		Example: "  berth queues cluster/\n  berth queues cluster/ -o json",
		Args:    minArgs(1, "a file or directory that describes a cluster"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("--output", output, "table", "wide", "json", "yaml"); err != nil {
				return err
			}
			in, err := p.open(args, &flags)
			if err != nil {
				return err
			}
			settings, err := readSettings(in.bundle)
			if err != nil {
				return err
			}
			settings.Decay.Now = in.now
			v := viewQueues(in.state, settings)
			if output == "json" || output == "yaml" {
				return p.writeData(output, v.result())
			}
			v.table(p, output == "wide")
			return nil
		},
	}
	c.Flags().StringVarP(&output, "output", "o", "table", "format of the result: table, wide, json or yaml")
	flags.addFlags(c)
	completeValues(c, "output", "table", "wide", "json", "yaml")
	return c
}

// readSettings returns the settings with which the bundle's profile computes fair shares.
func readSettings(b *manifest.Bundle) (fairshare.Settings, error) {
	profiles, err := scenario.Profiles(b)
	if err != nil {
		return fairshare.Settings{}, err
	}
	return settingsOf(profiles[0].Plugins) // fair shares are the same in all profiles
}

// queueView is the tree of queues and what is needed to print it.
type queueView struct {
	tree    *fairshare.Tree
	devices map[string]bool // resources that count devices
	divided map[string]bool // resources that queues divide
}

func viewQueues(state *cluster.State, settings fairshare.Settings) *queueView {
	v := &queueView{fairshare.Shares(state.View(), fairshare.Offered(state.View()), settings), map[string]bool{cluster.DefaultDeviceResource: true}, settings.Divided(state.View())}
	for _, n := range state.Nodes() {
		for i := range n.Devices {
			v.devices[n.Devices[i].Resource] = true
		}
	}
	return v
}

// each visits the queues depth first, each parent before its children. The default
// queue is skipped if it has no share of anything.
func (v *queueView) each(visit func(q *fairshare.Queue, depth int)) {
	v.eachIn(func(list []*fairshare.Queue) []*fairshare.Queue { return list }, visit)
}

// eachIn is like each. The function order returns the children of one queue in the order in which
// they are visited.
func (v *queueView) eachIn(order func([]*fairshare.Queue) []*fairshare.Queue, visit func(q *fairshare.Queue, depth int)) {
	var walk func(list []*fairshare.Queue, depth int)
	walk = func(list []*fairshare.Queue, depth int) {
		for _, q := range order(list) {
			if q.Name == cluster.DefaultQueue && len(q.Shares) == 0 {
				continue
			}
			visit(q, depth)
			walk(q.Children, depth+1)
		}
	}
	walk(v.tree.Roots, 0)
}

// table prints the shares of the queues. If the table is too wide and not wide, how each share is
// computed is below its row.
func (v *queueView) table(p *program, wide bool) {
	rows := [][]string{{"QUEUE", "RESOURCE", "QUOTA", "LIMIT", "REQUESTED", "USED", "FAIR SHARE", "WHY"}}
	natural := func(list []*fairshare.Queue) []*fairshare.Queue {
		return explain.NaturalOrder(list, func(q **fairshare.Queue) string { return (*q).Name })
	}
	v.eachIn(natural, func(q *fairshare.Queue, depth int) {
		name := strings.Repeat("  ", depth) + q.Name
		if len(q.Shares) == 0 {
			rows = append(rows, []string{name, "-", "-", "-", "-", "-", "-", "it requests nothing"})
		}
		for i := range q.Shares {
			sh := &q.Shares[i]
			amount := func(value int64) string {
				if value < 0 {
					return "-"
				}
				return quantity.Amount(sh.Resource, value, v.devices[sh.Resource], false)
			}
			quota := amount(sh.Quota)
			if sh.Quota >= 0 && !hasQuota(q, sh.Resource) {
				quota = "(" + quota + ")"
			}
			rows = append(rows, []string{name, sh.Resource, quota, amount(sh.Limit), amount(sh.Request), amount(q.Used.Of(sh.Resource)), amount(sh.Share()), why(q, sh, amount)})
			name = ""
		}
	})
	width := columns()
	if _, total := columnWidths(rows); wide || total <= width {
		grid(p.stdout, rows)
	} else {
		narrowQueues(p.stdout, rows, width)
	}
	var total, free []string
	for _, a := range v.tree.Total {
		if !v.divided[a.Name] {
			free = append(free, a.Name)
		}
		total = append(total, a.Name+" "+quantity.Amount(a.Name, a.Value, v.devices[a.Name], false))
	}
	if len(total) > 0 {
		fmt.Fprintln(p.stdout)
		explain.Wrap(p.stdout, "The schedulable nodes have "+explain.List(total, len(total))+".", "", "  ", width)
	} else {
		fmt.Fprintln(p.stdout, "\nThere is nothing to divide: no schedulable node has any resources.")
	}
	if len(free) > 0 {
		explain.Wrap(p.stdout, "Not divided among queues: "+explain.List(free, len(free))+".", "", "  ", width)
	}
}

// narrowQueues prints the rows with the last column, which is text, below each row.
func narrowQueues(w io.Writer, rows [][]string, width int) {
	last := len(rows[0]) - 1
	var figures [][]string
	for _, r := range rows {
		figures = append(figures, r[:last])
	}
	kinds := make([]columnKind, last)
	kinds[0], kinds[1] = nameColumn, nameColumn // the queue and the resource
	fitted := fitRows(figures, width, kinds)
	all := slices.Concat(fitted...)
	widths, _ := columnWidths(all)
	lines := gridLines(all)
	indent := strings.Repeat(" ", min(widths[0]+2, width/3))
	for i, r := range fitted {
		for range r {
			fmt.Fprintln(w, lines[0])
			lines = lines[1:]
		}
		if i > 0 {
			explain.Wrap(w, rows[i][last], indent, indent, width)
		}
	}
}

// hasQuota reports whether the queue itself has a quota of the resource.
func hasQuota(q *fairshare.Queue, resource string) bool {
	for _, a := range q.Quota {
		if a.Name == resource {
			return true
		}
	}
	return false
}

// why returns a text that says how a share is composed and why it is not larger.
func why(q *fairshare.Queue, sh *fairshare.Share, amount func(int64) string) string {
	var parts []string
	if sh.Allotment.Quota > 0 {
		parts = append(parts, amount(sh.Allotment.Quota)+" of the quota")
	}
	if sh.OverQuota > 0 {
		weight := fmt.Sprint(q.WeightOf(sh.Resource))
		if p := sh.Past; p != nil {
			weight = fmt.Sprintf("%s (%s, past use %s %%)", thousandths(p.Weight), weight, percent(p.Share))
		}
		parts = append(parts, amount(sh.OverQuota)+" by weight "+weight)
	}
	stop := "nothing more is left"
	switch {
	case sh.Request == 0:
		stop = "it requests nothing"
	case sh.Stop == fairshare.Satisfied:
		stop = "all that it requests"
	case sh.Stop == fairshare.AtLimit:
		stop = "up to the limit"
	case sh.Stop == fairshare.AtQuota:
		stop = "nothing beyond the quota, because its weight is 0"
	case q.Parent != nil:
		stop = "nothing more is left in " + q.Parent.Name
	}
	if len(parts) == 0 {
		return stop
	}
	return strings.Join(parts, ", ") + "; " + stop
}

// thousandths formats a number of thousandths as a decimal: 1500 is "1.5".
func thousandths(v int64) string { return strconv.FormatFloat(float64(v)/1000, 'f', -1, 64) }

// percent formats a number of thousandths in percent: 15 is "1.5".
func percent(v int64) string { return strconv.FormatFloat(float64(v)/10, 'f', -1, 64) }

// queuesResult is what queues prints as JSON. It is API: fields are added, never
// renamed. Amounts are written as in manifests.
type queuesResult struct {
	Total  map[string]string `json:"total"`
	Queues []queueResult     `json:"queues"` // each parent before its children
}

type queueResult struct {
	Name     string        `json:"name"`
	Parent   string        `json:"parent,omitempty"`
	Tier     cluster.Tier  `json:"tier"`
	Priority int32         `json:"priority"`
	Shares   []shareResult `json:"shares"` // by resource
}

type shareResult struct {
	Resource  string         `json:"resource"`
	Quota     string         `json:"quota,omitempty"` // of the queue itself, or the sum of those of its children
	Limit     string         `json:"limit,omitempty"`
	Weight    int64          `json:"weight"`
	Requested string         `json:"requested"`
	Used      string         `json:"used"`
	FairShare string         `json:"fairShare"`
	FromQuota string         `json:"fromQuota"`
	OverQuota string         `json:"overQuota"`
	Stop      fairshare.Stop `json:"stop"` // Satisfied, AtLimit, AtQuota or NoneLeft
	// Set only if past use counts: the queue's part of all past use, and the weight
	// that results from it.
	PastShare       json.Number `json:"pastShare,omitempty"`
	EffectiveWeight json.Number `json:"effectiveWeight,omitempty"`
}

func (v *queueView) result() queuesResult {
	out := queuesResult{Total: map[string]string{}, Queues: []queueResult{}}
	format := func(name string, value int64) string {
		if value < 0 {
			return ""
		}
		return quantity.Amount(name, value, v.devices[name], true)
	}
	for _, a := range v.tree.Total {
		out.Total[a.Name] = format(a.Name, a.Value)
	}
	v.each(func(q *fairshare.Queue, _ int) {
		r := queueResult{q.Name, q.Queue.Parent, q.Tier, q.Priority, []shareResult{}}
		for i := range q.Shares {
			sh := &q.Shares[i]
			n := sh.Resource
			r.Shares = append(r.Shares, shareResult{
				n, format(n, sh.Quota), format(n, sh.Limit), q.WeightOf(n), format(n, sh.Request), format(n, q.Used.Of(n)),
				format(n, sh.Share()), format(n, sh.Allotment.Quota), format(n, sh.OverQuota), sh.Stop, "", "",
			})
			if p := sh.Past; p != nil {
				last := &r.Shares[len(r.Shares)-1]
				last.PastShare, last.EffectiveWeight = json.Number(thousandths(p.Share)), json.Number(thousandths(p.Weight))
			}
		}
		out.Queues = append(out.Queues, r)
	})
	return out
}
