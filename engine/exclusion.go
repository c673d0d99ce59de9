package engine

import (
	"math"

	"github.com/berth-project/berth/cluster"
)

// Exclusion is a topology level at which the tasks of a job exclude each other: each domain
// of the level takes at most one of them, however much room it has. Nodes that are in no
// domain of the level are not limited.
type Exclusion struct {
	Level   string // the label that names the domains; "" means that each node is a domain
	Reason  Reason // the reason with which the plugin's filter rejects a domain that has such a task
	Subject string // the Subject of that rejection
}

// ExclusionRule returns the levels at which the tasks of the job exclude each other.
type ExclusionRule func(*cluster.Job) []Exclusion

// AddExclusion registers a description of the plugin's filters that keep the tasks of one job
// in different domains. It places and rejects nothing itself. It is called when a job is
// refused: if a gang has fewer domains than its minimum has tasks, its refusal is permanent.
//
// Combining: all exclusions count.
func (h *Hooks) AddExclusion(fn ExclusionRule) { add(h, &h.exclusions, fn, fn == nil) }

// TooFewDomains says that tasks of a job exclude each other (see AddExclusion), and that its
// minimum has more tasks than could be placed in different domains, whatever other jobs hold.
type TooFewDomains struct {
	Level  string // the label that names the domains; "" means that each node is a domain
	Needed int    // how many tasks the minimum has
	Most   int    // how many of them could be placed at most
}

// apart returns an upper bound of how many tasks of the job fit on the nodes, given that its
// tasks exclude each other, and the exclusion that limits most, with a rejection for it. The
// rejection is nil if the job has no exclusion. Room returns how many tasks fit on a node.
func (e *explainer) apart(job *cluster.Job, nodes []*cluster.Node, room func(*cluster.Node) int) (most int, level string, by *Rejection) {
	most = math.MaxInt
	for i := range e.finder.hooks.exclusions {
		h := &e.finder.hooks.exclusions[i]
		if !h.profiles.decide(job) {
			continue
		}
		for _, x := range h.fn(job) {
			if sum := roomByDomain(x.Level, nodes, room); sum < most {
				most, level = sum, x.Level
				by = &Rejection{Plugin: h.plugin, Reason: x.Reason, Cure: Grow | Relax, Subject: x.Subject}
			}
		}
	}
	return most, level, by
}

// roomByDomain returns the number of domains of the level that have room, plus the room of
// nodes that are in no domain.
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
