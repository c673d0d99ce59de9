package manifest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
)

const emptyRemedy = "there is nothing to schedule: no object was found. Write a Node and a Job (apiVersion: " + v1alpha1.APIVersion +
	"), or dump a cluster: " + dumpCommand

// Validate checks the objects against each other: names that occur twice, and queues and
// nodes that are named and do not exist. It sets Notes.
func (b *Bundle) Validate() error {
	if b.Empty() {
		return Errors{{Message: emptyText(b)}}
	}
	var errs Errors
	b.checkDuplicates(&errs)
	b.checkSingle(&errs)
	b.checkAlone(&errs)
	b.checkReferences(&errs)
	b.Notes = b.notes()
	return errs.Err()
}

// reporter returns a reporter for the object, which adds to errs.
func (b *Bundle) reporter(object any, errs *Errors) reporter {
	return reporter{b.sources[object], errs}
}

// checkDuplicates reports objects with the same ID. Nodes of Berth and of Kubernetes share
// their IDs, and so do budgets.
func (b *Bundle) checkDuplicates(errs *Errors) {
	first := map[string]any{}
	b.visit(func(id string, e objectEntry) {
		other, twice := first[id]
		if !twice {
			first[id] = e.object
			return
		}
		a, z := other, e.object
		if b.isAfter(a, z) {
			a, z = z, a
		}
		place := b.Where(a)
		if place == "" {
			place = "another place"
		}
		b.reporter(z, errs).errorf(namePath, "%s is already declared at %s; rename or remove one", id, place)
	})
}

// isAfter reports whether a is written after z.
func (b *Bundle) isAfter(a, z any) bool {
	x, y := b.sources[a], b.sources[z]
	if x == nil || y == nil {
		return x == nil && y != nil
	}
	if x.file != y.file {
		return x.file > y.file
	}
	return x.start.Line > y.start.Line
}

// checkSingle reports a second configuration or scenario.
func (b *Bundle) checkSingle(errs *Errors) {
	for _, c := range b.configurations[min(1, len(b.configurations)):] {
		reporter{c.src, errs}.errorf(nil, "there is already a SchedulerConfiguration at %s; keep one", b.configurations[0].Where)
	}
	for _, s := range b.scenarios[min(1, len(b.scenarios)):] {
		b.reporter(s, errs).errorf(nil, "there is already a Scenario at %s; run them one by one", b.Where(b.scenarios[0]))
	}
}

// checkReferences reports queues and nodes that are named and do not exist.
func (b *Bundle) checkReferences(errs *Errors) {
	queues, profiles := b.queueTree(), b.Configuration().names()
	queues.check(b, errs)
	nodes := map[string]bool{}
	for _, n := range b.Nodes {
		nodes[n.Name] = true
	}
	for _, n := range b.CoreNodes {
		nodes[n.Name] = true
	}
	nodeNames := slices.Sorted(maps.Keys(nodes))
	for _, o := range b.Jobs {
		r := b.reporter(o, errs)
		queues.checkLeaf(o.Spec.Queue, path{"spec", "queue"}, r)
		checkProfile(o.Spec.SchedulerName, profiles, r)
		for i, p := range o.Status.Placements {
			checkPlaced(p, path{"status", "placements", i}, nodes, nodeNames, r)
		}
	}
	for _, o := range b.Models {
		r := b.reporter(o, errs)
		queues.checkLeaf(o.Spec.Queue, path{"spec", "queue"}, r)
		checkProfile(o.Spec.SchedulerName, profiles, r)
		for i, x := range o.Status.Replicas {
			for k, p := range x.Placements {
				at := path{"status", "replicas", i, "placements", k}
				checkPlaced(p, at, nodes, nodeNames, r)
			}
		}
	}
	for _, o := range b.Pods {
		if convert.Ended(o) {
			continue
		}
		r := b.reporter(o, errs)
		if !ofCluster(o) {
			q, at, notes := convert.PodQueue(o)
			r.report(notes)
			queues.checkLeaf(q, at, r)
		}
		if n := o.Spec.NodeName; n != "" && !nodes[n] && (len(nodes) == 0 || !ofCluster(o)) {
			r.errorf(path{"spec", "nodeName"}, "%s runs on node %s, which is not in the input%s; dump both together: %s",
				convert.PodID(o), phrase.Quote(n), phrase.Suggestion(n, nodeNames), dumpCommand)
		}
	}
}

