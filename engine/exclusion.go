package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// Exclusion is a level at which the tasks of a job exclude each other: there is at
// most one of them in each domain, whatever else is there. Nodes in no domain of the
// level are not concerned.
type Exclusion struct {
	Level   string // the label that names the domains; "" is the node itself
	Reason  Reason // with which a filter of the plugin turns down a domain that has one
	Subject string
}

// ExclusionRule says at which levels the tasks of a job exclude each other.
type ExclusionRule func(*cluster.Job) []Exclusion

// AddExclusion registers what is known about filters that keep the tasks of one
// job apart. Nothing is placed by it: a gang with fewer domains than its minimum is
// told that waiting cannot help.
//
// Combining: all exclusions count.
func (h *Hooks) AddExclusion(fn ExclusionRule) { add(h, &h.exclusions, fn) }

// apart bounds how many tasks of the job the nodes hold where its tasks exclude each
// other, and names the tightest exclusion; nil where there is none. Room is how many
// tasks a node holds.
func (e *explainer) apart(job *cluster.Job, nodes []*cluster.Node, room func(*cluster.Node) int) (most int, by *Rejection) {
	most = math.MaxInt
	for _, h := range e.finder.hooks.exclusions {
		for _, x := range h.fn(job) {
			if sum := roomByDomain(x.Level, nodes, room); sum < most {
				most = sum
				by = &Rejection{Plugin: h.plugin, Reason: x.Reason, Cure: Grow | Relax, Subject: x.Subject}
			}
		}
	}
	return most, by
}

// domainsWith counts the domains of the level that have room, and adds the room of
// nodes that are in none.
func roomByDomain(level string, nodes []*cluster.Node, room func(*cluster.Node) int) int {
	sum, seen := 0, map[string]bool{}
	for _, n := range nodes {
		domain, ok := n.Domain(level)
		if seen[domain] && ok {
			continue
		}
		switch fits := room(n); {
		case !ok:
			sum += fits
		case fits > 0:
			seen[domain] = true
			sum++
		}
	}
	return sum
}
