package intree

import (
	"errors"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/consolidate"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestMovingTask checks that the shadow of a task has the pod of the task, and that the node
// which the task leaves does not bind it.
func TestMovingTask(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	id := w.job(t, withPort(plain("p")))
	w.run(t)
	w.putNode(t, node("b", nil))
	job := w.state.Job(id)
	task := job.Tasks()[0]
	bound := withPort(plain("p"))
	bound.Spec.NodeName = "a"
	if err := w.store.PutPod(KeyOf(task), bound); err != nil {
		t.Fatal(err)
	}
	w.run(t)
	shadow := job.Shadow([]*cluster.Task{task}).Tasks()[0]
	if KeyOf(shadow) != KeyOf(task) {
		t.Errorf("the keys are %v and %v", KeyOf(shadow), KeyOf(task))
	}
	b := w.state.Node("b")
	if r := w.plugin.before(shadow, shadow.Job); r != nil {
		t.Errorf("the shadow: %+v", r)
	}
	if w.plugin.mattersTask(shadow, shadow.Job) || w.plugin.rejectStatic(shadow.Shape, b) != nil || w.plugin.rejectShape(shadow.Shape, b) != nil {
		t.Error("a node is rejected for the shadow")
	}
	if r := w.plugin.rejectTask(task, job, b); r == nil || r.Reason != NodeNameMismatch {
		t.Errorf("the task: %+v", r)
	}
}

// TestConsolidate lets the engine move a pod with a host port. The port is in use on node b, and
// free on node c.
func TestConsolidate(t *testing.T) {
	w := newWorld(t)
	mover, err := consolidate.New(engine.NoArguments{})
	if err != nil {
		t.Fatal(err)
	}
	w.engine = enginetest.Engine(enginetest.Fit(), w.plugin, mover)
	for _, name := range []string{"a", "b", "c"} {
		w.putNode(t, node(name, nil))
	}
	moved := w.running(t, requesting(withPort(plain("mover")), "1"), "a")
	w.running(t, requesting(withPort(plain("y")), "2"), "b")
	w.running(t, requesting(plain("z"), "2"), "c")
	job := w.state.Job(moved).Spec()
	shape := *job.Alternatives[0].Tasks[0].Shape
	job.Preemptible, shape.Preemptible = true, true
	job.Alternatives[0].Tasks[0].Shape = &shape
	w.apply(t, cluster.JobPut{Job: job})
	placed := w.job(t, requesting(plain("new"), "4"))
	w.run(t)
	if l := w.state.Job(moved).Tasks()[0].Landing(); l == nil || l.Node.Name != "c" || w.placedOn(placed) != "a" {
		t.Fatalf("the pod moves: %+v, and the new pod is on %q", l, w.placedOn(placed))
	}
	if !w.plugin.mirror.has("c", "uid-mover") || w.plugin.mirror.has("a", "uid-mover") {
		t.Error("the pod that moves is not on its new node alone")
	}
	w.run(t)
	w.checkMirror(t)
}

func requesting(o *v1.Pod, cpu string) *v1.Pod {
	o.Spec.Containers[0].Resources.Requests = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}
	return o
}

// running adds the job of a pod that runs on the node.
func (w *world) running(t *testing.T, o *v1.Pod, node string) (job string) {
	t.Helper()
	job = w.job(t, o)
	bound := o.DeepCopy()
	bound.Spec.NodeName = node
	key := KeyOf(w.state.Job(job).Tasks()[0])
	if err := w.store.PutPod(key, bound); err != nil {
		t.Fatal(err)
	}
	w.apply(t, cluster.TaskSeen{Task: cluster.TaskRef{Job: job, Name: key.Task}, UID: key.UID, Node: node})
	return job
}

// TestReservation checks that a reservation is kept while the object of its node is not known,
// and is withdrawn when the node becomes unschedulable.
func TestReservation(t *testing.T) {
	w := newWorld(t)
	w.putNode(t, node("a", nil))
	holder := w.running(t, requesting(plain("holder"), "4"), "a")
	task := w.state.Job(w.job(t, requesting(plain("p"), "4"))).Tasks()[0]
	w.now++
	s := w.engine.Open(w.state, engine.Options{Now: w.now, Search: engine.Twin})
	stmt := s.Begin()
	failed := stmt.Evict(w.state.Job(holder).Tasks()[0], "job", "Test")
	stmt.Commit()
	_, err := s.Run()
	if err = errors.Join(failed, err, s.Close()); err != nil || task.Status != cluster.Nominated {
		t.Fatalf("the task is %v: %v", task.Status, err)
	}
	w.store.DeleteNode("a")
	if w.run(t); task.Status != cluster.Nominated {
		t.Errorf("the node is not known: the task is %v", task.Status)
	}
	cordoned := node("a", nil)
	cordoned.Spec.Unschedulable = true
	w.putObject(cordoned)
	if w.run(t); task.Status != cluster.Pending {
		t.Errorf("the node is unschedulable: the task is %v", task.Status)
	}
}
