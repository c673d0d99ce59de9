package intree

import (
	"errors"
	"fmt"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// TestRememberedAnswers runs sessions over random clusters in which tasks are evicted and
// stop later, pods become known late, and nodes change, with and without State. Each session
// compares the answers that the engine remembers with new ones, and fails if they differ.
func TestRememberedAnswers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for i := range 3 {
			w.putNode(t, drawNode(t, fmt.Sprintf("n%d", i)))
		}
		templates := []*v1.Pod{drawPod(t, "t0"), drawPod(t, "t1"), drawPod(t, "t2")}
		drawPorts(t, templates[0])
		templates[1].Spec.Volumes = []v1.Volume{disk(false)}
		pods := map[TaskKey]*v1.Pod{} // all pods, whether the Store has them or not
		for round := range 8 {
			for i := range rapid.IntRange(0, 3).Draw(t, "arrivals") {
				o := again(pick(t, "template", templates...), fmt.Sprintf("p%d-%d", round, i))
				id := w.job(t, o)
				pods[KeyOf(w.state.Job(id).Tasks()[0])] = o
			}
			w.session(t)
			for _, job := range w.state.Jobs() {
				w.drawFacts(t, job.Tasks()[0], pods)
			}
			if chance(t, "change", 2) {
				o := drawNode(t, w.nodes[0].Name)
				if chance(t, "with State", 2) {
					w.putNode(t, o)
				} else {
					w.putObject(o)
				}
			}
		}
		w.run(t)
		w.checkMirror(t)
	})
}

// session runs a session that first evicts some tasks.
func (w *world) session(t *rapid.T) {
	w.now++
	s := w.engine.Open(w.state, engine.Options{Now: w.now, Search: engine.Twin})
	stmt := s.Begin()
	var failed error
	for _, job := range w.state.Jobs() {
		if task := job.Tasks()[0]; task.Runs() && chance(t, "evict", 4) {
			failed = errors.Join(failed, stmt.Evict(task, "job", "Test"))
		}
	}
	stmt.Commit()
	_, err := s.Run()
	if err = errors.Join(failed, err, s.Close()); err != nil {
		t.Fatalf("%v", err)
	}
}

// drawFacts lets the task stop if it is evicted, and its pod be known or not.
func (w *world) drawFacts(t *rapid.T, task *cluster.Task, pods map[TaskKey]*v1.Pod) {
	key := KeyOf(task)
	switch {
	case task.Status == cluster.Releasing && chance(t, "stops", 2):
		w.apply(t, cluster.TaskGone{Task: task.Ref(), UID: task.UID})
	case chance(t, "not known", 8):
		w.store.DeletePod(key)
	case chance(t, "known", 4):
		if err := w.store.PutPod(key, pods[key].DeepCopy()); err != nil {
			t.Fatalf("%v", err)
		}
	}
}
