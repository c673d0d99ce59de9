package engine_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// selfish applies the affinity of a job to its own tasks: all of them must be in one domain
// or, for anti-affinity, no two of them.
func selfish() *policy {
	return &policy{name: "Selfish", open: func(s *engine.Session) {
		s.Hooks.AddTaskFilter(func(_ *cluster.Task, j *cluster.Job) bool { return len(j.Affinity) > 0 },
			func(_ *cluster.Task, j *cluster.Job, n *cluster.Node) *engine.Rejection {
				term := j.Affinity[0]
				here, _ := n.Domain(term.Within)
				for _, o := range j.Tasks() {
					if !o.Placed() {
						continue
					}
					if there, _ := o.Node.Domain(term.Within); (here == there) == term.Anti {
						return &engine.Rejection{Reason: "Selfish", Cure: engine.Wait}
					}
				}
				return nil
			})
	}}
}

// TestExactSearch: if there is an arrangement that has room for the minimum, the search finds
// one. The oracle tries all arrangements to find out whether there is one.
func TestExactSearch(t *testing.T) {
	fits, not := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		roll := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "roll") }
		parts, job := tinyCluster(roll), tinyGang(roll)
		s := enginetest.State(parts...)
		apply(rt, s, cluster.JobPut{Job: *job})
		job = s.Job(job.ID)
		if tasks := job.Alternatives[0].Tasks; roll(4) == 3 { // one runs already
			n := s.Nodes()[roll(len(s.Nodes()))]
			if _, ok := n.Choose(tasks[0].Shape, nil); ok && n.Room(tasks[0].Shape) > 0 {
				apply(rt, s, runsOn(tasks[0], n))
			}
		}
		possible := newOracle(s, job).place(0)
		var first []engine.Decision
		for _, search := range []engine.Search{engine.Twin, engine.Indexed, engine.Scan} {
			ssn := enginetest.Engine(fit(), selfish()).Open(s, engine.Options{Search: search})
			stmt := ssn.Begin()
			r := ssn.Place(stmt, job)
			placed := job.HasMinimum()
			var got []engine.Decision
			for _, task := range job.Tasks() {
				if task.Node != nil {
					got = append(got, engine.Decision{Task: task.Ref(), Node: task.Node.Name, Claims: task.Claims})
				}
			}
			stmt.Discard()
			if first == nil {
				first = got
			} else if !reflect.DeepEqual(first, got) {
				rt.Fatalf("search %d decides differently:\n%v\n%v", search, first, got)
			}
			if (r == nil || r.Surplus) != placed {
				rt.Fatalf("refused: %v, but the minimum is placed: %v", r, placed)
			}
			if placed && !possible {
				rt.Fatalf("placed, although no arrangement fits:\n%s", picture(s, job))
			}
			if possible && !placed {
				rt.Fatalf("search %d found nothing, although an arrangement fits:\n%s", search, picture(s, job))
			}
		}
		if possible {
			fits++
		} else {
			not++
		}
	})
	t.Logf("%d gangs fit, and all were placed; %d did not fit", fits, not)
	if fits == 0 || not == 0 {
		t.Errorf("the samples do not cover both cases: %d fit, %d did not", fits, not)
	}
}

// tinyCluster returns up to four nodes of up to two devices, some of them held in part.
func tinyCluster(roll func(int) int) []enginetest.Part {
	var parts []enginetest.Part
	nodes := 1 + roll(4)
	for i := range nodes {
		n := enginetest.Node(fmt.Sprint("n", i)).CPU(8, "64Gi").GPUs(1+roll(2), "A100", "80Gi")
		if roll(6) > 0 {
			n.Label("rack", fmt.Sprint("r", roll(2)))
		}
		parts = append(parts, n)
	}
	for i := range roll(3) {
		parts = append(parts, enginetest.Job(fmt.Sprint("held", i)).Share(1, []cluster.Milli{300, 500}[roll(2)]).On(fmt.Sprint("n", roll(nodes))))
	}
	return parts
}

// tinyGang returns a job with up to five tasks of up to two shapes.
func tinyGang(roll func(int) int) *cluster.Job {
	shapes := [2]cluster.Shape{}
	for i := range shapes {
		s := &shapes[i]
		s.Resources = cluster.Resources{{Name: cluster.CPU, Value: int64(roll(3)) * 2000}, {Name: cluster.Memory}}
		s.Need.Devices = 1
		switch roll(6) {
		case 0, 1, 2:
			s.Need.Share = []cluster.Milli{300, 500, 700}[roll(3)]
		case 3:
			s.Need = cluster.Need{Devices: 2, Share: 500}
		case 4:
			s.Need.Devices = 1 + roll(2)
		}
		if roll(6) == 5 {
			s.Isolation.GPU = cluster.GPUDeviceExclusive
		}
	}
	topology := func(often int) (t cluster.Topology) {
		if roll(often) == often-1 {
			t.Required = "rack"
		}
		if roll(often) == 0 {
			t.Preferred = []string{"rack"}
		}
		return t
	}
	count := 2 + roll(4)
	alt := cluster.Alternative{Min: 1 + roll(count), Topology: topology(5)}
	members := [2]int{}
	if roll(3) == 2 {
		alt.Subgroups = make([]cluster.Subgroup, 2)
	}
	for i := range count {
		shape := shapes[roll(2)]
		task := &cluster.Task{Name: fmt.Sprint("t", i), Index: i, Shape: &shape}
		if alt.Subgroups != nil {
			if task.Subgroup = roll(3); task.Subgroup > 0 {
				members[task.Subgroup-1]++
			}
		}
		alt.Tasks = append(alt.Tasks, task)
	}
	for i := range alt.Subgroups {
		alt.Subgroups[i] = cluster.Subgroup{Name: fmt.Sprint("g", i), Min: roll(members[i] + 1), Topology: topology(4)}
	}
	j := &cluster.Job{ID: "job/tiny", JobDetails: &cluster.JobDetails{}, Alternatives: []cluster.Alternative{alt}}
	if roll(4) == 3 {
		j.Affinity = []cluster.JobTerm{{Anti: roll(2) == 0, Within: []string{"", "rack"}[roll(2)]}}
	}
	return j
}

