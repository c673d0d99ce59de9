package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/phrase"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// dump collects what the objects of Kubernetes say. They are read by the Feed that reads the
// objects of a live cluster, so that both understand the same.
type dump struct {
	maker   *stateMaker
	feed    *feed.Feed
	objects map[objectName]any // for the positions of errors
	nodes   map[string]*cluster.Node
	jobs    map[string]*cluster.Job
	tasks   map[cluster.TaskRef]*cluster.Task // of open jobs
	places  map[cluster.TaskRef]cluster.TaskSeen
	ended   map[cluster.TaskRef]cluster.TaskGone
	invalid []invalidPod
	notes   map[string]tallies // by the kind of the objects
}

type objectName struct{ kind, namespace, name string }

// readDump converts the objects of Kubernetes.
func (m *stateMaker) readDump() *dump {
	b := m.bundle
	d := &dump{
		maker: m, feed: feed.New(feed.Options{Dump: m.environment, DevicesEnforced: true}),
		objects: map[objectName]any{}, nodes: make(map[string]*cluster.Node, len(b.CoreNodes)), jobs: make(map[string]*cluster.Job, len(b.Pods)),
		tasks: map[cluster.TaskRef]*cluster.Task{}, places: map[cluster.TaskRef]cluster.TaskSeen{}, ended: map[cluster.TaskRef]cluster.TaskGone{},
		notes: map[string]tallies{},
	}
	for _, o := range b.Namespaces {
		d.feed.PutNamespace(o)
	}
	for _, o := range b.PriorityClasses {
		d.feed.PutPriorityClass(o)
	}
	for _, o := range b.Queues {
		d.feed.PutQueue(o) // for the tiers: the queues themselves are those of the manifests
	}
	put(d, "DeviceClass", b.DeviceClasses, d.feed.PutDeviceClass)
	put(d, "ResourceSlice", b.Slices, d.feed.PutResourceSlice)
	put(d, "ResourceClaim", b.Claims, d.feed.PutResourceClaim)
	put(d, "Job", b.BatchJobs, d.feed.PutJob)
	put(d, "PodGroup", b.PodGroups, d.feed.PutPodGroup)
	put(d, "", b.Groups, d.feed.PutGroup)
	put(d, "", MadeGroups(b), d.feed.PutGroup)
	put(d, "Node", b.CoreNodes, d.feed.PutNode)
	d.putPods(b.Pods)
	changes, notes := d.feed.Settle()
	d.take(changes, notes)
	d.noteInvalid()
	return d
}

// put delivers the objects to the Feed. Their order has no effect on the result.
func put[T metav1.Object](d *dump, kind string, list []T, deliver func(T) ([]cluster.Change, []feed.Note)) {
	for _, o := range list {
		of := kind
		if u, is := any(o).(interface{ GetKind() string }); is {
			of = u.GetKind()
		}
		d.objects[objectName{of, o.GetNamespace(), o.GetName()}] = o
		changes, notes := deliver(o)
		d.take(changes, notes)
	}
}

// take notes what the facts say, of which the last about an object counts.
func (d *dump) take(changes []cluster.Change, notes []feed.Note) {
	for _, c := range changes {
		switch c := c.(type) {
		case cluster.NodePut:
			d.nodes[c.Node.Name] = &c.Node
		case cluster.JobPut:
			d.jobs[c.Job.ID] = &c.Job
		case cluster.TaskPut:
			d.tasks[cluster.TaskRef{Job: c.Job, Name: c.Task.Name}] = &c.Task
		case cluster.TaskSeen:
			d.places[c.Task] = c
		case cluster.TaskGone:
			d.ended[c.Task] = c
		}
	}
	for _, n := range notes {
		object := d.objects[objectName{n.Kind, n.Namespace, n.Name}]
		if object == nil { // the namespace "default" may be left out
			object = d.objects[objectName{n.Kind, "", n.Name}]
		}
		if o, isPod := object.(*corev1.Pod); isPod && n.Severity == convert.Invalid && ofCluster(o) {
			d.invalid = append(d.invalid, invalidPod{o, n})
			continue
		}
		d.maker.bundle.reporter(object, &d.maker.errs).report(convert.Notes{n.Note})
		d.note(n)
	}
}

