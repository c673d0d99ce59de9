package engine_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// labelled compares queues by the label "bid" of their jobs. If step is positive, the bid
// also grows with what the queue uses.
func labelled(step int) *policy {
	bid := func(b engine.Bid) int {
		n, _ := strconv.Atoi(b.Job.Labels["bid"])
		if step > 0 {
			n += int(b.Queue.Used.Of(cluster.DefaultDeviceResource)/1000) / step * 3
		}
		return n
	}
	used := map[string]int64{} // by queue, at the last call of changes
	return &policy{name: "Labelled", open: func(s *engine.Session) {
		s.Hooks.AddSiblingOrder(func(l, r engine.Bid) int { return bid(l) - bid(r) })
		s.Hooks.AddFrozenOrder(func(l engine.Bid) func(engine.Bid) int {
			frozen := bid(l)
			return func(r engine.Bid) int { return frozen - bid(r) }
		})
		s.Hooks.AddBidChanges(func() (changed []*cluster.Queue, all bool) {
			for _, q := range s.View.Queues() {
				if now := q.Used.Of(cluster.DefaultDeviceResource); now != used[q.Name] {
					used[q.Name] = now
					changed = append(changed, q)
				}
			}
			return changed, false
		})
		s.Hooks.AddJobPriority(func(l, r *cluster.Job) int { return int(r.Priority - l.Priority) })
		s.Hooks.AddJobOrder(func(l, r *cluster.Job) int { return int(l.Created - r.Created) })
	}}
}

// labelledEvictor evicts preemptible tasks, one after the other, for jobs with the label
// "evicts".
func labelledEvictor(t rapid.TB) *policy {
	return &policy{name: "Evictor", open: func(s *engine.Session) {
		s.Hooks.AddAdapter(func(stmt *engine.Statement, job *cluster.Job, r *engine.Refusal) *engine.Refusal {
			if job.Labels["evicts"] == "" {
				return r
			}
			for _, n := range s.View.Nodes() {
				for _, task := range n.Tasks {
					if !task.Job.Preemptible || !task.Runs() || task.Job == job {
						continue
					}
					if err := stmt.Evict(task, job.ID, "MadeRoom"); err != nil {
						t.Fatal(err)
					}
					if s.Place(stmt, job) == nil {
						return nil
					}
				}
			}
			return r
		})
	}}
}

// outcome runs a patient session and returns what it tried and decided, as text.
func outcome(t rapid.TB, e *engine.Engine, s *cluster.State, now int64, search engine.Search) []string {
	ssn := e.Open(s, engine.Options{Now: now, Patient: true, Search: search})
	defer ssn.Close()
	out, err := ssn.Run()
	if err != nil {
		t.Fatal(err)
	}
	told := []string{fmt.Sprint("tried ", out.Tried)}
	for _, d := range out.Decisions {
		told = append(told, fmt.Sprintf("%v %s on %s", d.Action, d.Task.ID(), d.Node))
	}
	return told
}

// TestElections: patient sessions with elections try and decide the same as those that give
// every parked job its turn, whatever is evicted meanwhile.
func TestElections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := []enginetest.Part{enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Node("b").GPUs(8, "A100", "80Gi"), enginetest.Node("c").GPUs(3, "A100", "80Gi"), enginetest.Node("d").GPUs(8, "A100", "80Gi")}
		step := rapid.SampledFrom([]int{0, 0, 1, 3}).Draw(t, "step")
		searches := []engine.Search{engine.Twin, engine.Indexed}
		var states []*cluster.State
		var engines []*engine.Engine
		for range searches {
			states, engines = append(states, enginetest.State(nodes...)), append(engines, enginetest.Engine(labelled(step), fit(), labelledEvictor(t)))
		}
		put := func(c cluster.Change) {
			for _, s := range states {
				if err := s.Apply(c); err != nil {
					t.Fatal(err)
				}
			}
		}
		queues, nested := rapid.IntRange(3, 7).Draw(t, "queues"), rapid.IntRange(0, 3).Draw(t, "nested") == 0
		if nested {
			put(cluster.QueuePut{Queue: cluster.Queue{Name: "p"}})
		}
		for i := range queues {
			q := cluster.Queue{Name: fmt.Sprintf("q%d", i)}
			if nested && i > 0 && i < 3 {
				q.Parent = "p"
			}
			put(cluster.QueuePut{Queue: q})
		}
		arrived, now := 0, int64(second)
		for round := range rapid.IntRange(2, 8).Draw(t, "rounds") {
			for range rapid.IntRange(0, 14).Draw(t, "jobs") {
				j := enginetest.Job(fmt.Sprintf("j%03d", arrived)).Queue(fmt.Sprintf("q%d", rapid.IntRange(0, queues-1).Draw(t, "queue"))).
					Devices(rapid.SampledFrom([]int{1, 1, 2, 4, 8}).Draw(t, "devices")).Created(int64(rapid.IntRange(0, 20).Draw(t, "created"))).
					Label("bid", strconv.Itoa(rapid.IntRange(0, 12).Draw(t, "bid"))).
					Priority(int32(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "priority")))
				if rapid.IntRange(0, 2).Draw(t, "evicts") == 0 {
					j.Label("evicts", "yes")
				}
				if rapid.Bool().Draw(t, "preemptible") {
					j.Preemptible()
				}
				if rapid.IntRange(0, 4).Draw(t, "elastic") == 0 {
					j.Gang(3).Min(rapid.IntRange(1, 2).Draw(t, "min"))
				}
				arrived++
				put(cluster.JobPut{Job: *j.Build()})
			}
			for _, j := range states[0].Jobs() {
				if j.Running() && rapid.IntRange(0, 3).Draw(t, "ends") == 0 {
					put(cluster.JobGone{Job: j.ID})
				}
			}
			now += int64(rapid.SampledFrom([]int{1, 1, 1, 300_000_000}).Draw(t, "pace"))
			want, got := outcome(t, engines[0], states[0], now, searches[0]), outcome(t, engines[1], states[1], now, searches[1])
			if d := cmp.Diff(want, got); d != "" {
				t.Fatalf("round %d (-turns +election):\n%s", round, d)
			}
			for _, task := range states[0].View().Releasing() {
				if rapid.Bool().Draw(t, "leaves") {
					put(cluster.JobGone{Job: task.Job.ID})
				}
			}
		}
	})
}

