package dra

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// Query is the selectors of a request: those of its class, and its own. Requests with the same
// selectors share a query.
type Query struct {
	key       string
	class     string
	selectors []resourcev1.DeviceSelector
	users     int
	matching  map[Sort]map[string]int // how many devices match, by sort and product
	answers   map[string]bool         // whether devices match, by the attributes that the selectors read
	text      string                  // all expressions
	readsAll  bool                    // they may read attributes whose names do not occur in text
	cost      uint64                  // of all evaluations, in units of CEL
	selection Selection
}

// Selection is what the devices that a query selects have in common.
type Selection struct {
	Any bool // at least one device matches
	// Found is set if all devices that match are of one sort. Otherwise what follows is not set.
	Found bool
	Sort
	// Products are the products of the devices that match, sorted. It is nil if there is no
	// other product of this sort.
	Products []string
}

func (s *Selection) equal(o *Selection) bool {
	return s.Any == o.Any && s.Found == o.Found && s.Sort == o.Sort && slices.Equal(s.Products, o.Products)
}

// Selection returns what the query selects now.
func (q *Query) Selection() Selection { return q.selection }

// Query returns the query with the selectors. Release must be called for it.
func (v *Inventory) Query(class string, selectors []resourcev1.DeviceSelector) *Query {
	key := fmt.Sprintf("%q", class)
	for i := range selectors {
		key += fmt.Sprintf(" %q", expression(&selectors[i]))
	}
	q := v.queries[key]
	if q == nil {
		q = &Query{key: key, class: class, selectors: selectors}
		v.queries[key] = q
		v.evaluate(q)
		q.selection = q.find(v)
	}
	q.users++
	return q
}

// Release forgets the query if nothing else uses it.
func (v *Inventory) Release(q *Query) {
	if q.users--; q.users == 0 {
		delete(v.queries, q.key)
	}
}

func expression(s *resourcev1.DeviceSelector) string {
	if s.CEL == nil {
		return ""
	}
	return s.CEL.Expression
}

// evaluate counts the devices that match anew.
func (v *Inventory) evaluate(q *Query) {
	q.matching, q.answers, q.text, q.cost = map[Sort]map[string]int{}, map[string]bool{}, "", 0
	for _, s := range v.selectors(q) {
		q.text += expression(&s) + "\n"
	}
	q.readsAll = slices.ContainsFunc([]string{"exists", "all(", "map(", "filter(", "size(", "bind("}, func(s string) bool { return strings.Contains(q.text, s) })
	for _, p := range v.pools { // the order has no effect on the result
		for i := range p.devices {
			q.count(v, &p.devices[i], +1)
		}
	}
}

// count adds or subtracts the device if it matches.
func (q *Query) count(v *Inventory, d *Device, by int) {
	if v.match == nil || v.classes[q.class] == nil || len(d.Source.Name) == 0 || q.tooCostly() {
		return
	}
	key := q.relevant(d)
	matches, known := q.answers[key]
	if !known {
		matches = v.matches(q, d)
		if len(q.answers) == maxAnswers {
			clear(q.answers)
		}
		q.answers[key] = matches
	}
	if matches {
		add(q.matching, d, by)
	}
}

// maxCost is how much the evaluations of one query may cost. A unit is about 100 ns. Every
// user with the permission to create claims chooses expressions, and the loop evaluates them for
// all devices.
const maxCost = 2_000_000

// tooCostly reports whether the query is not evaluated any more. What its devices have in common
// is then not known until they are allocated.
func (q *Query) tooCostly() bool { return q.cost > maxCost }

// maxAnswers is how many answers of a query are kept.
const maxAnswers = 4096

// relevant returns the attributes and capacities of the device that the selectors may read: those
// whose names occur in their text. A text that visits all attributes may read all.
func (q *Query) relevant(d *Device) string {
	read := func(name resourcev1.QualifiedName) bool {
		bare := string(name)
		if at := strings.LastIndexByte(bare, '/'); at >= 0 {
			bare = bare[at+1:]
		}
		return q.readsAll || strings.Contains(q.text, bare)
	}
	var key strings.Builder
	key.WriteString(d.ID.Driver)
	for _, name := range slices.Sorted(maps.Keys(d.Source.Attributes)) {
		if read(name) {
			a := d.Source.Attributes[name]
			fmt.Fprintf(&key, " %q=%s", name, a.String())
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Source.Capacity)) {
		if read(name) {
			c := d.Source.Capacity[name]
			fmt.Fprintf(&key, " %q:%s", name, c.Value.String())
		}
	}
	return key.String()
}

// matches reports whether all selectors accept the device. A selector that fails accepts none:
// the allocator then reports the error.
func (v *Inventory) matches(q *Query, d *Device) bool {
	for _, s := range v.selectors(q) {
		accepts, cost := v.match(expression(&s), d)
		if q.cost += 1 + cost; !accepts {
			return false
		}
	}
	return true
}

// selectors returns the selectors of the class, which may not exist, and those of the request.
func (v *Inventory) selectors(q *Query) []resourcev1.DeviceSelector {
	if c := v.classes[q.class]; c != nil {
		return slices.Concat(c.Spec.Selectors, q.selectors)
	}
	return q.selectors
}

// find returns what the query selects.
func (q *Query) find(v *Inventory) Selection {
	if q.tooCostly() || v.match == nil {
		return Selection{Any: true}
	}
	if len(q.matching) != 1 {
		return Selection{Any: len(q.matching) > 0}
	}
	out := Selection{Any: true, Found: true}
	for sort, products := range q.matching { // there is one
		out.Sort = sort
		if len(products) < len(v.counts[sort]) {
			out.Products = slices.Sorted(maps.Keys(products))
		}
	}
	return out
}
