package scheduler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/bind"
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
			causes[d.Task] = causeText(d, s.phrases)
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

// causeText returns why a pod is evicted.
func causeText(d *engine.Decision, phrases explain.Phrases) string {
	if d.For == "" {
		return fmt.Sprintf("Evicted: %s (%s)", phrases[d.Reason].Phrase, d.Reason)
	}
	return "Evicted for " + explain.CauseText(d.For, string(d.Reason), d.Landing)
}

func (s *Scheduler) acceptBinding(c *cluster.Assign) {
	b := bind.Binding{Pod: s.objects.podOf(c.Task, c.UID), Attempt: c.Attempt, Node: c.Node}
	if len(c.Devices) > 0 {
		if text, err := json.Marshal(c.Devices); err == nil {
			b.Annotations = map[string]string{feed.AnnotationDevices: string(text)}
			if visible := visibleDevices(s.leader.State(), c); visible != "" && s.options.Feed.DevicesEnforced {
				b.Annotations[feed.AnnotationVisibleDevices] = visible
			}
		}
	}
	if s.options.DryRun {
		s.dryRun.notBinding(c, b.Namespace+"/"+b.Name, b.Node)
		return
	}
	s.dispatcher.addBinding(b)
}

// visibleDevices returns the numbers of the devices that the task gets, such as "0,3". A container
// gets these devices if it reads them as the variable NVIDIA_VISIBLE_DEVICES.
func visibleDevices(s *cluster.State, c *cluster.Assign) string {
	node := s.Node(c.Node)
	if node == nil {
		return ""
	}
	var numbers []string
	for i := range node.Devices {
		d := &node.Devices[i]
		if slices.ContainsFunc(c.Devices, func(h cluster.Holding) bool { return h.Device == d.UUID }) {
			numbers = append(numbers, strconv.Itoa(d.ID.Index))
		}
	}
	return strings.Join(numbers, ",")
}

func (s *Scheduler) acceptEviction(c *cluster.Evict, cause string) {
	e := eviction{bind.Eviction{Pod: s.objects.podOf(c.Task, c.UID), Attempt: c.Attempt}, cause}
	if s.options.DryRun {
		s.dryRun.notEvicting(c, e.Namespace+"/"+e.Name, cause)
		return
	}
	s.dispatcher.toEvict = append(s.dispatcher.toEvict, e)
}

// podOf returns the names of the pod of a task.
func (x *objects) podOf(ref cluster.TaskRef, uid string) bind.Pod {
	name, _, _ := x.feed.Pod(ref)
	return bind.Pod{Namespace: name.Namespace, Name: name.Name, UID: uid, Task: ref}
}

// deliver takes a result from the Sender.
func (s *Scheduler) deliver(r bind.Result) {
	s.mu.Lock()
	s.results = append(s.results, r)
	s.mu.Unlock()
	s.wake()
}

// wake ends a wait of the loop.
func (s *Scheduler) wake() {
	select {
	case s.returned <- struct{}{}:
	default:
	}
}

// finish applies the result of a request.
func (s *Scheduler) finish(r *bind.Result) error {
	s.measureRequest(r)
	if r.Outcome != bind.Done && r.Outcome != bind.Prepared {
		s.options.Log.Warn("A request was not carried out.", "pod", r.Pod.Namespace+"/"+r.Pod.Name, "outcome", r.Outcome.String(), "reason", r.Reason)
	}
	s.tellResult(r)
	if r.Prepares && r.Outcome == bind.Prepared && !isAssumed(s.leader.State().Task(r.Pod.Task)) {
		s.changed = true // the next session finds that what was allocated is not needed
	}
	if fact := r.Fact; fact != nil {
		if failed, is := fact.(cluster.BindFailed); is && r.Outcome == bind.Failed && !r.Gone {
			fact = heldBack(failed, s.leader.State().Job(r.Pod.Task.Job), time.Now())
		}
		if err := s.apply([]cluster.Change{fact}); err != nil {
			return err
		}
	}
	return s.takeRead(r)
}

func isAssumed(t *cluster.Task) bool { return t != nil && t.Status == cluster.Assumed }

// takeRead applies what the Sender has read about the pod. Without it, a pod that is gone or
// bound elsewhere would be placed again and again until the watch delivers that.
func (s *Scheduler) takeRead(r *bind.Result) error {
	known := s.objects.pods[types.UID(r.Pod.UID)]
	switch {
	case known == nil:
		return nil
	case r.Gone:
		err := s.take(watch.Event{Object: known, Deleted: true})
		s.objects.gone[known.UID] = true // until the watch delivers the deletion
		return err
	case r.Current == nil:
		return nil
	}
	return s.take(watch.Event{Object: feed.Strip(r.Current)})
}
