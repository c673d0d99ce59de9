package explain

import (
	"fmt"
	"slices"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/numeral"
)

// shrink tries smaller requests, each along one line, and keeps the largest that fits.
func (l *lab) shrink(found *finder) {
	s := l.shape()
	keep := func(n int, at func(int) *change) {
		if n == 0 || l.spent() {
			return
		}
		if c, v := l.largest(n, at); c != nil {
			found.yes(c)
		} else {
			found.no(at(0), v)
		}
	}
	if s.Served() {
		return // what it asks of devices follows from what it is: see turn
	}
	keep(l.fewerMembers())
	if s.Need.Devices > 1 && !s.Need.WholeNode {
		keep(l.fewerDevices())
	}
	if s.Need.Memory > 0 {
		keep(l.lessDeviceMemory())
	}
	if s.Need.Share > 0 {
		keep(l.smallerShare())
	}
	for _, r := range s.Resources {
		if r.Value > 0 && r.Name != podSlots {
			keep(l.less(r.Name))
		}
	}
}

// lost is the price of giving up part of the request: the part, in percent.
func lost(want, get int64) int {
	return 20 + int(cluster.MulDiv(want-get, 100, max(want, 1)))
}

// fewerMembers lowers the minimum; of whole nodes, which are all or nothing, the replicas.
func (l *lab) fewerMembers() (int, func(int) *change) {
	a := l.alternative()
	alt := &l.job().Alternatives[a]
	if whole := alt.Whole; whole != nil {
		per := max(1, whole.NodesPerReplica)
		return whole.Replicas - 1, func(i int) *change {
			return &change{SmallerAsk, fmt.Sprintf("with %s", numeral.Count(i+1, "replica")), lost(int64(whole.Replicas), int64(i+1)), l.form(a, func(alt *cluster.Alternative) {
				fewer := *alt.Whole
				fewer.Replicas = i + 1
				alt.Whole = &fewer
				alt.Tasks = alt.Tasks[:min(len(alt.Tasks), (i+1)*per)]
				alt.Min = min(alt.Min, len(alt.Tasks))
			})}
		}
	}
	if l.refusal.Surplus {
		return 0, nil // the minimum is met already
	}
	least, whose := alt.Min, ""
	if sub := l.short(); sub >= 0 {
		least, whose = alt.Subgroups[sub].Min, " for "+alt.Subgroups[sub].Name
	}
	return least - 1, func(i int) *change {
		return &change{SmallerAsk, fmt.Sprintf("with minMember %d%s", i+1, whose), lost(int64(least), int64(i+1)), l.atLeast(i + 1)}
	}
}

// form edits one alternative of the job.
func (l *lab) form(a int, edit func(*cluster.Alternative)) func(*cluster.State) error {
	return func(s *cluster.State) error {
		return rewrite(s, l.id, func(j *cluster.Job) { edit(&j.Alternatives[a]) })
	}
}

func (l *lab) fewerDevices() (int, func(int) *change) {
	want := l.shape().Need.Devices
	each := ""
	if l.missing() > 1 {
		each = " per task"
	}
	return want - 1, func(i int) *change {
		return &change{SmallerAsk, fmt.Sprintf("with %s%s", numeral.Count(i+1, "device"), each), lost(int64(want), int64(i+1)), l.reshape(func(s *cluster.Shape) {
			s.Need.Devices = i + 1
		})}
	}
}

// lessDeviceMemory goes through what devices have free: only there can the answer change.
func (l *lab) lessDeviceMemory() (int, func(int) *change) {
	want := l.shape().Need.Memory
	var room []int64
	for _, n := range l.end.Nodes() {
		for i := range n.Devices {
			room = append(room, int64(n.Devices[i].InStep())>>20<<20)
		}
	}
	room = below(room, int64(want))
	return len(room), func(i int) *change {
		return &change{SmallerAsk, fmt.Sprintf("with %s per device instead of %s", Memory(cluster.Bytes(room[i])), Memory(want)), lost(int64(want), room[i]), l.reshape(func(s *cluster.Shape) {
			s.Need.Memory = cluster.Bytes(room[i])
		})}
	}
}

func (l *lab) smallerShare() (int, func(int) *change) {
	want := l.shape().Need.Share
	var room []int64
	for _, n := range l.end.Nodes() {
		for i := range n.Devices {
			room = append(room, int64(n.Devices[i].FreeMilli()))
		}
	}
	room = below(room, int64(want))
	return len(room), func(i int) *change {
		return &change{SmallerAsk, fmt.Sprintf("with a share of %s per device instead of %s", share(room[i]), share(int64(want))), lost(int64(want), room[i]), l.reshape(func(s *cluster.Shape) {
			s.Need.Share = cluster.Milli(room[i])
		})}
	}
}

func share(milli int64) string { return decimal(float64(milli)/1000, 3) }

// less goes through what nodes have free of the resource.
func (l *lab) less(name string) (int, func(int) *change) {
	want := l.shape().Resources.Of(name)
	room := []int64{}
	for _, n := range l.end.Nodes() {
		if led := n.Ledger(name); led != nil {
			free := led.Free()
			if name == cluster.Memory {
				free = free >> 20 << 20
			}
			room = append(room, free)
		}
	}
	room = below(room, want)
	return len(room), func(i int) *change {
		return &change{SmallerAsk, fmt.Sprintf("with %s instead of %s", resourceText(name, room[i]), resourceText(name, want)), lost(want, room[i]), l.reshape(func(s *cluster.Shape) {
			s.Resources = s.Resources.With(name, room[i])
		})}
	}
}

// below are the distinct values above 0 and below the bound, in order.
func below(values []int64, bound int64) []int64 {
	slices.Sort(values)
	values = slices.Compact(values)
	return slices.DeleteFunc(values, func(v int64) bool { return v <= 0 || v >= bound })
}
