package cluster_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/berth-project/berth/cluster"
)

// arrival returns a job with tasks that request cores.
func arrival(id int, cores int64, tasks int) cluster.JobPut {
	a := cluster.Alternative{Min: tasks}
	for i := range tasks {
		a.Tasks = append(a.Tasks, &cluster.Task{Name: fmt.Sprint(i), Shape: &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: cores}, {Name: cluster.Memory, Value: 0}}}})
	}
	return cluster.JobPut{Job: cluster.Job{ID: fmt.Sprintf("job/%d", id), Alternatives: []cluster.Alternative{a}}}
}

func apply(t *testing.T, s *cluster.State, changes ...cluster.Change) {
	t.Helper()
	if err := s.ApplyAll(changes); err != nil {
		t.Fatal(err)
	}
}

// weights returns the arrivals that count, by cores.
func weights(list []cluster.Requested) map[int64]int64 {
	out := map[int64]int64{}
	for _, r := range list {
		out[r.Resources.Of(cluster.CPU)] = r.Weight / cluster.ArrivalWeight
	}
	return out
}

func TestArrivalsAreCounted(t *testing.T) {
	s := cluster.NewState()
	for i := range 7 {
		apply(t, s, arrival(i, 1000, 1))
	}
	d := s.View().Demand()
	if d.Arrived != 7 || d.LearntAt != 0 || weights(d.Requests)[1000] != 7 {
		t.Errorf("%+v", d)
	}
	apply(t, s, arrival(7, 2000, 3), arrival(0, 1000, 1), cluster.JobGone{Job: "job/1"}) // the second is known, and the third was never placed
	if d = s.View().Demand(); d.Arrived != 10 || d.LearntAt != 10 || d.Left != 0 || weights(d.Learnt)[2000] != 3 || weights(d.Learnt)[1000] != 7 {
		t.Errorf("%+v", d)
	}
	for i := 8; i < 17; i++ {
		apply(t, s, arrival(i, 4000, 1))
	}
	if d = s.View().Demand(); d.LearntAt != 10 || weights(d.Requests)[4000] != 9 || weights(d.Learnt)[4000] != 0 {
		t.Errorf("%+v", d)
	}
	apply(t, s, arrival(17, 4000, 1))
	if d = s.View().Demand(); d.LearntAt != 20 || weights(d.Learnt)[4000] != 10 {
		t.Errorf("%+v", d)
	}
}

// TestCountDemand: the counts of a State that is made of objects do not depend on what it had before.
func TestCountDemand(t *testing.T) {
	s, fresh := cluster.NewState(), cluster.NewState()
	for i := range 12 {
		apply(t, s, arrival(i, 2000, 1))
		apply(t, fresh, arrival(11-i, int64(2000+i/11*1000), 1))
	}
	if fresh.CountDemand(); !fresh.CountsDemand() || s.CountsDemand() {
		t.Errorf("counted: %t, and with a copy made before: %t", fresh.CountsDemand(), s.CountsDemand())
	}
	mark := s.Mark()
	apply(t, s, cluster.JobGone{Job: "job/0"}, arrival(12, 3000, 1))
	before := s.View().Demand().Arrived
	s.CountDemand()
	if got, want := s.View().Demand(), fresh.View().Demand(); before != 13 || got.Arrived != 12 || !maps.Equal(weights(got.Learnt), weights(want.Learnt)) || got.LearntAt != 12 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	s.Undo(mark)
	s.Release(mark)
	if d := s.View().Demand(); d.Arrived != 12 || weights(d.Requests)[2000] != 12 || weights(d.Requests)[3000] != 0 {
		t.Errorf("undone: %+v", d)
	}
}

// TestOldArrivalsCountLess lets another request arrive until the first is forgotten.
func TestOldArrivalsCountLess(t *testing.T) {
	s := cluster.NewState()
	at := 0
	arrive := func(cores int64, n int) {
		for range n {
			at++
			apply(t, s, arrival(at, cores, 1), cluster.JobGone{Job: fmt.Sprintf("job/%d", at)})
		}
	}
	arrive(1000, 20_000)
	arrive(2000, 20_000)
	w := weights(s.View().Demand().Requests)
	if w[1000] >= 15_000 || w[2000] <= w[1000] || w[1000]+w[2000] > 32_768 {
		t.Errorf("%v", w)
	}
	arrive(2000, 480_000)
	if d := s.View().Demand(); len(d.Requests) != 1 || d.Arrived != 520_000 || len(d.Learnt) != 1 {
		t.Errorf("%d requests, %d learnt, %d arrived", len(d.Requests), len(d.Learnt), d.Arrived)
	}
}

