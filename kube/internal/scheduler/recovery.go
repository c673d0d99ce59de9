package scheduler

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/kube/internal/intree"
	"github.com/berth-project/berth/kube/internal/report"
	corev1 "k8s.io/api/core/v1"
)

// What a leader decided and the API server does not know is written into annotations of pods,
// so that the next leader continues with it: the room that is reserved for a pod, which jobs were
// displaced for it, and since when a gang runs with fewer pods than its minimum.
const (
	// AnnotationReservation of a pod has the room that is being freed for it, as JSON.
	AnnotationReservation = "berth.dev/reservation"
	// AnnotationBelowMinimum of a pod is since when its gang has run with fewer pods than its
	// minimum, in nanoseconds since 1970.
	AnnotationBelowMinimum = "berth.dev/below-minimum-since"
)

// reservation is the value of AnnotationReservation.
type reservation struct {
	Node      string            `json:"node"`
	Devices   []cluster.Holding `json:"devices,omitempty"`
	At        int64             `json:"at"`
	Displaced []string          `json:"displaced,omitempty"` // the jobs that were evicted for the pod's job
}

// keepPromise writes the reservation into the pod. The nominated node keeps autoscalers from
// adding nodes for the pod, since room is being freed for it.
func (s *Scheduler) keepPromise(c *cluster.Nominate) {
	pod := s.objects.pod(c.Task)
	if pod == nil || s.options.DryRun {
		return
	}
	r := reservation{Node: c.Node, Devices: c.Devices, At: c.At}
	if job := s.leader.State().Job(c.Task.Job); job != nil {
		r.Displaced = job.Displaced
	}
	text, err := json.Marshal(r)
	if err != nil {
		s.options.Log.Error("A reservation cannot be written.", "pod", nameOf(pod).String(), "error", err)
		return
	}
	value := string(text)
	s.reporter.Put(report.Report{
		Pod: nameOf(pod), UID: pod.UID, Version: pod.ResourceVersion, NominatedNode: &c.Node,
		Annotations: map[string]*string{AnnotationReservation: &value},
	})
	s.promised[c.Task] = true
}

// settlePromises removes the reservations from pods for which no room is reserved any more: an
// eviction was refused, a node is gone, or the pod was placed elsewhere.
func (s *Scheduler) settlePromises() {
	for ref := range s.promised { // the order of reports has no effect
		t := s.leader.State().Task(ref)
		if t != nil && t.Status == cluster.Nominated {
			continue
		}
		delete(s.promised, ref)
		if pod := s.objects.pod(ref); pod != nil && pod.Spec.NodeName == "" && (t == nil || t.Status == cluster.Pending) {
			s.dropPromise(ref)
		}
	}
}

// dropPromise removes the reservation from the pod.
func (s *Scheduler) dropPromise(ref cluster.TaskRef) {
	pod := s.objects.pod(ref)
	if pod == nil || s.options.DryRun {
		return
	}
	none := ""
	s.reporter.Put(report.Report{Pod: nameOf(pod), UID: pod.UID, Version: pod.ResourceVersion, NominatedNode: &none, Annotations: map[string]*string{AnnotationReservation: nil}})
}

// keepTorn writes into the running pods of the gang since when it has been below its minimum.
func (s *Scheduler) keepTorn(c *cluster.Tear) {
	job := s.leader.State().Job(c.Job)
	if job == nil || s.options.DryRun {
		return
	}
	var value *string
	if c.Since != 0 {
		text := strconv.FormatInt(c.Since, 10)
		value = &text
	}
	for _, t := range job.Tasks() {
		if pod := s.objects.pod(t.Ref()); pod != nil && t.Runs() {
			s.reporter.Put(report.Report{Pod: nameOf(pod), UID: pod.UID, Version: pod.ResourceVersion, Annotations: map[string]*string{AnnotationBelowMinimum: value}})
		}
	}
}