// invalidPod is a pod of a cluster that has an error.
type invalidPod struct {
	pod  *corev1.Pod
	note feed.Note
}

// noteInvalid adds notes about pods of a cluster that have an error. Those that are tasks nevertheless
// count with what could be read. The others are not placed.
func (d *dump) noteInvalid() {
	if len(d.invalid) == 0 {
		return
	}
	tasks := map[any]bool{}
	for ref := range d.tasks {
		tasks[d.podOf(ref)] = true
	}
	for id, j := range d.jobs {
		for _, t := range j.Alternatives[0].Tasks {
			tasks[d.podOf(cluster.TaskRef{Job: id, Name: t.Name})] = true
		}
	}
	for _, x := range d.invalid {
		n, message := x.note, "with an error at "+x.note.Path.String()
		if tasks[x.pod] || convert.Ended(x.pod) {
			message += ", of which the rest is read: "
		} else {
			message += ", and therefore not placed: "
			d.maker.bundle.unusable[convert.PodID(x.pod)] = n.Path.String() + ": " + n.Message
		}
		n.Severity, n.Message = convert.Ignored, message+n.Message
		d.note(n)
	}
}

// note counts the note, if it is about something that is not read.
func (d *dump) note(n feed.Note) {
	kind, name := n.Kind, cmp.Or(n.Namespace, corev1.NamespaceDefault)+"/"+n.Name
	switch {
	case kind == "Pod":
		kind, name = "pod", "pod/"+name
	case kind == "Node" && n.Message == convert.UndeterminedDevices:
		return // addNode counts it, if it is true at last
	case kind == "Node":
		kind, name = "node", n.Name
	}
	if d.notes[kind] == nil {
		d.notes[kind] = tallies{}
	}
	d.notes[kind].add(name, convert.Notes{n.Note}, convert.Ignored)
}

// addNodes adds the nodes to those of the manifests. It reports false if there are too many devices.
func (d *dump) addNodes(m *stateMaker) bool {
	for _, o := range m.bundle.CoreNodes {
		n := d.nodes[o.Name]
		if n == nil {
			continue // it is not valid, which was reported
		}
		var notes convert.Notes
		if n.Defect != nil {
			_, notes = convert.CoreNode(o)
		}
		if !m.addNode(n, notes, m.bundle.reporter(o, &m.errs)) {
			return false
		}
	}
	return true
}

// addJobs adds the jobs that pods are, and the tasks that run.
func (d *dump) addJobs(m *stateMaker) {
	for _, ref := range slices.SortedFunc(maps.Keys(d.tasks), compareRefs) {
		if j := d.jobs[ref.Job]; j != nil {
			j.Alternatives[0].Tasks = append(j.Alternatives[0].Tasks, d.tasks[ref])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(d.jobs)) {
		j := d.jobs[id]
		first := m.bundle.reporter(d.podOf(cluster.TaskRef{Job: id, Name: j.Alternatives[0].Tasks[0].Name}), &m.errs)
		m.addJob(j, first)
		if form := &j.Alternatives[0]; j.Open && !form.Enough(func(*cluster.Task) bool { return true }) {
			m.incomplete.add(fmt.Sprintf("%s (%d of %d)", id, len(form.Tasks), form.Min))
			details := j.OwnDetails()
			details.Remarks = append(details.Remarks, fmt.Sprintf("Not scheduled: the input has %s of the gang, and at least %d are needed.", english.Count(len(form.Tasks), "pod"), form.Min))
		}
		if name, isThere := feed.UnknownQueue(d.feed, id); isThere {
			m.inner.add(fmt.Sprintf("%s (%s)", id, phrase.Clip(name)))
		} else if name != "" {
			m.strangers.add(fmt.Sprintf("%s (%s)", id, phrase.Clip(name)))
		}
		for _, t := range j.Alternatives[0].Tasks {
			ref := cluster.TaskRef{Job: id, Name: t.Name}
			w := runningTask{job: j, task: t, pod: true, at: path{"spec", "nodeName"}, r: m.bundle.reporter(d.podOf(ref), &m.errs)}
			if gone, ended := d.ended[ref]; ended {
				w.ended = gone.Ended
				m.running = append(m.running, w)
			} else if seen, runs := d.places[ref]; runs {
				w.node, w.holdings, w.started, w.releasing = seen.Node, seen.Devices, seen.Started, seen.Releasing
				m.running = append(m.running, w)
			}
		}
	}
}

func compareRefs(a, b cluster.TaskRef) int {
	return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.Name, b.Name))
}