func TestTasksThatLeft(t *testing.T) {
	s := cluster.NewState()
	apply(t, s, cluster.NodePut{Node: cluster.Node{Name: "n", Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: 8000}, {Name: cluster.Memory}}}}, arrival(1, 1000, 2))
	ref := cluster.TaskRef{Job: "job/1", Name: "0"}
	apply(t, s, cluster.TaskSeen{Task: ref, Node: "n"}, cluster.JobGone{Job: "job/1"})
	if d := s.View().Demand(); d.Left != 1 {
		t.Errorf("%+v", d)
	}
}

// TestDemandIsUndone: an undo restores what was counted, also after counts were halved.
func TestDemandIsUndone(t *testing.T) {
	s := cluster.NewState()
	for i := range 32_760 {
		apply(t, s, arrival(i, 1000, 1), cluster.JobGone{Job: fmt.Sprintf("job/%d", i)})
	}
	before := s.Digest()
	mark := s.Mark()
	for i := range 20 {
		apply(t, s, arrival(i, int64(1000+i), 2))
	}
	if s.View().Demand().Requests[0].Weight/cluster.ArrivalWeight > 17_000 {
		t.Error("the counts were not halved")
	}
	s.Undo(mark)
	s.Release(mark)
	if s.Digest() != before {
		t.Error("the undo left something")
	}
}

func TestDemandIsInSnapshots(t *testing.T) {
	s := cluster.NewState()
	for i := range 50 {
		apply(t, s, arrival(i, int64(1000*(1+i%3)), 1))
	}
	data, err := json.Marshal(s.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	var sn cluster.Snapshot
	if err := json.Unmarshal(data, &sn); err != nil {
		t.Fatal(err)
	}
	again, err := sn.State()
	if err != nil || again.Digest() != s.Digest() || s.Clone().Digest() != s.Digest() {
		t.Errorf("%v: the digests differ", err)
	}
	for name, bad := range map[string]func(*cluster.Demand){
		"negative":      func(d *cluster.Demand) { d.Arrived = -1 },
		"no weight":     func(d *cluster.Demand) { d.Requests[0].Weight = 0 },
		"too heavy":     func(d *cluster.Demand) { d.Learnt[0].Weight = 1 << 40 },
		"twice":         func(d *cluster.Demand) { d.Requests[0] = d.Requests[1] },
		"early":         func(d *cluster.Demand) { d.LearntAt = 0 },
		"bad request":   func(d *cluster.Demand) { d.Requests[0].Need.Devices = -1 },
		"from later on": func(d *cluster.Demand) { d.LearntAt = 51 },
		"too many":      func(d *cluster.Demand) { d.Learnt = make([]cluster.Requested, 10_001) },
	} {
		var sn cluster.Snapshot
		if err := json.Unmarshal(data, &sn); err != nil {
			t.Fatal(err)
		}
		bad(&sn.Demand)
		if _, err := sn.State(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestLearntIsRenewed checks that what was learnt is renewed when the requests change, and not while
// they only differ by chance.
func TestLearntIsRenewed(t *testing.T) {
	s, at := cluster.NewState(), 0
	arrive := func(n int, cores func() int64) {
		for range n {
			at++
			apply(t, s, arrival(at, cores(), 1), cluster.JobGone{Job: fmt.Sprintf("job/%d", at)})
		}
	}
	dice := rand.New(rand.NewPCG(1, 2))
	random := func() int64 { return 1000 + 1000*int64(dice.ExpFloat64()*20) }
	arrive(50_000, random)
	if at := s.View().Demand().LearntAt; at != 32_768 {
		t.Errorf("learnt at %d; the requests have not changed since 32,768 arrivals, when there were twice as many as before", at)
	}
	arrive(8192, func() int64 { return 500 })
	d := s.View().Demand()
	if d.LearntAt <= 50_000 || weights(d.Learnt)[500] == 0 {
		t.Errorf("learnt at %d, with %d of the new requests", d.LearntAt, weights(d.Learnt)[500])
	}
	last := d.LearntAt
	arrive(65_536, random)
	if d = s.View().Demand(); d.LearntAt <= last {
		t.Errorf("learnt at %d of %d, although 65,536 tasks have arrived since", d.LearntAt, d.Arrived)
	}
}
