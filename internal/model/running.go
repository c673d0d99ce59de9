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

// running finds the forms that a replica may run in although it can no longer be
// placed in them: its spec, or the cluster, may have been another when it was placed.
type running struct {
	spec  *Spec
	node  *oneNode
	forms []Form // all that were looked at
}

// alternatives are those of a replica to which these forms are offered. The last is
// made of what runs alone, so that a replica that runs has one after every edit.
func (v *running) alternatives(r Replica, offered []Form) []cluster.Alternative {
	if r.Tasks == nil {
		return nil
	}
	var out []cluster.Alternative
	if !slices.ContainsFunc(offered, func(f Form) bool { return f.is(r.Tasks) }) {
		if f := v.before(r); f != nil {
			out = append(out, f.alternative(""))
		}
	}
	if alt, ok := v.asItRuns(r); ok {
		out = append(out, alt)
	}
	for i := range out {
		out[i].Running = true
	}
	return out
}

// before is a form that was left out, or that other numbers of devices make; nil:
// none of them is what runs.
func (v *running) before(r Replica) *Form {
	for i := range v.forms {
		if f := &v.forms[i]; f.tasks != nil && f.is(r.Tasks) {
			return f
		}
	}
	if devices := r.Tasks["server-0"]; len(r.Tasks) == 1 && devices > 0 && !v.spec.layered() && !v.spec.Place.WholeNodes {
		forms := v.node.on(v.node.par.split(devices))
		if f := &forms[len(forms)-1]; f.tasks != nil {
			return f
		}
	}
	return nil
}

// asItRuns is the form of these tasks on so many devices, whatever they are; false
// where the tasks are of no model.
func (v *running) asItRuns(r Replica) (cluster.Alternative, bool) {
	alt := cluster.Alternative{Name: AsItRuns, Min: len(r.Tasks)}
	for _, name := range slices.Sorted(maps.Keys(r.Tasks)) {
		role, number, _ := strings.Cut(name, "-")
		index, err := strconv.Atoi(number)
		if err != nil || index < 0 || !slices.Contains([]string{"server", "leader", "worker", "node"}, role) {
			return alt, false
		}
		devices := r.Tasks[name]
		host := v.spec.Backend.Host
		if devices == 0 {
			if memory, err := v.node.size.host(); err == nil {
				host = max(host, memory)
			}
		}
		shape := v.spec.shape(host)
		switch {
		case devices >= 0:
			shape.Need = cluster.Need{Devices: devices}
		case role == "server":
			shape.Need = cluster.Need{Devices: 1}
		default:
			shape.Need = cluster.Need{WholeNode: true}
		}
		// By some backends a replica holds a share of each device; 0: memory is claimed as such.
		if share := v.spec.Backend.Claim(v.spec.Utilization, max(1, devices), 0, 0).Share; !shape.Need.None() && share < cluster.Whole {
			shape.Need.Share = share
		}
		shape.LeftOut = cluster.LeftOut(shape.Resources)
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: name, Role: role, Index: index, Shape: &shape})
	}
	return alt, true
}

// is reports whether a replica with these tasks, and so many devices of each, may
// be in this form; -1 devices: it is not known.
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
