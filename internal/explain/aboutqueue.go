package explain

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/quantity"
	"github.com/berth-project/berth/internal/wire"
)

// NewQueueReport says what the queue holds, and why its workloads are pending. The State is the
// one that the refusals and the standings are about.
func NewQueueReport(s *cluster.State, q *cluster.Queue, standings []engine.Standing, refusals []*engine.Refusal, ph Phrases) *wire.QueueReport {
	r := &wire.QueueReport{Queue: q.Name, Parent: q.Parent, Tier: string(q.Tier), Standings: []wire.Standing{}, Placed: []wire.QueueHolder{}, Pending: []wire.Waiting{}}
	for _, o := range s.Queues() {
		if o.Parent == q.Name {
			r.Children = append(r.Children, o.Name)
		}
	}
	slices.Sort(r.Children)
	for _, st := range standings {
		r.Standings = append(r.Standings, wire.NewStanding(st))
	}
	for up := q; up != nil; up = s.View().Parent(up) {
		for _, a := range up.Limits {
			device := isDeviceOf(s, a.Name)
			r.Limits = append(r.Limits, wire.QueueLimit{Queue: up.Name, Resource: a.Name, Limit: quantity.Amount(a.Name, a.Value, device, true), Used: quantity.Amount(a.Name, up.Used.Of(a.Name), device, true)})
		}
	}
	for _, j := range s.Jobs() {
		if j.Placed() > 0 && IsBelow(s, j.Queue, q.Name) {
			r.Placed = append(r.Placed, wire.QueueHolder{Workload: j.ID, Queue: j.Queue, Devices: float64(HeldDevices(j)) / 1000, Priority: j.Priority, Preemptible: j.Preemptible})
		}
	}
	slices.SortStableFunc(r.Placed, func(a, b wire.QueueHolder) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), strings.Compare(a.Workload, b.Workload))
	})
	for _, refused := range refusals {
		j := s.Job(refused.Job)
		if j == nil || !IsBelow(s, j.Queue, q.Name) {
			continue
		}
		r.Pending = append(r.Pending, wire.Waiting{Workload: j.ID, Reason: string(refused.Reason), Permanent: refused.Permanent, Surplus: refused.Surplus, Message: ph.Brief(refused)})
	}
	return r
}

// isDeviceOf reports whether nodes of the State offer devices under the resource name.
func isDeviceOf(s *cluster.State, resource string) bool {
	return quantity.IsDevice(resource) || slices.ContainsFunc(s.View().Groups(), func(g *cluster.Group) bool { return g.Key.Resource == resource })
}

// IsBelow reports whether the queue is the other queue or below it.
func IsBelow(s *cluster.State, queue, other string) bool {
	for q := s.Queue(queue); q != nil; q = s.View().Parent(q) {
		if q.Name == other {
			return true
		}
	}
	return false
}

// HeldDevices returns how much of devices the job holds, in thousandths of a device.
func HeldDevices(j *cluster.Job) int64 {
	total := int64(0)
	for _, t := range j.Tasks() {
		for _, c := range t.Claims {
			total += int64(c.Milli)
		}
	}
	return total
}

// WriteQueue writes the report for people.
func WriteQueue(w io.Writer, r *wire.QueueReport) {
	const most = 20
	below := ""
	if r.Parent != "" {
		below = ", below " + r.Parent
	}
	wrapped(w, fmt.Sprintf("Queue %s: tier %s%s.", r.Queue, r.Tier, below), "", "  ")
	if len(r.Children) > 0 {
		wrapped(w, "Its workloads are in the queues below it: "+List(r.Children, 8)+".", "", "  ")
	}
	for _, st := range r.Standings {
		text := fmt.Sprintf("%s holds %s of %s; its fair share is %s", subjectOf(st.Queue, r.Queue), st.Used, st.Resource, st.FairShare)
		if st.Quota != "" {
			text += ", its quota " + st.Quota
		}
		wrapped(w, text+"; with its pending jobs it requests "+st.Requested+".", "", "  ")
	}
	for _, l := range r.Limits {
		wrapped(w, fmt.Sprintf("%s may hold at most %s of %s, and holds %s.", subjectOf(l.Queue, r.Queue), l.Limit, l.Resource, l.Used), "", "  ")
	}
	if len(r.Placed) > 0 {
		fmt.Fprintf(w, "\n%s placed:\n", english.Count(len(r.Placed), "workload"))
		placed := NaturalRuns(r.Placed, func(p *wire.QueueHolder) string { return p.Workload }, func(a, b *wire.QueueHolder) bool { return a.Devices == b.Devices })
		for i, p := range placed {
			if i == most {
				fmt.Fprintf(w, "  and %s\n", english.Count(len(r.Placed)-most, "more workload"))
				break
			}
			facts := []string{quantity.Of(engine.Quantity{Value: int64(p.Devices*1000 + 0.5), Unit: engine.Devices}, 1)}
			if p.Queue != r.Queue {
				facts = append(facts, "queue "+p.Queue)
			}
			if p.Priority != 0 {
				facts = append(facts, fmt.Sprintf("priority %d", p.Priority))
			}
			if p.Preemptible {
				facts = append(facts, "preemptible")
			}
			wrapped(w, p.Workload+": "+strings.Join(facts, ", "), "  ", "    ")
		}
	}
	if len(r.Pending) == 0 {
		fmt.Fprintln(w, "\nNo workload of the queue is pending.")
		return
	}
	fmt.Fprintf(w, "\n%s pending:\n", english.Count(len(r.Pending), "workload"))
	for i, p := range NaturalOrder(r.Pending, func(p *wire.Waiting) string { return p.Workload }) {
		if i == most {
			fmt.Fprintf(w, "  and %s\n", english.Count(len(r.Pending)-most, "more workload"))
			break
		}
		text := p.Workload + ": " + p.Message
		if p.Permanent {
			text += "; waiting cannot help"
		}
		wrapped(w, text, "  ", "    ")
	}
}

func subjectOf(queue, own string) string {
	if queue == own {
		return "It"
	}
	return "Queue " + queue
}
