package neighbours

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Term counts tasks by domain. The counts are kept up to date until the session ends.
type Term struct {
	// Subject describes the term for rejections: "app in (web) within rack".
	Subject string

	key        string
	selector   cluster.Term
	namespaces []string
	within     string
	perNode    map[int]nodeCount // by slot: the domain of the node and the tasks counted there
	domains    map[string]int    // tasks by domain
	total      int
	lastUsed   uint64 // session in which the term was last used
}

type nodeCount struct {
	domain string
	tasks  int
}

func newTerm(key string, j *cluster.Job, t *cluster.JobTerm) *Term {
	return &Term{
		Subject: subject(t), key: key, selector: t.Selector, namespaces: namespaces(j, t), within: t.Within,
		perNode: map[int]nodeCount{}, domains: map[string]int{},
	}
}

// namespaces returns the namespaces of the term; by default the namespace of the job.
func namespaces(j *cluster.Job, t *cluster.JobTerm) []string {
	if len(t.Namespaces) == 0 {
		return []string{j.Namespace}
	}
	return t.Namespaces
}

// keyOf returns a text that is equal for equal terms, so that they share one count.
func keyOf(j *cluster.Job, t *cluster.JobTerm) string {
	return fmt.Sprintf("%q %q %q", t.Within, namespaces(j, t), t.Selector)
}

func subject(t *cluster.JobTerm) string {
	var b strings.Builder
	for i, r := range t.Selector {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(r.Key)
		switch r.Operator {
		case cluster.In:
			b.WriteString(" in (" + strings.Join(r.Values, ", ") + ")")
		case cluster.NotIn:
			b.WriteString(" not in (" + strings.Join(r.Values, ", ") + ")")
		case cluster.Gt:
			b.WriteString(" > " + strings.Join(r.Values, ", "))
		case cluster.Lt:
			b.WriteString(" < " + strings.Join(r.Values, ", "))
		case cluster.DoesNotExist:
			b.WriteString(" absent")
		}
	}
	if t.Within == "" {
		return b.String() + " within the node"
	}
	return b.String() + " within " + t.Within
}

// Matches reports whether the term counts the job's tasks.
func (t *Term) Matches(j *cluster.Job) bool {
	return slices.Contains(t.namespaces, j.Namespace) && t.selector.Matches(j.Labels)
}

// TasksIn returns how many tasks count in the node's domain. The second result is false if
// the node is in no domain.
func (t *Term) TasksIn(n *cluster.Node) (tasks int, known bool) {
	domain, ok := n.Domain(t.within)
	if !ok {
		return 0, false
	}
	return t.domains[domain], true
}

// Within returns the label that names the domains; "" means that each node is a domain.
func (t *Term) Within() string { return t.within }

// Total returns how many tasks count in all domains together.
func (t *Term) Total() int { return t.total }

// add adds tasks to the count of the node. A node that is in no domain is ignored.
func (t *Term) add(n *cluster.Node, by int) {
	c, ok := t.perNode[n.Slot()]
	if !ok {
		domain, known := n.Domain(t.within)
		if !known {
			return
		}
		c.domain = domain
	}
	c.tasks += by
	t.addToDomain(c.domain, by)
	if c.tasks == 0 {
		delete(t.perNode, n.Slot())
	} else {
		t.perNode[n.Slot()] = c
	}
}

// removeNode removes the tasks of the node in the slot from the counts.
func (t *Term) removeNode(slot int) {
	if c, ok := t.perNode[slot]; ok {
		t.addToDomain(c.domain, -c.tasks)
		delete(t.perNode, slot)
	}
}

func (t *Term) addToDomain(domain string, by int) {
	t.total += by
	if t.domains[domain] += by; t.domains[domain] == 0 {
		delete(t.domains, domain)
	}
}
