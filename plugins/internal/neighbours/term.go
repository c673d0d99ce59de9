package neighbours

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// Term is a count of tasks by domain. It stays up to date until the session ends.
type Term struct {
	// Subject says what is counted, for rejections: "app in (web) within rack".
	Subject string

	key        string
	selector   cluster.Term
	namespaces []string
	within     string
	cells      map[int]cell   // by slot: what its node adds to which domain
	domains    map[string]int // by domain
	total      int
	asked      uint64 // session in which somebody last asked for it
}

type cell struct {
	domain string
	tasks  int
}

func newTerm(key string, j *cluster.Job, t *cluster.JobTerm) *Term {
	return &Term{
		Subject: subject(t), key: key, selector: t.Selector, namespaces: namespaces(j, t), within: t.Within,
		cells: map[int]cell{}, domains: map[string]int{},
	}
}

// namespaces are those that the term looks in: the job's own unless it says otherwise.
func namespaces(j *cluster.Job, t *cluster.JobTerm) []string {
	if len(t.Namespaces) == 0 {
		return []string{j.Namespace}
	}
	return t.Namespaces
}

// keyOf spells out what a term counts, so that equal terms share one count.
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

// In is how many tasks count in the node's domain; false if it is in none.
func (t *Term) In(n *cluster.Node) (tasks int, known bool) {
	domain, ok := n.Domain(t.within)
	if !ok {
		return 0, false
	}
	return t.domains[domain], true
}

// Within is the label that names the domains; "" is the node itself.
func (t *Term) Within() string { return t.within }

// Anywhere is how many tasks count in all domains.
func (t *Term) Anywhere() int { return t.total }

// add counts tasks on the node; a node that is in no domain has no neighbours.
func (t *Term) add(n *cluster.Node, by int) {
	c, ok := t.cells[n.Slot()]
	if !ok {
		domain, known := n.Domain(t.within)
		if !known {
			return
		}
		c.domain = domain
	}
	c.tasks += by
	t.move(c.domain, by)
	if c.tasks == 0 {
		delete(t.cells, n.Slot())
	} else {
		t.cells[n.Slot()] = c
	}
}

// forget takes back what the slot's node added.
func (t *Term) forget(slot int) {
	if c, ok := t.cells[slot]; ok {
		t.move(c.domain, -c.tasks)
		delete(t.cells, slot)
	}
}

func (t *Term) move(domain string, by int) {
	t.total += by
	if t.domains[domain] += by; t.domains[domain] == 0 {
		delete(t.domains, domain)
	}
}