// picture describes the nodes and the job, for failure messages.
func picture(s *cluster.State, j *cluster.Job) string {
	text := ""
	for _, n := range s.Nodes() {
		text += fmt.Sprintf("%s %v cpu %d:", n.Name, n.Labels, n.Ledger(cluster.CPU).Free())
		for i := range n.Devices {
			text += fmt.Sprintf(" %d", n.Devices[i].FreeMilli())
		}
		text += "\n"
	}
	alt := &j.Alternatives[0]
	text += fmt.Sprintf("min %d, subgroups %+v, topology %+v, affinity %+v\n", alt.Min, alt.Subgroups, alt.Topology, j.Affinity)
	for _, t := range alt.Tasks {
		text += fmt.Sprintf("%s in %d: cpu %d, %+v %s\n", t.Name, t.Subgroup, t.Shape.Resources.Of(cluster.CPU), t.Shape.Need, t.Shape.Isolation.GPU)
	}
	return text
}

// TestExactSearchIsBounded: a gang for which the search runs out of steps is refused, and the
// refusal is not permanent.
func TestExactSearchIsBounded(t *testing.T) {
	const nodes = 60
	allocations := 0
	counting := &policy{name: "Counting", open: func(s *engine.Session) {
		s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: func(*engine.Event) { allocations++ }})
	}}
	// A node with eight devices has room for one task of five or two of four, so 69 nodes would be needed.
	var devices []int
	for range 46 {
		devices = append(devices, 5, 4)
	}
	s := add(t, with(manyNodes(nodes)), mixedGang(len(devices), devices...))
	r := run(t, enginetest.Engine(fit(), counting), s).Refusals[0]
	if r.Permanent || r.Surplus {
		t.Errorf("permanent %v, surplus %v", r.Permanent, r.Surplus)
	}
	if allocations < 100 || allocations > 6000 {
		t.Errorf("%d allocations were tried", allocations)
	}
	// With fewer nodes than the sums require, no search is made.
	allocations = 0
	s = add(t, with(manyNodes(45)), mixedGang(len(devices), devices...))
	if r := run(t, enginetest.Engine(fit(), counting), s).Refusals[0]; !r.Permanent || allocations > len(devices) {
		t.Errorf("permanent %v, %d allocations were tried", r.Permanent, allocations)
	}
}

// TestLeaderIsPlacedElsewhere: the leader is placed first, on the only node that is large
// enough for its worker. The exact search places it on the other node.
func TestLeaderIsPlacedElsewhere(t *testing.T) {
	s := add(t, enginetest.State(enginetest.Node("a").GPUs(2, "A", "8Gi"), enginetest.Node("b").GPUs(1, "A", "8Gi")),
		teams(2, cluster.Topology{}, team{name: "leader", tasks: 1, least: 1, devices: 1}, team{name: "worker", tasks: 1, least: 1, devices: 2}))
	out := run(t, enginetest.Engine(leaders(), fit()), s)
	if diff := cmp.Diff(map[string]string{"job/t/leader-0": "b", "job/t/worker-0": "a"}, where(out)); diff != "" {
		t.Error(diff)
	}
	if len(out.Decisions[0].Score.Parts) != 0 || out.Decisions[0].Action != engine.Bind {
		t.Errorf("%+v", out.Decisions[0])
	}
}

// TestExactSearchesShareSteps: the steps of all searches of a session together are bounded.
func TestExactSearchesShareSteps(t *testing.T) {
	allocations := 0
	counting := &policy{name: "Counting", open: func(s *engine.Session) {
		s.Hooks.AddEventHandler(engine.EventHandler{AllocateFunc: func(*engine.Event) { allocations++ }})
	}}
	var devices []int
	for range 9 {
		devices = append(devices, 5, 4)
	}
	s := with(manyNodes(13)) // fourteen nodes would be needed
	for i := range 40 {
		j := mixedGang(len(devices), devices...)
		j.ID, j.Priority = fmt.Sprintf("job/%02d", i), int32(i) // so that no two jobs share a refusal
		add(t, s, j)
	}
	if out := run(t, enginetest.Engine(fit(), counting), s); len(out.Decisions) != 0 || len(out.Refusals) != 40 {
		t.Fatalf("%d decisions, %d refusals", len(out.Decisions), len(out.Refusals))
	}
	if greedy := 40 * len(devices); allocations < 5000 || allocations > 50_000+greedy {
		t.Errorf("%d allocations were tried", allocations)
	}
}
