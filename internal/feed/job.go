package feed

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/berth-project/berth/cluster"
	"k8s.io/apimachinery/pkg/types"
)

// job is a job and its members: the pods that are its tasks. It has no members only while
// it is removed.
type job struct {
	id, namespace string
	single        bool // the job of one pod, which is not open
	source        string
	group         groupKey // the object that describes it, if there is one
	apart         bool     // it is a part of the group
	part          string   // the name of the part
	members       map[string]*pod
	tally         tally        // of a group only
	put           *cluster.Job // the spec that was reported; nil if it is not known in State
	said          terms
}

// tally counts the values that the members of a job have, so that its spec is found without
// visiting them all.
type tally struct {
	labels      map[[2]string]int
	queues      map[string]int
	preemptible map[string]int
	priorities  map[int32]int
	delays      map[int64]int
	created     map[int64]int
	minima      map[int]int
	remarks     map[string]int
	models      map[string]int
}

func newTally() tally {
	return tally{map[[2]string]int{}, map[string]int{}, map[string]int{}, map[int32]int{}, map[int64]int{}, map[int64]int{}, map[int]int{}, map[string]int{}, map[string]int{}}
}

// count adds n, which is 1 or -1, for each value of the pod.
func (t *tally) count(p *pod, n int) {
	for k, v := range p.labels {
		add(t.labels, [2]string{k, v}, n)
	}
	add(t.queues, p.queue, n)
	add(t.preemptible, p.preemptible, n)
	add(t.priorities, p.priority, n)
	add(t.delays, p.delay, n)
	add(t.created, p.created, n)
	add(t.minima, p.member.min, n)
	add(t.models, p.model, n)
	for _, text := range p.remarks {
		add(t.remarks, text, n)
	}
}

func add[K comparable](m map[K]int, key K, n int) {
	if m[key] += n; m[key] == 0 {
		delete(m, key)
	}
}

func (j *job) add(p *pod) {
	j.members[p.name.Name] = p
	p.job = j
	if !j.single {
		j.tally.count(p, 1)
	}
}

func (j *job) drop(p *pod) {
	delete(j.members, p.name.Name)
	if !j.single {
		j.tally.count(p, -1)
	}
}

// anyMember returns a member, and nil if there is none. It is used where all members have
// the same value, or where there is one.
func (j *job) anyMember() *pod {
	for _, p := range j.members {
		return p
	}
	return nil
}

// jobOf returns the job that the pod is a member of now, and nil if it is no task. It makes
// the job if there is none.
func (f *Feed) jobOf(p *pod) *job {
	if !p.isTask {
		return nil
	}
	m := &p.member
	j := job{namespace: p.name.Namespace, single: m.single(), source: m.source}
	j.id = m.source + "/" + p.name.Namespace + "/" + m.name
	if m.object {
		j.group = p.group()
		if g := f.groups[j.group]; m.apart || g != nil && g.apart {
			j.apart, j.part = true, m.part
			j.id += "/" + m.part
		}
	}
	if known := f.jobs[j.id]; known != nil {
		return known
	}
	if j.members = make(map[string]*pod, 1); !j.single {
		j.tally = newTally()
	}
	f.jobs[j.id] = &j
	return &j
}

// place makes the pod a member of the job that it belongs to now, and reports what that
// changes. If the pod is in a job, it has been dropped there.
func (f *Feed) place(p *pod) []cluster.Change {
	var out []cluster.Change
	was := p.job
	now := f.jobOf(p)
	if was != nil && was != now {
		out = append(out, f.gone(was, p)...)
	}
	if now != nil {
		now.add(p)
		out = append(out, f.settle(now, p)...)
	}
	return out
}

// leave reports that the pod, which is still a member of its job, is gone.
func (f *Feed) leave(p *pod) []cluster.Change {
	if p.job == nil {
		return nil
	}
	p.job.drop(p)
	return f.gone(p.job, p)
}

// gone reports that the pod is not a task of the job any more.
func (f *Feed) gone(j *job, p *pod) []cluster.Change {
	var out []cluster.Change
	// A single pod is gone with its job, unless State must know that its node rejected it.
	if p.said.task != nil && (!j.single || p.rejected != 0) {
		gone := cluster.TaskGone{Task: cluster.TaskRef{Job: j.id, Name: p.said.task.Name}, UID: p.said.task.UID}
		if j.single {
			gone.Rejected = p.rejected
		}
		out = append(out, gone)
	}
	p.job, p.said = nil, report{}
	return append(out, f.settle(j)...)
}

