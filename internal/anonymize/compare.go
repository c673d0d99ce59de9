package anonymize

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
)

// Workload returns the new ID of a job: job/NAME, pod/NAMESPACE/NAME, or the ID of a model
// followed by a hyphen and the number of a replica.
func (n *Names) Workload(id string) string {
	kind, rest, _ := strings.Cut(id, "/")
	out := kind + "/"
	if namespace, name, ok := strings.Cut(rest, "/"); ok {
		out, rest = out+n.namespaces.of(namespace)+"/", name
	}
	if i := strings.LastIndexByte(rest, '-'); kind == "model" && i >= 0 {
		return out + n.workloads.of(rest[:i]) + rest[i:]
	}
	parts := strings.Split(rest, "/")
	out += n.workloads.of(parts[0])
	for _, part := range parts[1:] { // a group of a set, and a part of a group
		if _, err := strconv.Atoi(part); err != nil && n.parts.has(part) { // Berth names some parts itself
			part = n.parts.of(part)
		}
		out += "/" + part
	}
	return out
}

// Task returns the new name of a task of the job with the ID. Berth itself names the tasks
// of models.
func (n *Names) Task(job, name string) string {
	switch kind, _, _ := strings.Cut(job, "/"); kind {
	case "job":
		return n.task(name)
	case "pod", "model":
		return name
	}
	return n.workloads.of(name) // it is the name of a pod
}

// Difference returns the first difference between what was decided about the input and
// about the copy, "" if there is none. Names in it are those of the copy.
func (c *Cluster) Difference(input, output *engine.Outcome) string {
	var same *Names // the names of the copy are new already
	if d := firstDifference("decision", each(input.Decisions, c.Names.decision), each(output.Decisions, same.decision)); d != "" {
		return d
	}
	return firstDifference("refusal", each(input.Refusals, c.Names.refusal), each(output.Refusals, same.refusal))
}

func firstDifference(what string, want, have []string) string {
	for i := range max(len(want), len(have)) {
		w, h := "none", "none"
		if i < len(want) {
			w = want[i]
		}
		if i < len(have) {
			h = have[i]
		}
		if w != h {
			return fmt.Sprintf("%s %d is %q for the input and %q for the output", what, i+1, w, h)
		}
	}
	return ""
}

// renamed returns the new ID of a job, the new name of a task and the new name of a node.
// If n is nil, the given names are new already.
func (n *Names) renamed(job, task, node string) (string, string, string) {
	if n == nil {
		return job, task, node
	}
	if job == "" {
		return "", task, n.nodes.of(node)
	}
	return n.Workload(job), n.Task(job, task), n.nodes.of(node)
}

// decision returns what is compared of a decision.
func (n *Names) decision(d engine.Decision) string {
	job, task, node := n.renamed(d.Task.Job, d.Task.Name, d.Node)
	forJob, _, landing := n.renamed(d.For, "", d.Landing)
	var devices []string
	for _, c := range d.Claims {
		devices = append(devices, claim(c))
	}
	out := fmt.Sprintf("%s %s/%s (alternative %d) on %s [%s], score %d", d.Action, job, task, d.Task.Alternative, node, strings.Join(devices, " "), d.Score.Total)
	if d.Reason != "" {
		out += fmt.Sprintf(", %s %s", d.Reason, d.Purpose)
	}
	if forJob != "" {
		out += " for " + forJob
	}
	if landing != "" {
		out += " to " + landing
	}
	return out
}

func claim(c cluster.Claim) string { return fmt.Sprintf("%d:%d:%d", c.Device, c.Milli, c.Memory) }

// refusal returns what is compared of a refusal.
func (n *Names) refusal(r *engine.Refusal) string {
	job, _, _ := n.renamed(r.Job, "", "")
	out := fmt.Sprintf("%s %s", job, r.Reason)
	if r.Permanent {
		out += ", permanent"
	}
	if r.Surplus {
		out += ", surplus"
	}
	for i := range r.Attempts {
		for _, t := range r.Attempts[i].Counts {
			out += fmt.Sprintf(", %d %s %s", t.Nodes, t.Plugin, t.Reason)
		}
	}
	return out
}
