package model

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/estimate/backend"
)

// AsItRuns is the name of the alternative that keeps a replica running as it is, in none of
// the forms that its spec allows. A manifest may name it in status.replicas[].form.
const AsItRuns = "it was before"

// runningReplica finds the forms in which a replica may keep running although it would no
// longer be placed in them. The spec or the cluster may have changed since the replica was
// placed.
type runningReplica struct {
	spec  *Spec
	node  *oneNode
	forms []Form // all that were considered
}

// alternatives returns additional alternatives for a replica that runs, besides those of
// the offered forms. The last one is made from the running tasks alone, so that a running
// replica has an alternative that matches its tasks whatever the spec says.
func (v *runningReplica) alternatives(r Replica, offered []Form) []cluster.Alternative {
	if r.Tasks == nil {
		return nil
	}
	var out []cluster.Alternative
	if !slices.ContainsFunc(offered, func(f Form) bool { return f.matchesTasks(r.Tasks) }) {
		if f := v.earlierForm(r); f != nil {
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

// earlierForm returns a form with a problem, or a form with another number of devices,
// in which the replica may run; nil if there is none.
func (v *runningReplica) earlierForm(r Replica) *Form {
	for i := range v.forms {
		if f := &v.forms[i]; f.tasks != nil && f.matchesTasks(r.Tasks) {
			return f
		}
	}
	ranks := v.node.spec.ranks()
	if devices := r.Tasks["server-0"]; len(r.Tasks) == 1 && devices > 0 && devices%ranks == 0 && !v.spec.layered() && !v.spec.Place.WholeNodes {
		forms := v.node.withParallelism(v.node.parallel.split(devices / ranks))
		if f := &forms[len(forms)-1]; f.tasks != nil {
			return f
		}
	}
	return nil
}

// asItRuns returns an alternative with the running tasks and their numbers of devices,
// of any product. It returns false if a task has a name that no task of a model has.
func (v *runningReplica) asItRuns(r Replica) (cluster.Alternative, bool) {
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
			if memory, err := v.node.size.hostMemory(); err == nil {
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
		// With some backends a replica holds a share of each device. Share 0 means that it claims bytes.
		if share := v.node.size.claimOf(&Form{Tensor: max(1, devices), Pipeline: 1}, backend.Accelerator{}).Share; !shape.Need.None() && share < cluster.Whole {
			shape.Need.Share = share
		}
		shape.LeftOut = cluster.LeftOut(shape.Resources)
		alt.Tasks = append(alt.Tasks, &cluster.Task{Name: name, Role: role, Index: index, Shape: &shape})
	}
	return alt, true
}

// matchesTasks reports whether a replica with these tasks may run in this form. tasks
// maps the name of a task to its number of devices, which is -1 if it is not known.
func (f *Form) matchesTasks(tasks map[string]int) bool {
	n := 0
	for k, t := range f.tasks {
		n += t.count
		from := f.firstIndex(k)
		for i := range t.count {
			devices, there := tasks[t.role+"-"+strconv.Itoa(from+i)]
			need := &t.shape.Need
			if !there || devices >= 0 && need.None() != (devices == 0) ||
				devices > 0 && need.Devices > 0 && need.Devices != devices {
				return false
			}
		}
	}
	return n == len(tasks)
}
