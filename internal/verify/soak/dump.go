package soak

import (
	"fmt"
	"strings"

	"github.com/berth-project/berth/cluster"
)

// dump returns State as text, without versions.
func dump(s *cluster.State) string {
	var b strings.Builder
	for _, q := range s.Queues() {
		fmt.Fprintf(&b, "queue %s %v firm %v\n", q.Name, q.Used, q.UsedByFirm)
	}
	for _, n := range s.Nodes() {
		fmt.Fprintf(&b, "node %s %v isolated=%d\n", n.Name, n.Resources, n.Isolated)
		for i := range n.Devices {
			fmt.Fprintf(&b, "  device %d lost=%v %+v\n", i, n.Devices[i].Lost, n.Devices[i].Use)
		}
		for _, t := range n.Tasks {
			fmt.Fprintf(&b, "  task %s\n", t.ID)
		}
	}
	for _, j := range s.Jobs() {
		fmt.Fprintf(&b, "%s chosen=%d placed=%d retired=%v\n", j.ID, j.Chosen, j.Placed(), j.Retired)
		for a := range j.Alternatives {
			for _, t := range j.Alternatives[a].Tasks {
				where := "nowhere"
				if t.Node != nil {
					where = t.Node.Name
				}
				fmt.Fprintf(&b, "  %s %s %s %v\n", t.ID, t.Status, where, t.Claims)
			}
		}
	}
	for _, j := range s.Pending() {
		fmt.Fprintf(&b, "pending %s\n", j.ID)
	}
	for _, name := range s.View().Sets().Names() {
		fmt.Fprintf(&b, "set %s home %v", name, s.View().Sets().Home(name))
		for _, j := range s.View().Sets().Jobs(name) {
			fmt.Fprintf(&b, " %s", j.ID)
		}
		b.WriteByte('\n')
	}
	for _, t := range s.View().Nominated() {
		fmt.Fprintf(&b, "nominated %s\n", t.ID)
	}
	return b.String()
}
