package bench

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/plugins/fairshare"
	"github.com/berth-project/berth/plugins/standard"
)

// BenchmarkLive measures a patient session after one change, in a scheduler that has
// been running: every device is held, and the given number of jobs is parked in a
// thousand queues. Open, Run and Close are timed together; the change itself is not.
//
//	ends     a running job ends, and a parked job is placed on its device
//	arrives  a job arrives, and cannot be placed
//	node     the labels of a node change
//
// With room, the running jobs are preemptible, so that each refused job causes a search
// for victims.
//
//	preempts  a job of higher priority arrives, and a job of its queue is evicted
//
// The kind mix uses one of these changes at random for each session.
func BenchmarkLive(b *testing.B) {
	for _, room := range []bool{false, true} {
		for _, size := range [][2]int{{1_000, 1_000}, {100_000, 100_000}} {
			for _, change := range []string{"ends", "arrives", "node", "preempts", "mix"} {
				if change == "preempts" && !room {
					continue
				}
				b.Run(fmt.Sprintf("room=%t/nodes=%d/parked=%d/%s", room, size[0], size[1], change), func(b *testing.B) {
					newLive(b, size[0], size[1], room, false).measure(b, change)
				})
			}
		}
	}
}

// BenchmarkLivePast is BenchmarkLive with past use that counts. Each of the thousand
// queues reports 64 intervals, and a second passes before each session, so that all
// shares change.
func BenchmarkLivePast(b *testing.B) {
	for _, size := range [][2]int{{1_000, 1_000}, {100_000, 100_000}} {
		for _, change := range []string{"ends", "arrives", "node"} {
			b.Run(fmt.Sprintf("nodes=%d/parked=%d/%s", size[0], size[1], change), func(b *testing.B) {
				newLive(b, size[0], size[1], false, true).measure(b, change)
			})
		}
	}
}

// measure times one session after each change.
func (l *live) measure(b *testing.B, change string) {
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range took {
		drawn := change
		if change == "mix" {
			drawn = l.draw()
		}
		l.change(b, drawn)
		took[i] = l.session(b)
		l.restore(b, drawn)
	}
	b.StopTimer()
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Nanoseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-µs")
	b.ReportMetric(at(0.99), "p99-µs")
	b.ReportMetric(at(1), "max-µs")
	b.ReportMetric(float64(l.tried)/float64(b.N), "tried/session")
	b.ReportMetric(float64(l.decided)/float64(b.N), "decisions/session")
}

// draw returns a random kind of change.
func (l *live) draw() string {
	kinds := []string{"ends", "arrives", "node", "preempts"}
	if !l.room {
		kinds = kinds[:3]
	}
	return kinds[l.dice.IntN(len(kinds))]
}

const liveQueues = 1000

// live is a scheduler that keeps one State and one Engine.
type live struct {
	engine  *engine.Engine
	state   *cluster.State
	dice    *rand.Rand
	room    bool
	past    bool           // past use counts, and time passes
	running []string       // the IDs of the jobs that hold devices
	place   map[string]int // of a job in running
	arrived int
	now     int64
	kinds   map[string]int // by the ID of the job
	last    string         // the job that was bound last
	evicted []string       // in the last session
	tried   int
	decided int
}

// lives has a scheduler for each size. They are kept because building one takes longer
// than measuring it.
var lives = map[string]*live{}

func newLive(b *testing.B, nodes, parked int, room, past bool) *live {
	b.Helper()
	key := fmt.Sprint(nodes, parked, room, past)
	l := lives[key]
	if l == nil {
		clear(lives)
		l = &live{engine: standardEngine(b), state: cluster.NewState(), dice: rand.New(rand.NewPCG(1, 2)), room: room, past: past, now: 1, kinds: map[string]int{}, place: map[string]int{}}
		if past {
			l.engine, l.now = pastUseEngine(b), 64*int64(time.Hour)
		}
		must(b, l.state.ApplyAll(Nodes(nodes)))
		for q := range liveQueues {
			must(b, l.state.Apply(cluster.QueuePut{Queue: cluster.Queue{Name: fmt.Sprintf("q-%04d", q), Past: l.reported()}}))
		}
		for _, n := range l.state.Nodes() {
			for range n.Devices {
				j := l.job(0, room)
				l.put(b, j)
				claims, ok := n.Choose(j.Tasks()[0].Shape, nil)
				if !ok {
					b.Fatal("no room")
				}
				must(b, l.state.Apply(cluster.SeenOn(l.state.Job(j.ID).Tasks()[0], n, claims, 0)))
				l.started(j.ID)
			}
		}
		for range parked {
			l.put(b, l.job(l.dice.IntN(10), room))
		}
		l.session(b)
		lives[key] = l
	}
	l.tried, l.decided = 0, 0
	return l
}

