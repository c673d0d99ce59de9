package scheduler

import (
	"fmt"
	"unicode/utf8"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/kube/internal/bind"
	"github.com/berth-project/berth/kube/internal/report"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ReasonWaitingForGang is the reason of the condition PodScheduled of a pod whose group has
// fewer pods than its minimum. Autoscalers do not react to it: more nodes would not help.
const ReasonWaitingForGang = "WaitingForGang"

// report tells the pods of the jobs that the session refused why.
func (s *Scheduler) report(out *engine.Outcome) {
	if s.options.DryRun {
		for _, r := range out.Refusals {
			s.options.Log.Info("A job would stay pending.", "job", r.Job, "message", s.phrases.Message(r))
		}
		return
	}
	for _, r := range out.Refusals {
		job := s.leader.State().Job(r.Job)
		if job == nil {
			continue
		}
		message := s.phrases.Message(r)
		for _, t := range job.Tasks() {
			if t.Status == cluster.Pending {
				s.tell(t.Ref(), corev1.PodReasonUnschedulable, message)
			}
		}
	}
}

// noteArrival keeps the pod for tellArrived if its condition does not say why it is pending.
func (s *Scheduler) noteArrival(pod *corev1.Pod) {
	if _, isTask := s.objects.tasks[pod.UID]; !isTask || pod.Spec.NodeName != "" || s.options.DryRun || !s.options.Held() {
		return
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason != ReasonWaitingForGang {
			return
		}
	}
	s.arrived = append(s.arrived, pod.UID)
}

// tellArrived tells pods that arrived before the session why they are not placed, if their job was
// refused as before. A session reports a refusal only if it differs from the last one.
func (s *Scheduler) tellArrived() {
	for _, uid := range s.arrived {
		pod, key := s.objects.pods[uid], s.objects.tasks[uid]
		t := s.leader.State().Task(cluster.TaskRef{Job: key.Job, Name: key.Task})
		if pod == nil || t == nil || t.Status != cluster.Pending {
			continue
		}
		if r := s.engine.Refusal(t.Job); r != nil {
			s.setCondition(pod, corev1.PodReasonUnschedulable, clip(s.phrases.Message(r)))
		}
	}
	s.arrived = nil
}

// tell reports to the pod of the task why it is not placed, as a condition and as an event.
func (s *Scheduler) tell(ref cluster.TaskRef, reason, message string) {
	pod := s.objects.pod(ref)
	if pod == nil || pod.DeletionTimestamp != nil {
		return
	}
	message = clip(message)
	s.options.Events.Eventf(pod, nil, corev1.EventTypeWarning, "FailedScheduling", "Scheduling", "%s", message)
	s.setCondition(pod, reason, message)
}

// setCondition sets the condition PodScheduled of the pod to false, unless it says that already.
func (s *Scheduler) setCondition(pod *corev1.Pod, reason, message string) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == reason && c.Message == message {
			return
		}
	}
	s.reporter.Put(report.Report{
		Pod: nameOf(pod), UID: pod.UID, Version: pod.ResourceVersion,
		Condition: &report.Condition{Reason: reason, Message: message, Since: report.FalseSince(pod)},
	})
}

// note logs how an object was read, and tells the users of a pod.
func (s *Scheduler) note(n *feed.Note) {
	s.options.Log.Info("An object was not read as it is written.", "kind", n.Kind, "namespace", n.Namespace, "name", n.Name, "note", noteText(n))
	s.tellNote(n)
}

func noteText(n *feed.Note) string {
	text := fmt.Sprintf("%s: %s", n.Path, n.Message)
	if n.Detail != "" {
		text += " (" + n.Detail + ")"
	}
	return text
}

// tellNote sets the condition of a pod that is not considered because of how it was read.
func (s *Scheduler) tellNote(n *feed.Note) {
	if n.Kind != "Pod" || s.options.DryRun || !s.options.Held() {
		return
	}
	reason := corev1.PodReasonUnschedulable
	switch n.Severity {
	case convert.Inactive:
		reason = ReasonWaitingForGang
	case convert.Invalid:
	default:
		return
	}
	name := types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
	uid, found := s.objects.names[name]
	if !found {
		return
	}
	// The API server sets the condition of a gated pod. A pod that is bound, or has ended, is
	// not pending, however it was read.
	if pod := s.objects.pods[uid]; len(pod.Spec.SchedulingGates) == 0 && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
		s.setCondition(s.objects.pods[uid], reason, clip(noteText(n)))
	}
}

// tellResult reports to a pod that it was evicted, and why, or why it could not be bound.
func (s *Scheduler) tellResult(r *bind.Result) {
	cause, evicted := s.dispatcher.causes[r.Pod.UID], r.Evicts && r.Outcome == bind.Done
	if r.Evicts {
		delete(s.dispatcher.causes, r.Pod.UID)
	}
	pod := s.objects.pods[types.UID(r.Pod.UID)]
	switch {
	case pod == nil:
	case evicted:
		s.options.Events.Eventf(pod, nil, corev1.EventTypeNormal, "Preempted", "Evicting", "%s", clip(cause))
	case !r.Evicts && r.Outcome == bind.Failed && pod.Spec.NodeName == "":
		s.tell(r.Pod.Task, feed.ReasonBindingRefused, r.Reason)
	}
}

// tellWaiting tells a pending pod that it is not considered until other objects exist.
func (s *Scheduler) tellWaiting(pod *corev1.Pod) {
	if reason, message := waitsFor(s, pod); reason != "" {
		s.setCondition(pod, reason, message)
	}
}

// waitsFor returns the reason and the message of the condition of a pod whose group has too few
// pods, or whose queue does not exist. The reason is "" if the pod is considered, or is not to be
// told. The message has no count, so that it does not change with every pod that is created.
func waitsFor(s *Scheduler, pod *corev1.Pod) (reason, message string) {
	key, isTask := s.objects.tasks[pod.UID]
	if !isTask || pod.Spec.NodeName != "" || s.options.DryRun || !s.options.Held() {
		return "", ""
	}
	job := s.leader.State().Job(key.Job)
	if job == nil {
		return "", ""
	}
	if s.leader.State().Queue(job.Queue) == nil {
		return corev1.PodReasonUnschedulable, fmt.Sprintf("queue %s does not exist; create it, or name another with the label %s", job.Queue, v1alpha1.LabelQueue)
	}
	if alt := &job.Alternatives[0]; job.Open && len(alt.Tasks) < alt.Min {
		return ReasonWaitingForGang, fmt.Sprintf("waiting until %s has %d pods", job.ID, alt.Min)
	}
	return "", ""
}

// maxNote is how long the text of an event may be.
const maxNote = 1024

// clip returns the text, cut to the length that an event may have.
func clip(text string) string {
	if len(text) <= maxNote {
		return text
	}
	const more = " …"
	cut := maxNote - len(more)
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + more
}
