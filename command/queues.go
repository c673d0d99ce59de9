package command

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/fairshare"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/scenario"
	fairshareplugin "github.com/berth-project/berth/plugins/fairshare"
	"github.com/spf13/cobra"
)

func (p *program) queues() *cobra.Command {
	var config, output string
	var t clock
	c := &cobra.Command{
		Use:   "queues PATH...",
		Short: "Show the queues, what each should have of every resource, and why",
		Long: `Shows the tree of queues as the input has it, before anything is decided: what
each deserves (its quota), may have (its limit), asks for, uses and should have
(its fair share), and how that share came about.

Each gets what it asks for within its quota; the rest goes by priority and then
by weight; the queues below one divide what it gets. A quota that is not the
queue's own but that of the queues below it stands in parentheses.

Devices are divided, and of other resources those that the terms of some queue
name, or the profile (FairShare with divide). The rest is free for all.

Where the profile lets the past count (FairShare with halfLife), the weight is
what the queue's past use has made of it; its own stands beside it.`,
		Example: "  berth queues cluster/\n  berth queues cluster/ -o json",
		Args:    paths(1, "a file or directory that describes a cluster"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := oneOf("--output", output, "table", "json"); err != nil {
				return err
			}
			b, err := p.load(args, config)
			if err != nil {
				return err
			}
			_, state, err := p.prepare(b)
			if err != nil {
				return err
			}
			settings, err := readSettings(b)
			if err != nil {
				return err
			}
			if settings.Decay.Now, err = t.read(b); err != nil {
				return err
			}
			v := viewQueues(state, settings)
			if output == "json" {
				return writeJSON(p.stdout, v.result())
			}
			v.table(p)
			return nil
		},
	}
	c.Flags().StringVar(&config, "config", "", "file with a SchedulerConfiguration")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	t.flag(c)
	choices(c, "output", "table", "json")
	return c
}

// readSettings is how the bundle's profile wants shares worked out.
func readSettings(b *manifest.Bundle) (fairshare.Settings, error) {
	profile, err := scenario.Profile(b)
	if err != nil {
		return fairshare.Settings{}, err
	}
	for _, p := range profile {
		if p.Name == fairshareplugin.Name && p.Arguments != nil {
			return fairshareplugin.ReadSettings(p.Arguments)
		}
	}
	return fairshare.Settings{}, nil
}

// queueView is the tree and what it takes to spell it.
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

// each visits the queues from the top down, branch by branch. The default queue
// is left out where nobody uses it.
func (v *queueView) each(visit func(q *fairshare.Queue, depth int)) {
	var walk func(list []*fairshare.Queue, depth int)
	walk = func(list []*fairshare.Queue, depth int) {
		for _, q := range list {
			if q.Name == cluster.DefaultQueue && len(q.Shares) == 0 {
				continue
			}
			visit(q, depth)
			walk(q.Children, depth+1)
		}
	}
	walk(v.tree.Roots, 0)
}

func (v *queueView) table(p *program) {
	rows := [][]string{{"QUEUE", "RESOURCE", "QUOTA", "LIMIT", "REQUESTED", "USED", "FAIR SHARE", "WHY"}}
	v.each(func(q *fairshare.Queue, depth int) {
		name := strings.Repeat("  ", depth) + q.Name
		if len(q.Shares) == 0 {
			rows = append(rows, []string{name, "-", "-", "-", "-", "-", "-", "it asks for nothing"})
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
			if sh.Quota >= 0 && !declares(q, sh.Resource) {
				quota = "(" + quota + ")"
			}
			rows = append(rows, []string{name, sh.Resource, quota, amount(sh.Limit), amount(sh.Request), amount(q.Used.Of(sh.Resource)), amount(sh.Share()), why(q, sh, amount)})
			name = ""
		}
	})
	grid(p.stdout, rows)
	var total, free []string
	for _, a := range v.tree.Total {
		if !v.divided[a.Name] {
			free = append(free, a.Name)
		}
		total = append(total, a.Name+" "+quantity.Amount(a.Name, a.Value, v.devices[a.Name], false))
	}
	if len(total) > 0 {
		fmt.Fprintf(p.stdout, "\nThe schedulable nodes have %s.\n", explain.List(total, len(total)))
	} else {
		fmt.Fprintln(p.stdout, "\nThere is nothing to divide: no schedulable node has anything.")
	}
	if len(free) > 0 {
		fmt.Fprintf(p.stdout, "Free for all: %s.\n", explain.List(free, len(free)))
	}
}

func declares(q *fairshare.Queue, resource string) bool {
	for _, a := range q.Quota {
		if a.Name == resource {
			return true
		}
	}
	return false
}

// why says what a share is made of and why it is no larger.
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
		stop = "it asks for nothing"
	case sh.Stop == fairshare.Satisfied:
		stop = "all it asks for"
	case sh.Stop == fairshare.AtLimit:
		stop = "up to the limit"
	case sh.Stop == fairshare.AtQuota:
		stop = "its weight is 0, so nothing beyond the quota"
	case q.Parent != nil:
		stop = q.Parent.Name + " has no more"
	}
	if len(parts) == 0 {
		return stop
	}
	return strings.Join(parts, ", ") + "; " + stop
}

// thousandths spells a number that is counted in them.
func thousandths(v int64) string { return strconv.FormatFloat(float64(v)/1000, 'f', -1, 64) }

// percent is thousandths of a whole in percent.
func percent(v int64) string { return strconv.FormatFloat(float64(v)/10, 'f', -1, 64) }

// queuesResult is what queues prints as JSON. It is API: fields are added, never
// renamed. Amounts are spelled as in manifests.
type queuesResult struct {
	Total  map[string]string `json:"total"`
	Queues []queueResult     `json:"queues"` // each after the one above it
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
	Quota     string         `json:"quota,omitempty"` // its own, or that of the queues below it
	Limit     string         `json:"limit,omitempty"`
	Weight    int64          `json:"weight"`
	Requested string         `json:"requested"`
	Used      string         `json:"used"`
	FairShare string         `json:"fairShare"`
	FromQuota string         `json:"fromQuota"`
	OverQuota string         `json:"overQuota"`
	Stop      fairshare.Stop `json:"stop"` // Satisfied, AtLimit, AtQuota or NoneLeft
	// Where the past counts: the queue's past use, as a part of the whole, and what its weight has become.
	PastShare       json.Number `json:"pastShare,omitempty"`
	EffectiveWeight json.Number `json:"effectiveWeight,omitempty"`
}

func (v *queueView) result() queuesResult {
	out := queuesResult{Total: map[string]string{}, Queues: []queueResult{}}
	spell := func(name string, value int64) string {
		if value < 0 {
			return ""
		}
		return quantity.Amount(name, value, v.devices[name], true)
	}
	for _, a := range v.tree.Total {
		out.Total[a.Name] = spell(a.Name, a.Value)
	}
	v.each(func(q *fairshare.Queue, _ int) {
		r := queueResult{q.Name, q.Queue.Parent, q.Tier, q.Priority, []shareResult{}}
		for i := range q.Shares {
			sh := &q.Shares[i]
			n := sh.Resource
			r.Shares = append(r.Shares, shareResult{
				n, spell(n, sh.Quota), spell(n, sh.Limit), q.WeightOf(n), spell(n, sh.Request), spell(n, q.Used.Of(n)),
				spell(n, sh.Share()), spell(n, sh.Allotment.Quota), spell(n, sh.OverQuota), sh.Stop, "", "",
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
