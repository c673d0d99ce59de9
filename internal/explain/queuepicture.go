package explain

import (
	"io"
	"slices"

	"github.com/berth-project/berth/cluster"
)

// QueuePicture draws the devices of the cluster like Picture, with a letter for each queue
// instead of each workload. The function title returns the name that the legend shows for a
// queue.
func QueuePicture(w io.Writer, state *cluster.State, style Style, title func(queue string) string) {
	p := &painter{style: style, letterOf: map[string]byte{}}
	if p.style.Width == 0 {
		p.style.Width = 80
	}
	p.assignQueueLetters(state, title)
	p.nameWidth = 12
	for _, n := range state.Nodes() {
		p.nameWidth = min(nameColumns, max(p.nameWidth, len([]rune(n.Name))))
	}
	for _, g := range state.View().Groups() {
		p.section(w, GroupTitle(g.Key), g.Nodes)
	}
	plain := slices.DeleteFunc(slices.Clone(state.Nodes()), func(n *cluster.Node) bool { return n.Group() != nil })
	if len(plain) > 0 {
		p.section(w, "without devices", plain)
	}
	p.legend(w)
}

// assignQueueLetters gives letters to the queues that hold devices, in the order of their
// titles, and to each workload the letter of its queue. The keys of painter.letterOf are IDs of
// workloads, which contain a slash, and titles of queues, which do not.
func (p *painter) assignQueueLetters(state *cluster.State, title func(queue string) string) {
	workloads := map[string]string{} // the title of the queue, by workload
	for _, n := range state.Nodes() {
		for _, t := range n.Tasks {
			if len(t.Claims) == 0 {
				continue
			}
			name := title(t.Job.Queue)
			workloads[t.Job.ID] = name
			if !slices.Contains(p.order, name) {
				p.order = append(p.order, name)
			}
		}
	}
	if len(p.order) > len(letters) {
		p.tooMany, p.order = true, nil
		return
	}
	slices.Sort(p.order)
	for i, name := range p.order {
		p.letterOf[name] = letters[i]
	}
	for id, name := range workloads {
		p.letterOf[id] = p.letterOf[name]
	}
}
