package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// AsItRuns names the form of a replica that runs in none that its spec allows.
const AsItRuns = "it was before"

// running are the forms that a replica may run in and be placed in no more: its
// spec, or the cluster, may have been another when it was placed. The last is made
// of what runs alone, so that no edit takes a replica out of the books.
func (p *planner) running(r Replica, forms []Form) []cluster.Alternative {
	if r.Tasks == nil {
		return nil
	}
	var out []cluster.Alternative
	if !slices.ContainsFunc(forms, func(f Form) bool { return f.is(r.Tasks) }) {
		if f := p.before(r); f != nil {
			out = append(out, f.alternative(""))
		}
	}
	if alt, ok := p.asItRuns(r); ok {
		out = append(out, alt)
	}
	for i := range out {
		out[i].Running = true
	}
	return out
}

// before is a form that was left out, or that other numbers of devices make; nil:
// none of them is what runs.
func (p *planner) before(r Replica) *Form {
	for i := range p.forms {
		if p.forms[i].tasks != nil && p.forms[i].is(r.Tasks) {
			return &p.forms[i]
		}
	}
	if devices := r.Tasks["server-0"]; len(r.Tasks) == 1 && devices > 0 && !p.layered() && !p.Place.WholeNodes {
		before := p.forms
		p.node(p.split(devices))
		f := p.forms[len(p.forms)-1]
		p.forms = before
		if f.tasks != nil {
			return &f
		}
	}
	return nil
}

// asItRuns is the form of these tasks on so many devices, whatever they are; false
// where the tasks are of no model.
func (p *planner) asItRuns(r Replica) (cluster.Alternative, bool) {
	alt := cluster.Alternative{Name: AsItRuns, Min: len(r.Tasks)}
	for _, name := range slices.Sorted(maps.Keys(r.Tasks)) {
		role, number, _ := strings.Cut(name, "-")
		index, err := strconv.Atoi(number)
		if err != nil || index < 0 || !slices.Contains([]string{"server", "leader", "worker", "node"}, role) {
			return alt, false
		}
		devices := r.Tasks[name]
		host := p.Backend.Host
		if devices == 0 {
			if memory, err := p.onCPU(); err == nil {
				host = max(host, memory)
			}
		}
		shape := p.shape(host)
		switch {
		case devices >= 0:
			shape.Need = cluster.Need{Devices: devices}
		case role == "server":
			shape.Need = cluster.Need{Devices: 1}
		default:
			shape.Need = cluster.Need{WholeNode: true}
		}
		if share := p.share(devices); !shape.Need.None() && share < cluster.Whole {
			shape.Need.Share = share
		}
		shape.LeftOut = cluster.LeftOut(shape.Resources)
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: name, Role: role, Index: index, Shape: &shape})
	}
	return alt, true
}

// share of each device that a replica holds by its backend; 0: memory is claimed as such.
func (p *planner) share(devices int) cluster.Milli {
	return p.Backend.Claim(p.Utilization, max(1, devices), 0, 0).Share
}

// is reports whether a replica with these tasks, and so many devices of each, may
// be in this form; -1 devices: nobody said.
func (f *Form) is(tasks map[string]int) bool {
	n := 0
	for _, t := range f.tasks {
		n += t.count
		for i := range t.count {
			devices, there := tasks[t.role+"-"+strconv.Itoa(i)]
			need := &t.shape.Need
			if !there || devices >= 0 && need.None() != (devices == 0) ||
				devices > 0 && need.Devices > 0 && need.Devices != devices {
				return false
			}
		}
	}
	return n == len(tasks)
}
