package manifest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/phrase"
)

// Models reads the models of one file and the files of these. Queues and nodes that they
// name need not exist.
func Models(file string) ([]*model.Spec, error) {
	if errs := checkFile(file); len(errs) > 0 {
		return nil, errs
	}
	name, data, err := read(file, strings.NewReader(""))
	if err != nil {
		return nil, Errors{*err}
	}
	b, errs := parse(name, data)
	m := stateMaker{bundle: b, environment: b.Environment(), errs: errs}
	var out []*model.Spec
	for _, o := range b.Models {
		r := b.reporter(o, &m.errs)
		s, notes := convert.Model(o, m.environment)
		r.report(notes)
		if m.sources(s, o, r) && s.Backend != nil {
			out = append(out, s)
		}
	}
	if len(out) == 0 && len(m.errs) == 0 {
		m.errs = Errors{{File: name, Message: "there is no Model in it; a manifest to estimate has kind: Model"}}
	}
	return out, m.errs.Err()
}

// selectionNotes returns notes about devices that models select and no node has.
func (m *stateMaker) selectionNotes() []string {
	nodes := map[string]*cluster.Node{}
	var names []string
	for _, n := range m.nodes {
		nodes[n.Name] = n
		names = append(names, n.Name)
	}
	var out []string
	for _, p := range m.plans {
		for _, d := range p.Spec.Place.Selected {
			n := nodes[d.Node]
			switch {
			case n == nil:
				out = append(out, fmt.Sprintf("%s selects %s, and there is no node %s%s", p.Spec.ID, d, phrase.Quote(d.Node), phrase.Suggestion(d.Node, names)))
			case !slices.ContainsFunc(n.Devices, func(x cluster.Device) bool { return x.ID == d }):
				out = append(out, fmt.Sprintf("%s selects %s, which the node does not have", p.Spec.ID, d))
			}
		}
	}
	return out
}