// recover reads what an earlier leader left, before the first session. The reservations of a job
// are recovered together or not at all. One that the State cannot keep is removed from the pod.
func (s *Scheduler) recover() {
	if s.recovered {
		return
	}
	s.recovered = true
	for uid, pod := range s.objects.pods { // the order of reports has no effect
		for i := range s.objects.notes[uid] {
			s.tellNote(&s.objects.notes[uid][i])
		}
		s.tellWaiting(pod)
	}
	jobs := map[string]*left{}
	for uid, pod := range s.objects.pods {
		key, isTask := s.objects.tasks[uid]
		if !isTask {
			continue
		}
		if text := pod.Annotations[AnnotationReservation]; text != "" && pod.Spec.NodeName == "" {
			var r reservation
			if err := json.Unmarshal([]byte(text), &r); err != nil || !mayRecover(pod, &r, s.options.Hold, s.objects.store) {
				s.options.Log.Warn("A reservation is not recovered.", "pod", nameOf(pod).String(), "error", err)
				s.dropPromise(cluster.TaskRef{Job: key.Job, Name: key.Task})
				continue
			}
			of(jobs, key.Job).add(cluster.TaskRef{Job: key.Job, Name: key.Task}, key.UID, &r)
		}
		if since, err := strconv.ParseInt(pod.Annotations[AnnotationBelowMinimum], 10, 64); err == nil && pod.Spec.NodeName != "" {
			l := of(jobs, key.Job)
			if l.since == 0 || since < l.since {
				l.since = since
			}
		}
	}
	for _, id := range sortedByAge(jobs) {
		s.recoverJob(id, jobs[id])
	}
}

// mayRecover reports whether the reservation is one that an earlier leader made and that has not
// ended. Users can write annotations, but not the nominated node, which is in the status. What a
// pod claims beside room is not part of a reservation, and room that is reserved is used without
// asking the filters again that look at other pods. A pod for which these matter is decided anew:
// other pods may have been bound while no leader knew of the reservation.
func mayRecover(pod *corev1.Pod, r *reservation, hold time.Duration, store *intree.Store) bool {
	now := time.Now().UnixNano()
	return pod.Status.NominatedNodeName == r.Node && r.At <= now && r.At > now-int64(hold) && !store.LooksAtOthers(pod)
}

// left is what an earlier leader left about a job.
type left struct {
	promises  []cluster.Nominate
	displaced []string
	at        int64 // of the oldest reservation
	since     int64 // since when it has been below its minimum; 0: it is not
}

func of(jobs map[string]*left, id string) *left {
	if jobs[id] == nil {
		jobs[id] = &left{}
	}
	return jobs[id]
}

func (l *left) add(ref cluster.TaskRef, uid string, r *reservation) {
	l.promises = append(l.promises, cluster.Nominate{Task: ref, UID: uid, Node: r.Node, Devices: r.Devices, At: r.At})
	l.displaced = append(l.displaced, r.Displaced...)
	if l.at == 0 || r.At < l.at {
		l.at = r.At
	}
}

// sortedByAge returns the IDs of the jobs, that with the oldest reservation first.
func sortedByAge(jobs map[string]*left) []string {
	ids := slices.Sorted(maps.Keys(jobs))
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(jobs[a].at, jobs[b].at) })
	return ids
}

func (s *Scheduler) recoverJob(id string, l *left) {
	if len(l.promises) > 0 {
		slices.SortFunc(l.promises, func(a, b cluster.Nominate) int { return cmp.Compare(a.Task.Name, b.Task.Name) })
		var list []cluster.Change
		for _, c := range l.promises {
			list = append(list, c)
		}
		if len(l.displaced) > 0 {
			slices.Sort(l.displaced)
			list = append(list, cluster.Displace{Job: id, Victims: slices.Compact(l.displaced)})
		}
		if err := s.leader.Apply(cluster.Decided{Changes: list}); err != nil {
			s.options.Log.Info("A reservation of an earlier leader is not kept.", "job", id, "reason", err)
			for _, c := range l.promises {
				s.dropPromise(c.Task)
			}
		} else {
			for _, c := range l.promises {
				s.promised[c.Task] = true
			}
		}
	}
	if l.since != 0 {
		if err := s.leader.Apply(cluster.Tear{Job: id, Since: l.since}); err != nil {
			s.options.Log.Info("A gang is not below its minimum any more.", "job", id, "reason", err)
		}
	}
	s.changed = true
}