// podOf returns the pod that the task stands for.
func (d *dump) podOf(ref cluster.TaskRef) any {
	name, _, _ := d.feed.Pod(ref)
	if o := d.objects[objectName{"Pod", name.Namespace, name.Name}]; o != nil {
		return o
	}
	return d.objects[objectName{"Pod", "", name.Name}]
}

// putPods delivers the pods. KAI runs a pod for each device of which pods have parts, which requests
// the whole device. If pods with these parts are in the input, their parts are counted instead.
func (d *dump) putPods(pods []*corev1.Pod) {
	shared := map[string]bool{}
	for _, o := range pods {
		if !convert.IsReservation(o) && !convert.Ended(o) {
			for _, name := range feed.SharedDevices(o) {
				shared[name] = true
			}
		}
	}
	delivered := d.onNodes(pods)
	pods = slices.Clone(delivered)
	for i, o := range pods {
		if convert.IsReservation(o) && slices.ContainsFunc(feed.SharedDevices(o), func(name string) bool { return shared[name] }) {
			delivered[i] = withoutDevices(o)
		}
	}
	put(d, "Pod", delivered, d.feed.PutPod)
	for i, o := range pods {
		if delivered[i] != o {
			d.objects[objectName{"Pod", o.Namespace, o.Name}] = o // it has a position
		}
	}
}

// onNodes returns the pods without those that run on nodes which are not in the input. Nodes may be
// removed while a cluster is dumped, and a dump may have some of them only. A pod of a group still counts
// for the minimum of the group, like one that has succeeded.
func (d *dump) onNodes(pods []*corev1.Pod) []*corev1.Pod {
	b := d.maker.bundle
	nodes := map[string]bool{}
	for _, n := range b.Nodes {
		nodes[n.Name] = true
	}
	for _, n := range b.CoreNodes {
		nodes[n.Name] = true
	}
	var out []*corev1.Pod
	for _, o := range pods {
		if o.Spec.NodeName == "" || nodes[o.Spec.NodeName] || convert.Ended(o) {
			out = append(out, o)
			continue
		}
		b.unusable[convert.PodID(o)] = "it runs on node " + phrase.Quote(o.Spec.NodeName) + ", which is not in the input"
		d.maker.absent.add(convert.PodID(o) + " (" + phrase.Clip(o.Spec.NodeName) + ")")
		if feed.Grouped(o) {
			o = o.DeepCopy()
			o.Spec.NodeName, o.Status.Phase = "", corev1.PodSucceeded
			out = append(out, o)
		}
	}
	return out
}

// withoutDevices returns the pod without what it requests of devices. The pod itself does not change.
func withoutDevices(o *corev1.Pod) *corev1.Pod {
	out := o.DeepCopy()
	for _, list := range [][]corev1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for i := range list {
			for _, amounts := range []corev1.ResourceList{list[i].Resources.Requests, list[i].Resources.Limits} {
				maps.DeleteFunc(amounts, func(name corev1.ResourceName, _ resource.Quantity) bool { return convert.IsDevice(string(name)) })
			}
		}
	}
	return out
}
