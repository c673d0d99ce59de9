package scheduler

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/plugins/doublebooking"
	corev1 "k8s.io/api/core/v1"
)

// doubleBookings are the devices that the watch reports as held by several pods. No decision does
// that; two leaders may, in the moment between the check of the lease and the arrival of
// a request. The plugin DoubleBooking evicts the younger pod, if evictions are allowed.
type doubleBookings struct {
	finder doublebooking.Finder
	known  map[string]bool // those that were reported, by node, device and sort
}

// take returns the conflicts that were not there at the last call.
func (d *doubleBookings) take(v cluster.View) []doublebooking.Conflict {
	nodes := d.finder.Nodes(v)
	if len(nodes) == 0 {
		d.known = nil
		return nil
	}
	var out []doublebooking.Conflict
	now := map[string]bool{}
	for _, n := range nodes {
		for _, c := range d.finder.Conflicts(n) {
			key := fmt.Sprintf("%s/%s/%v", n.Name, c.Device, c.Sort)
			now[key] = true
			if !d.known[key] {
				out = append(out, c)
			}
		}
	}
	d.known = now
	return out
}

// tellDoubleBookings reports conflicts that are new, before a session resolves them.
func (s *Scheduler) tellDoubleBookings() {
	for _, c := range s.doubleBookings.take(s.leader.State().View()) {
		young, old := c.Youngest(), c.Tasks[0]
		message := fmt.Sprintf("device %s of node %s is held by %s and %s", c.Device, c.Node.Name, old.ID, young.ID)
		if c.Device == "" {
			message = fmt.Sprintf("node %s has fewer devices than its pods hold of %s; the youngest is %s", c.Node.Name, strings.TrimSpace(c.Sort.Resource+" "+c.Sort.Profile), young.ID)
		}
		s.metrics.DoubleBooked()
		s.options.Log.Error("A device is booked twice.", "node", c.Node.Name, "device", c.Device, "older", old.ID, "younger", young.ID)
		if s.options.DryRun {
			continue
		}
		for _, t := range []*cluster.Task{old, young} {
			if pod := s.objects.pod(t.Ref()); pod != nil {
				s.options.Events.Eventf(pod, nil, corev1.EventTypeWarning, "DeviceBookedTwice", "Scheduling", "%s", clip(message))
			}
		}
	}
}