// checkProfile reports a scheduler name of a job or a model that no profile has, if there are
// profiles. Pods may have other schedulers, and are not checked.
func checkProfile(name string, names []string, r reporter) {
	if name == "" || len(names) == 0 || slices.Contains(names, name) {
		return
	}
	remedy := phrase.Suggestion(name, names)
	if remedy == "" {
		remedy = "; the configuration has " + phrase.Either(names[:min(len(names), 5)])
	}
	r.errorf(path{"spec", "schedulerName"}, "there is no profile %s%s", phrase.Quote(name), remedy)
}

// checkPlaced reports a placement on a node that does not exist.
func checkPlaced(p v1alpha1.TaskPlacement, at path, nodes map[string]bool, names []string, r reporter) {
	switch {
	case convert.EndStatus(&p) != cluster.Pending: // it has no node any more, and the node may have been removed
	case p.Node == "":
		r.errorf(at, "say the node that %s runs on", phrase.Quote(p.Task))
	case !nodes[p.Node]:
		r.errorf(at.Add("node"), "there is no node %s%s", phrase.Quote(p.Node), phrase.Suggestion(p.Node, names))
	}
}

// noQueue returns the message about a queue that does not exist.
func noQueue(name string, there []string) string {
	s := "there is no queue " + phrase.Quote(name)
	if near := phrase.Suggestion(name, there); near != "" {
		return s + near
	}
	return s + fmt.Sprintf("; declare it (kind: Queue, name: %s) or use %s", phrase.Clip(name), phrase.Either(there[:min(len(there), 5)]))
}

// emptyText says why a bundle without objects cannot be used.
func emptyText(b *Bundle) string {
	if note := (expander{b}).unmadeNote(); note != "" {
		return "there is nothing to schedule: no pod, job or node was found. Workloads " + note
	}
	if text := b.skipped.text(); text != "" {
		return "berth reads none of the objects: " + text + "; " + whatIsRead + ". To dump what berth reads: " + dumpCommand
	}
	return emptyRemedy
}

// Environment returns what the bundle says about how each object is read.
func (b *Bundle) Environment() *convert.Environment {
	s := &convert.Environment{DeviceResources: map[string]bool{}, PodsCounted: len(b.CoreNodes) > 0, UniqueHostnames: len(b.CoreNodes) > 0, Scavengers: b.scavengers(b.queueTree()), Profiles: b.Configuration().names(), PriorityClasses: b.PriorityClasses, Parts: true}
	hostnames := map[string]bool{}
	see := func(labels map[string]string, list corev1.ResourceList) {
		h, ok := labels[corev1.LabelHostname]
		s.UniqueHostnames = s.UniqueHostnames && ok && !hostnames[h]
		hostnames[h] = true
		_, ok = list[corev1.ResourcePods]
		s.PodsCounted = s.PodsCounted && ok
	}
	for _, n := range b.Nodes {
		see(n.Labels, n.Spec.Resources)
		if n.Spec.DeviceResource != "" {
			s.DeviceResources[n.Spec.DeviceResource] = true
		}
	}
	for _, n := range b.CoreNodes {
		see(n.Labels, convert.Allocatable(n))
		s.AlibabaUnit = max(s.AlibabaUnit, convert.AlibabaUnit(n))
	}
	namespaces := map[string]bool{}
	for _, p := range b.Pods {
		namespaces[convert.CoreNamespace(&p.ObjectMeta)] = true
	}
	for _, j := range b.Jobs {
		if j.Namespace != "" {
			namespaces[j.Namespace] = true
		}
	}
	for _, m := range b.Models {
		if m.Namespace != "" {
			namespaces[m.Namespace] = true
		}
	}
	s.Namespaces = slices.Sorted(maps.Keys(namespaces))
	return s
}