// reported returns the use of a queue in the last 64 hours, if past use counts.
func (l *live) reported() []cluster.Usage {
	if !l.past {
		return nil
	}
	out := make([]cluster.Usage, 64)
	for i := range out {
		from := int64(i) * int64(time.Hour)
		devices := int64(l.dice.IntN(1000)) * int64(cluster.Whole)
		out[i] = cluster.Usage{From: from, To: from + int64(time.Hour), Resources: cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: devices}}}
	}
	return out
}

// pastUseEngine returns an engine with the standard profile, in which past use counts
// half after a day.
func pastUseEngine(b *testing.B) *engine.Engine {
	p := standard.Profile()
	for i := range p {
		if p[i].Name == fairshare.Name {
			p[i].Arguments = enginetest.Arguments(`{"halfLife": "24h"}`)
		}
	}
	e, err := engine.New(standard.Registry(), p)
	must(b, err)
	return e
}

func (l *live) put(b *testing.B, j cluster.Job) { must(b, l.state.Apply(cluster.JobPut{Job: j})) }

// job returns the next job. It requests one device, or has one of nine larger shapes.
func (l *live) job(kind int, preemptible bool) cluster.Job {
	devices := []int{1, 1, 1, 1, 2, 2, 2, 4, 4, 8}[kind]
	shape := cluster.Shape{
		Resources:   cluster.Resources{{Name: cluster.CPU, Value: int64(devices)*4000 + int64(kind)}, {Name: cluster.Memory, Value: int64(devices) * 16 << 30}},
		Need:        cluster.Need{Devices: devices},
		Preemptible: preemptible,
	}
	j := Job(l.arrived, shape)
	j.Queue = fmt.Sprintf("q-%04d", l.arrived%liveQueues)
	l.arrived++
	l.kinds[j.ID] = kind
	return j
}

func (l *live) change(b *testing.B, what string) {
	switch what {
	case "ends":
		l.end(b, l.running[l.dice.IntN(len(l.running))])
	case "arrives":
		l.put(b, l.job(l.dice.IntN(10), l.room))
	case "preempts":
		j := l.job(0, l.room)
		j.Priority = 1
		l.put(b, j)
	case "node":
		nodes := l.state.Nodes()
		n := *nodes[l.dice.IntN(len(nodes))]
		n.Labels = maps.Clone(n.Labels)
		n.Labels["turn"] = fmt.Sprint(l.dice.Uint32())
		must(b, l.state.Apply(cluster.NodePut{Node: n}))
	}
}

// started records that a job holds devices.
func (l *live) started(id string) {
	l.place[id] = len(l.running)
	l.running = append(l.running, id)
}

// end removes a job that holds devices. It does not read the whole list of running jobs:
// that would empty the processor's caches between two sessions.
func (l *live) end(b *testing.B, id string) {
	must(b, l.state.Apply(cluster.JobGone{Job: id}))
	last := l.running[len(l.running)-1]
	l.running[l.place[id]] = last
	l.place[last] = l.place[id]
	delete(l.place, id)
	l.running = l.running[:len(l.running)-1]
}

// restore undoes the effects of a session: evicted tasks stop, and jobs are added until
// as many are parked as before, of the same kinds.
func (l *live) restore(b *testing.B, what string) {
	if what == "ends" {
		l.put(b, l.job(l.kinds[l.last], l.room))
		l.session(b)
	}
	for len(l.evicted) > 0 {
		for _, id := range l.evicted {
			l.end(b, id)
		}
		l.session(b)
	}
}

func (l *live) session(b *testing.B) time.Duration {
	if l.past {
		l.now += int64(time.Second)
	}
	begin := time.Now()
	s := l.engine.Open(l.state, engine.Options{Now: l.now, Patient: true})
	out, err := s.Run()
	s.Close()
	took := time.Since(begin)
	must(b, err)
	l.tried += len(out.Tried)
	l.evicted = l.evicted[:0]
	for i := range out.Decisions {
		switch d := &out.Decisions[i]; d.Action {
		case engine.Bind:
			l.decided++
			l.last = d.Task.Job
			l.started(d.Task.Job)
		case engine.EvictTask:
			l.evicted = append(l.evicted, d.Task.Job)
		}
	}
	return took
}