// TestElectionsLookIntoLanes: the decisions do not depend on which lanes an election
// examined, nor on the guards of lanes. In the last session z2 is placed on the only free
// device, then the victim is evicted for n1, and m1 has its turn after that.
func TestElectionsLookIntoLanes(t *testing.T) {
	job := func(name string, devices, bid int) *enginetest.JobBuilder {
		return enginetest.Job(name).Queue(name[:1]).Devices(devices).Label("bid", strconv.Itoa(bid))
	}
	want := []string{"tried [job/z2 job/n1 job/m1]", "Bind job/z2/worker-0 on a", "Evict job/victim/worker-0 on b", "Nominate job/n1/worker-0 on b", "Nominate job/m1/worker-0 on b"}
	for range 30 { // the order of maps differs from run to run
		for _, search := range []engine.Search{engine.Indexed, engine.Twin} {
			s := enginetest.State(enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Node("b").GPUs(8, "A100", "80Gi"))
			for _, name := range []string{"b", "k", "m", "n", "v", "z"} {
				apply(t, s, cluster.QueuePut{Queue: cluster.Queue{Name: name}})
			}
			e := enginetest.Engine(labelled(0), fit(), labelledEvictor(t))
			apply(t, s, jobPut(job("busy", 1, 0)), jobPut(job("victim", 8, 1).Preemptible()))
			outcome(t, e, s, second, search)
			apply(t, s, jobPut(job("k1", 1, 40)), jobPut(job("m0", 8, 5).Created(1)), jobPut(job("mx", 8, 80).Created(2)), jobPut(job("my", 8, 45).Created(2)), jobPut(job("m1", 1, 30).Created(3)),
				jobPut(job("z1", 1, 10).Created(1)), jobPut(job("z2", 1, 10).Created(2)))
			outcome(t, e, s, second+1, search)
			apply(t, s, jobGone("job/busy"))
			outcome(t, e, s, second+2, search)
			apply(t, s, jobGone("job/z1"), jobGone("job/k1"), jobPut(job("n1", 4, 50).Label("evicts", "yes")))
			if d := cmp.Diff(want, outcome(t, e, s, second+3, search)); d != "" {
				t.Fatalf("search %d (-want +got):\n%s", search, d)
			}
		}
	}
}

// TestFrozenOrderNeedsAnOrder: AddFrozenOrder without AddSiblingOrder fails the session.
func TestFrozenOrderNeedsAnOrder(t *testing.T) {
	e := enginetest.Engine(&policy{name: "Frozen", open: func(s *engine.Session) {
		s.Hooks.AddFrozenOrder(func(engine.Bid) func(engine.Bid) int { return nil })
	}})
	if _, err := e.Open(enginetest.State(), engine.Options{}).Run(); err == nil {
		t.Error("no error")
	}
}

// TestKeptOrderComparesFewQueues checks that a session in which room for one job becomes free
// compares only a few of many queues, if the plugin says which bids have changed, and that it
// tries the same job as without that.
func TestKeptOrderComparesFewQueues(t *testing.T) {
	const queues = 200
	run := func(kept bool) (compared int, placed []string) {
		p := &policy{name: "Counting", open: func(s *engine.Session) {
			bid := func(b engine.Bid) int {
				compared++
				n, _ := strconv.Atoi(b.Job.Labels["bid"])
				return n
			}
			s.Hooks.AddSiblingOrder(func(l, r engine.Bid) int { return bid(l) - bid(r) })
			s.Hooks.AddFrozenOrder(func(l engine.Bid) func(engine.Bid) int {
				return func(r engine.Bid) int { return bid(l) - bid(r) }
			})
			if kept {
				s.Hooks.AddBidChanges(func() ([]*cluster.Queue, bool) { return nil, false })
			}
		}}
		parts := []enginetest.Part{enginetest.Node("a").GPUs(1, "A100", "80Gi"), enginetest.Queue("busy"), enginetest.Job("busy").Queue("busy").Devices(1).On("a")}
		for i := range queues {
			q := fmt.Sprintf("q%03d", i)
			parts = append(parts, enginetest.Queue(q), enginetest.Job("j"+q).Queue(q).Devices(1).Label("bid", strconv.Itoa(i*7919%queues)))
		}
		s, e := enginetest.State(parts...), enginetest.Engine(p, fit())
		outcome(t, e, s, second, engine.Indexed)
		gone := "job/busy"
		for i := range 6 {
			compared = 0
			apply(t, s, jobGone(gone))
			got := outcome(t, e, s, second+int64(i)+1, engine.Indexed)
			placed = append(placed, got...)
			gone = strings.TrimSuffix(strings.Fields(got[1])[1], "/worker-0")
		}
		return compared, placed
	}
	all, want := run(false)
	few, got := run(true)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("other decisions (-all compared +order kept):\n%s", d)
	}
	if all < queues || few > queues/4 {
		t.Errorf("%d bids read with the kept order and %d without it", few, all)
	}
}
