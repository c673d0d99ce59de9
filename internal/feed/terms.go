package feed

import (
	"maps"
	"reflect"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// kaiPreemptibleBelow is the priority below which KAI takes a group for preemptible, if the
// group does not say.
const kaiPreemptibleBelow = 100

// terms are what follows for a job from its members, its group and its queue.
type terms struct {
	uid         string // of the object that describes the group
	queue       string
	priority    int32
	preemptible bool
	remarks     []string
	delay       int64
	created     int64
	labels      map[string]string
	min         int      // 0: not known yet
	parts       []string // the names of the subgroups
	group       *group   // nil if no object describes it
	// unknownQueue is the queue that a job of a dump names and that cannot have jobs. The job
	// counts for the default queue.
	unknownQueue string

	set     cluster.Set // of a replica of a model
	health  cluster.Health
	offload cluster.Offload
}

// terms works out the terms of a job that has members. Where members differ, a value is
// chosen that does not depend on their order.
func (f *Feed) terms(j *job) terms {
	if j.single {
		p := j.anyMember()
		return f.complete(j, p.preemptible, terms{labels: p.labels, priority: p.priority, delay: p.delay, created: p.created, min: 1, queue: p.queue, remarks: p.remarks})
	}
	t := terms{
		group: f.groups[j.group], labels: j.commonLabels(),
		priority: slices.Max(slices.Collect(maps.Keys(j.tally.priorities))),
		delay:    slices.Max(slices.Collect(maps.Keys(j.tally.delays))),
		created:  slices.Min(slices.Collect(maps.Keys(j.tally.created))),
		min:      slices.Max(slices.Collect(maps.Keys(j.tally.minima))),
		queue:    firstQueue(f, j.tally.queues),
		remarks:  slices.Sorted(maps.Keys(j.tally.remarks)),
	}
	if g := t.group; g != nil {
		t.uid, t.min = g.uid, g.min
		if g.created != 0 && j.set().Name == "" { // a replica is as old as its model
			t.created = g.created
		}
		if j.apart {
			t.min = g.minOf[j.part]
		} else {
			t.parts = g.parts()
		}
		if value, known := g.priorityIn(f.classes); known {
			t.priority = value
		}
		if t.queue == "" {
			t.queue = g.queue
		}
	}
	if f.options.Dump != nil && t.min == 0 {
		if t.min = 1; j.group != (groupKey{}) && t.group == nil && j.source != byJob {
			t.min = f.sizes[j.group] // also pods that are no tasks, so that the gang waits for them
		}
	}
	// If the pods differ in whether they are preemptible, "false" is first.
	return f.complete(j, firstNamed(j.tally.preemptible), t)
}

// complete sets what depends on the namespace and on the queue. said is whether the pods say
// that they are preemptible: "true", "false" or "".
func (f *Feed) complete(j *job, said string, t terms) terms {
	if t.queue == "" {
		t.queue = f.defaults[j.namespace]
	}
	if f.options.Dump != nil && !isLeaf(f, t.queue) {
		t.unknownQueue, t.queue = t.queue, ""
	}
	f.setPreemptible(&t, j, said)
	t.set = j.set()
	t.health, t.offload = replicaHealth(f, j)
	return t
}

// setPreemptible sets whether the job is preemptible: as its pods say; as its group says; by
// its priority, if it is a group of KAI; and otherwise if its queue is of the Scavenger
// tier.
func (f *Feed) setPreemptible(t *terms, j *job, said string) {
	queue := t.queue
	if queue == "" {
		queue = cluster.DefaultQueue
	}
	switch {
	case said != "":
		t.preemptible = said == "true"
	case t.group != nil && t.group.preemptible != nil:
		t.preemptible = *t.group.preemptible
	case j.source == byKAI:
		t.preemptible = t.priority < kaiPreemptibleBelow
	case f.low[queue] != "":
		t.preemptible, t.remarks = true, append([]string{lowTierRemark(f.low[queue])}, t.remarks...)
	}
}

// firstQueue returns the first queue in alphabetical order that is not "" and, in a dump, can have jobs.
// If none can, it is the first one.
func firstQueue(f *Feed, counts map[string]int) string {
	if f.options.Dump != nil && len(counts) > 1 {
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if name != "" && isLeaf(f, name) {
				return name
			}
		}
	}
	return firstNamed(counts)
}

// isLeaf reports whether jobs can be in the queue, which is known and has no queues below it. No name
// means the default queue.
func isLeaf(f *Feed, name string) bool {
	if f.inner == nil {
		f.inner = map[string]bool{}
		for _, q := range f.queues {
			f.inner[q.Parent] = true
		}
	}
	return name == "" || name == cluster.DefaultQueue || f.queues[name] != nil && !f.inner[name]
}

// UnknownQueue returns the queue that a job of a dump names and that cannot have jobs; "" if it is
// known. isThere is set if there is such a queue, with other queues below it.
func UnknownQueue(f *Feed, job string) (name string, isThere bool) {
	name = f.jobs[job].said.unknownQueue
	return name, f.queues[name] != nil
}

// firstNamed returns the first key in alphabetical order that is not "", and "" if there is
// none.
func firstNamed(counts map[string]int) string {
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if key != "" {
			return key
		}
	}
	return ""
}

// commonLabels returns the labels that all members have with the same value.
func (j *job) commonLabels() map[string]string {
	var out map[string]string
	for k, v := range j.anyMember().labels {
		if j.tally.labels[[2]string{k, v}] == len(j.members) {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// commonAffinity returns the terms about other pods that all members have.
func (j *job) commonAffinity() []cluster.JobTerm {
	if len(j.anyMember().affinity) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(j.members))
	out := slices.Clone(j.members[names[0]].affinity)
	for _, name := range names {
		p := j.members[name]
		out = slices.DeleteFunc(out, func(t cluster.JobTerm) bool {
			return !slices.ContainsFunc(p.affinity, func(o cluster.JobTerm) bool { return reflect.DeepEqual(o, t) })
		})
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// spec returns the spec of the job, without tasks. It returns nil if the minimum is not
// known: State then keeps the tasks, and the job is not pending.
func (j *job) spec(t *terms) *cluster.Job {
	if t.min == 0 {
		return nil
	}
	form := cluster.Alternative{Min: t.min}
	if g := t.group; g != nil {
		form.Topology = g.topology
		if !j.apart {
			form.Subgroups, form.MinSubgroups = g.subgroups, g.minSubgroups
		}
	}
	spec := &cluster.Job{
		ID: j.id, Namespace: j.namespace, Queue: t.queue, Priority: t.priority, Created: t.created,
		Preemptible: t.preemptible, Labels: t.labels, Open: true, Alternatives: []cluster.Alternative{form}, Chosen: -1,
	}
	spec.SetDetails(cluster.JobDetails{PreemptionDelay: t.delay, Remarks: t.remarks, Affinity: j.commonAffinity(), Set: t.set, Health: t.health, Offload: t.offload})
	return spec
}