// settle reports the spec of the job, if it differs from what was reported, and the given
// members. If the shapes of all members change with the job, it reports them all.
func (f *Feed) settle(j *job, changed ...*pod) []cluster.Change {
	var out []cluster.Change
	if f.options.Dump != nil && !f.settling {
		return nil // what becomes of the job is known when all its members are
	}
	if len(j.members) == 0 {
		delete(f.jobs, j.id)
		if j.put != nil {
			out = append(out, cluster.JobGone{Job: j.id})
			j.put = nil
		}
		return out
	}
	t := f.terms(j)
	if t.preemptible != j.said.preemptible || !slices.Equal(t.parts, j.said.parts) {
		changed = changed[:0:0]
		for _, name := range slices.Sorted(maps.Keys(j.members)) {
			changed = append(changed, j.members[name])
		}
	}
	// State keeps the UID of an open job that is gone while it has tasks. A group is
	// therefore reported without a UID, and as gone when another takes its name.
	if j.put != nil && t.uid != j.said.uid {
		out = append(out, cluster.JobGone{Job: j.id})
		j.put = nil
	}
	j.said = t
	if j.single {
		return f.reportSingle(j, &t)
	}
	switch spec := j.spec(&t); {
	case spec == nil && j.put != nil:
		out = append(out, cluster.JobGone{Job: j.id})
		j.put = nil
	case spec != nil:
		out = append(out, j.reportSpec(spec)...)
	}
	for _, p := range changed {
		out = append(out, p.report(&t)...)
	}
	return out
}

// reportSingle reports the job of a single pod, together with its task.
func (f *Feed) reportSingle(j *job, t *terms) []cluster.Change {
	p := j.anyMember()
	spec := j.spec(t)
	spec.Open, spec.UID = false, p.uid
	task := p.spec(t)
	spec.Alternatives[0].Tasks = []*cluster.Task{task}
	out := j.reportSpec(spec)
	return append(out, p.reportPlace(task)...)
}

// reportSpec reports the spec of the job, if it differs from the one that was reported last. JobPut
// sets the health of a new job only, and the State may still know an open job that was reported as
// gone, so that health is also reported by JobSeen.
func (j *job) reportSpec(spec *cluster.Job) []cluster.Change {
	was := cluster.Job{JobDetails: &cluster.JobDetails{}}
	if j.put != nil {
		was = *j.put
	}
	j.put = spec
	seen := cluster.JobSeen{Job: j.id, Health: spec.Health, Offload: spec.Offload}
	changed := was.Health != seen.Health || was.Offload != seen.Offload
	var out []cluster.Change
	if changed {
		d := was.OwnDetails()
		d.Health, d.Offload = spec.Health, spec.Offload
	}
	if !reflect.DeepEqual(spec, &was) {
		out = append(out, cluster.JobPut{Job: *spec})
	}
	if changed {
		out = append(out, seen)
	}
	return out
}

// spec returns what the task requests.
func (p *pod) spec(t *terms) *cluster.Task {
	shape := p.shape
	shape.Preemptible = t.preemptible
	return &cluster.Task{
		Name: p.task(), UID: p.uid, Role: p.member.part, Index: p.member.index, Shape: &shape,
		Subgroup: slices.Index(t.parts, p.member.part) + 1,
	}
}

// report reports a task of an open job.
func (p *pod) report(t *terms) []cluster.Change {
	var out []cluster.Change
	task := p.spec(t)
	if !reflect.DeepEqual(task, p.said.task) {
		out = append(out, cluster.TaskPut{Job: p.job.id, Task: *task})
	}
	return append(out, p.reportPlace(task)...)
}

// reportPlace reports where the task is, or how it ended. State books a running task with
// the shape that it had when it was seen first. If the shape has changed, such as after a
// resize in place, the task is booked anew.
func (p *pod) reportPlace(task *cluster.Task) []cluster.Change {
	was, now := p.said, report{task: task, place: p.place, devices: p.devices, ended: p.ended, complete: p.complete}
	now.respecified = now.place.Node == "" && was.task != nil && (was.respecified || was.complete && !reflect.DeepEqual(was.task.Shape, task.Shape))
	p.said = now
	ref := p.ref()
	if p.ended != cluster.Pending {
		if was.ended == now.ended {
			return nil
		}
		return []cluster.Change{cluster.TaskGone{Task: ref, UID: p.uid, Ended: p.ended, Rejected: p.rejected}}
	}
	rebook := was.task != nil && was.place.Node != "" && !reflect.DeepEqual(was.task.Shape, task.Shape)
	if now.place.Node == "" || !rebook && was.task != nil && was.place == now.place && slices.Equal(was.devices, now.devices) {
		return nil
	}
	var out []cluster.Change
	seen := cluster.TaskSeen{
		Task: ref, UID: p.uid, Node: now.place.Node, Devices: now.devices, Releasing: now.place.Releasing, Started: now.place.Started,
	}
	if was.respecified && len(p.claims) > 0 {
		out, rebook = append(out, seen), true // State keeps a task on its node until it is seen there
	}
	if rebook {
		out = append(out, cluster.TaskSeen{Task: ref, UID: p.uid})
	}
	return append(out, seen)
}

// link notes which group the pod depends on.
func (f *Feed) link(p *pod) {
	if !p.member.object {
		return
	}
	key := p.group()
	if f.waiting[key] == nil {
		f.waiting[key] = map[types.NamespacedName]*pod{}
	}
	f.waiting[key][p.name] = p
}

// unlink undoes link.
func (f *Feed) unlink(p *pod) {
	key := p.group()
	if delete(f.waiting[key], p.name); len(f.waiting[key]) == 0 {
		delete(f.waiting, key)
	}
}

// lowTierRemark explains why a job is preemptible that does not say so.
func lowTierRemark(queue string) string {
	return fmt.Sprintf("Preemptible: queue %s is of the %s tier, and the workload does not say otherwise.", queue, cluster.TierScavenger)
}
