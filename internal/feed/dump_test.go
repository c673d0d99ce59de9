package feed

import (
	"reflect"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// withoutTasks returns the spec without the tasks of a single pod, which are compared as members.
func withoutTasks(j *cluster.Job) cluster.Job {
	out := *j
	form := out.Alternatives[0]
	form.Tasks = nil
	out.Alternatives = []cluster.Alternative{form}
	return out
}

// TestDumpAgreesWithInformers delivers the same objects to a Feed of a live scheduler and to one of a
// dump: the jobs and tasks of which the first knows the minimum are the same.
func TestDumpAgreesWithInformers(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		g := &generator{T: t}
		env := &convert.Environment{DeviceResources: map[string]bool{}, PodsCounted: true, Parts: true}
		live := &fixture{t: t, feed: New(Options{SchedulerNames: []string{"berth", "other"}, DevicesEnforced: true}), state: cluster.NewState()}
		dump := &fixture{t: t, feed: New(Options{Dump: env, DevicesEnforced: true}), state: cluster.NewState()}
		var pods []*corev1.Pod
		for _, h := range g.cluster() {
			switch o := h.last().(type) {
			case nil:
			case *corev1.Pod:
				pods = append(pods, o)
			default:
				live.put(o)
				dump.put(o)
			}
		}
		for _, o := range pods { // the claims that a running pod uses are known before it
			live.put(o)
			dump.put(o)
		}
		dump.apply(dump.feed.Settle())
		for id, j := range live.feed.jobs {
			other := dump.feed.jobs[id]
			if j.put == nil || other != nil && other.said.unknownQueue != "" {
				continue // a job of a dump that names no known queue is in the default queue
			}
			if other == nil {
				t.Fatalf("%s: the dump does not have %+v", id, j.put)
			}
			if len(other.tally.queues) > 1 && other.put.Queue != j.put.Queue {
				continue // of several queues, a dump prefers one that can have jobs
			}
			if !reflect.DeepEqual(withoutTasks(other.put), withoutTasks(j.put)) {
				t.Fatalf("%s: the dump has %+v, want %+v", id, other, j.put)
			}
			for name, p := range j.members {
				q := other.members[name]
				if q == nil {
					t.Fatalf("%s has no member %s in the dump", id, name)
				}
				if q.missing > 0 {
					continue // it counts as a device in a dump alone
				}
				want, have := *p.said.task, *q.said.task
				shape := *want.Shape
				shape.Key = "" // of plugins of Kubernetes, which a dump has none of
				want.Shape = &shape
				if !reflect.DeepEqual(have, want) || q.place != p.place || q.ended != p.ended || !reflect.DeepEqual(q.devices, p.devices) {
					t.Fatalf("%s of %s: the dump has %+v, want %+v", name, id, q, p)
				}
				compared++
			}
		}
	})
	if compared == 0 {
		t.Error("nothing was compared")
	}
}
