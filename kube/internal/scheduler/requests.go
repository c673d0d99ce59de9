package scheduler

import (
	"encoding/json"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/feed"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/watch"
	"k8s.io/apimachinery/pkg/types"
)

// eviction is an eviction that was decided, and why.
type eviction struct {
	bind.Eviction
	cause string
}

// accept notes the bindings and evictions that the session decided. They are sent by dispatch.
func (s *Scheduler) accept(out *engine.Outcome) {
	causes := map[cluster.TaskRef]string{}
	for i := range out.Decisions {
		if d := &out.Decisions[i]; d.Action == engine.EvictTask {
			causes[d.Task] = explain.CauseText(d.For, string(d.Reason), d.Landing)
		}
	}
	for _, c := range out.Changes {
		list := []cluster.Change{c}
		if together, several := c.(cluster.Decided); several {
			list = together.Changes
		}
		for _, c := range list {
			switch c := c.(type) {
			case cluster.Assign:
				s.acceptBinding(&c)
			case cluster.Evict:
				s.acceptEviction(&c, causes[c.Task])
			case cluster.Nominate:
				s.keepPromise(&c)
			case cluster.Withdraw:
				s.dropPromise(c.Task)
			case cluster.Tear:
				s.keepTorn(&c)
			}
		}
	}
}

func (s *Scheduler) acceptBinding(c *cluster.Assign) {
	b := bind.Binding{Pod: s.podOf(c.Task, c.UID), Attempt: c.Attempt, Node: c.Node}
	if len(c.Devices) > 0 {
		if text, err := json.Marshal(c.Devices); err == nil {
			b.Annotations = map[string]string{feed.AnnotationDevices: string(text)}
		}
	}
	if s.options.DryRun {
		s.options.Log.Info("A pod would be bound.", "pod", b.Namespace+"/"+b.Name, "node", b.Node)
		return
	}
	s.toBind = append(s.toBind, b)
}

func (s *Scheduler) acceptEviction(c *cluster.Evict, cause string) {
	e := eviction{bind.Eviction{Pod: s.podOf(c.Task, c.UID), Attempt: c.Attempt}, cause}
	if s.options.DryRun {
		s.options.Log.Info("A pod would be evicted.", "pod", e.Namespace+"/"+e.Name, "cause", cause)
		return
	}
	s.toEvict = append(s.toEvict, e)
}

func (s *Scheduler) podOf(ref cluster.TaskRef, uid string) bind.Pod {
	name, _, _ := s.objects.feed.Pod(ref)
	return bind.Pod{Namespace: name.Namespace, Name: name.Name, UID: uid, Task: ref}
}

// dispatch sends the bindings and evictions that are still what the State says, as far as
// requests may be under way. Facts that arrived since they were decided may have overtaken
// them.
func (s *Scheduler) dispatch() {
	sent, later := 0, []bind.Binding(nil)
	for ; sent < len(s.toBind); sent++ {
		b := s.toBind[sent]
		if t := s.taskOf(b.Pod, b.Attempt); t == nil || t.Status != cluster.Assumed || t.Node == nil || t.Node.Name != b.Node {
			continue
		}
		if s.leader.State().Node(b.Node) == nil {
			// The API server would accept the binding: it does not check that the node exists.
			_ = s.leader.Apply(cluster.BindFailed{Task: b.Task, UID: b.UID, Attempt: b.Attempt})
			s.changed = true
			continue
		}
		if s.refusals.waitsFor(b.Task.Job) {
			later = append(later, b) // a member of its gang was refused: it is pending again when State knows that
			continue
		}
		if !s.sender.Free() {
			break
		}
		b.Prepare = s.objects.store.Prepare(intree.TaskKey{Job: b.Task.Job, Task: b.Task.Name, UID: b.UID})
		if !s.sender.Bind(b) {
			break
		}
		// The State rejects it only if the task is not Assumed, which was checked.
		_ = s.leader.Apply(cluster.BindSent{Task: b.Task, UID: b.UID, Attempt: b.Attempt})
	}
	s.toBind = append(later, s.toBind[sent:]...)
	sent = 0
	for ; sent < len(s.toEvict); sent++ {
		e := &s.toEvict[sent]
		if t := s.taskOf(e.Pod, e.Attempt); t == nil || t.Status != cluster.Releasing {
			continue
		}
		if !s.sender.Free() || !s.limiter.TryAccept() || !s.sender.Evict(e.Eviction) {
			break
		}
		s.causes[e.UID] = e.cause
	}
	s.toEvict = remaining(s.toEvict, sent)
}

// remaining returns the list without its first n entries. A list that is empty is released.
func remaining[T any](list []T, n int) []T {
	if n == len(list) {
		return nil
	}
	return list[n:]
}

// taskOf returns the task if it still is the pod with the UID, and the decision with the
// attempt is its latest.
func (s *Scheduler) taskOf(p bind.Pod, attempt uint64) *cluster.Task {
	t := s.leader.State().Task(p.Task)
	if t == nil || t.UID != p.UID || t.Attempt != attempt {
		return nil
	}
	return t
}

// deliver takes a result from the Sender.
func (s *Scheduler) deliver(r bind.Result) {
	s.mu.Lock()
	s.results = append(s.results, r)
	s.mu.Unlock()
	select {
	case s.returned <- struct{}{}:
	default:
	}
}

// finish applies the result of a request.
func (s *Scheduler) finish(r *bind.Result) error {
	s.measureRequest(r)
	if r.Outcome != bind.Done {
		s.options.Log.Warn("A request was not carried out.", "pod", r.Pod.Namespace+"/"+r.Pod.Name, "outcome", r.Outcome.String(), "reason", r.Reason)
	}
	s.tellResult(r)
	switch fact := r.Fact.(type) {
	case nil:
		s.refusals.forget(r.Pod.UID)
	case cluster.BindFailed:
		delay := time.Duration(0)
		if r.Outcome == bind.Failed && !r.Gone {
			delay = s.refusals.delay(r.Pod.UID)
		}
		if delay > 0 {
			s.refusals.add(fact, time.Now().Add(delay))
		} else if err := s.apply([]cluster.Change{fact}); err != nil {
			return err
		}
	default:
		if err := s.apply([]cluster.Change{fact}); err != nil {
			return err
		}
	}
	return s.takeRead(r)
}

// takeRead applies what the Sender has read about the pod. Without it, a pod that is gone or
// bound elsewhere would be placed again and again until the watch delivers that.
func (s *Scheduler) takeRead(r *bind.Result) error {
	known := s.objects.pods[types.UID(r.Pod.UID)]
	switch {
	case known == nil:
		return nil
	case r.Gone:
		return s.take(watch.Event{Object: known, Deleted: true})
	case r.Current == nil:
		return nil
	}
	stripped, err := feed.Strip(r.Current)
	if err != nil {
		return err
	}
	return s.take(watch.Event{Object: stripped})
}
