package fairshare

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
	"github.com/berth-project/berth/internal/fairshare"
)

// After any changes of the State, the tree that is kept up to date equals a new one, and so
// do the cached keys.
func TestKeptSharesEqualNewOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.NewState()
		p := &plugin{}
		e := enginetest.Engine(p)
		settings := fairshare.Settings{Divide: rapid.SampledFrom([][]string{nil, {cluster.CPU}}).Draw(t, "divided besides")}
		decay := &settings.Decay
		if rapid.Bool().Draw(t, "past use counts") {
			*decay = fairshare.Decay{HalfLife: 10, Weight: 1000}
		}
		for step := range rapid.IntRange(1, 150).Draw(t, "steps") {
			happen(t, s, step)
			if rapid.IntRange(0, 3).Draw(t, "look") > 0 {
				continue
			}
			decay.Now = max(s.Now(), int64(step-rapid.IntRange(0, 3).Draw(t, "ago")))
			apply(t, s, cluster.SessionOpened{Now: decay.Now})
			total := fairshare.Offered(s.View())
			divided := settings.Divided(s.View())
			p.settings = settings
			ssn := e.Open(s, engine.Options{Now: decay.Now})
			want, got := fairshare.Shares(s.View(), total, settings), p.shares()
			for _, q := range s.Queues() {
				x, y := want.ByName[q.Name], got.ByName[q.Name]
				if diff := cmp.Diff(append([]fairshare.Share{}, x.Shares...), append([]fairshare.Share{}, y.Shares...)); diff != "" {
					t.Fatalf("queue %s: %s", q.Name, diff)
				}
				for _, j := range s.Pending() {
					if leaf := got.ByName[j.Queue]; leaf == nil || !slices.Contains(leaf.Branch, y) {
						continue
					}
					a, b := newKey(want, x, p.requestOf(j)), *p.orderKey(y, j)
					if a.job = j; a != b {
						t.Fatalf("queue %s has key %v with %s, want %v", q.Name, b, j.ID, a)
					}
					break // one job of each queue is enough
				}
				if name, held := unrequested(y, divided); name != "" && !jobsAbove(s) && (name != gpu || !nodesGone(s)) {
					t.Fatalf("queue %s holds %d of %s and requests less", q.Name, held, name)
				}
			}
			ssn.Close()
		}
	})
}

// unrequested returns an amount of a divided resource that the queue holds and does not
// request, as if slices counted under one name in the queues below it and under another in
// the queue. The request of a queue is bounded by the limits of the queues below.
func unrequested(q *fairshare.Queue, divided map[string]bool) (string, int64) {
	for _, a := range q.Used {
		request := int64(0)
		if sh := q.Share(a.Name); sh != nil {
			request = sh.Request
		}
		if divided[a.Name] && request < a.Value && !limited(q, a.Name) {
			return a.Name, a.Value
		}
	}
	return "", 0
}

// jobsAbove reports whether a job is in a queue that has queues below it.
func jobsAbove(s *cluster.State) bool {
	return slices.ContainsFunc(s.Jobs(), func(j *cluster.Job) bool { q := s.Queue(j.Queue); return q != nil && !q.Leaf() })
}

// nodesGone reports whether a task holds devices of a node that was removed. The fraction of
// a GPU of its slices is then not known to the queues above.
func nodesGone(s *cluster.State) bool {
	return slices.ContainsFunc(s.Jobs(), func(j *cluster.Job) bool {
		return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Node != nil && s.Node(t.Node.Name) == nil })
	})
}

// limited reports whether a queue below has a limit of a resource that slices may count as.
func limited(q *fairshare.Queue, name string) bool {
	return slices.ContainsFunc(q.Children, func(c *fairshare.Queue) bool {
		return slices.ContainsFunc(c.Limits, func(a cluster.Amount) bool {
			return a.Name == name || a.Name == cluster.PartitionResource+"1g.1gb" || a.Name == gpu
		}) || limited(c, name)
	})
}

func apply(t *rapid.T, s *cluster.State, c cluster.Change) {
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
}

// happen makes a random change of the State.
func happen(t *rapid.T, s *cluster.State, step int) {
	n := func(label string, most int) int { return rapid.IntRange(0, most).Draw(t, label) }
	switch n("what", 9) {
	case 0:
		name := fmt.Sprintf("n%d", n("node", 3))
		if s.Node(name) != nil && n("removed", 1) == 0 {
			apply(t, s, cluster.NodeGone{Name: name})
		} else if s.Node(name) == nil {
			node := &cluster.Node{Name: name, Resources: []cluster.Ledger{{Name: cluster.CPU, Capacity: int64(4 + n("cores", 4))}}}
			resource := rapid.SampledFrom([]string{cluster.DefaultDeviceResource, "example.com/npu"}).Draw(t, "resource")
			for range n("devices", 3) {
				node.Devices = append(node.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "P", Resource: resource, Memory: cluster.Bytes(1 + n("memory", 1))}})
			}
			for range n("slices", 2) {
				node.Devices = append(node.Devices, cluster.Device{DeviceSpec: &cluster.DeviceSpec{Product: "P", Profile: "1g.1gb", Memory: 1}})
			}
			apply(t, s, cluster.NodePut{Node: *node})
		}
	case 1, 2:
		q := &cluster.Queue{
			Name: fmt.Sprintf("q%d", n("queue", 5)), Weight: int64(n("weight", 3)), Weightless: n("weightless", 3) == 0, Priority: int32(n("priority", 1)), Created: int64(n("created", 2)),
			Tier: rapid.SampledFrom([]cluster.Tier{cluster.TierStandard, cluster.TierGuaranteed, cluster.TierScavenger}).Draw(t, "tier"),
		}
		if parent := fmt.Sprintf("q%d", n("parent", 5)); s.Queue(parent) != nil && n("below", 1) == 0 {
			q.Parent = parent
		}
		for _, list := range []*cluster.Resources{&q.Quota, &q.Limits} {
			for _, r := range []string{cluster.CPU, cluster.DefaultDeviceResource, cluster.PartitionResource + "1g.1gb"} {
				if n(r, 2) == 0 {
					amount := int64(n("amount", 6))
					if list == &q.Quota && n("unlimited", 4) == 0 {
						amount = cluster.Unlimited
					}
					*list = append(*list, cluster.Amount{Name: r, Value: amount})
				}
			}
		}
		if n("own weight", 2) == 0 {
			q.OverQuotaWeight = cluster.Resources{{Name: cluster.DefaultDeviceResource, Value: int64(n("weight of devices", 2))}}
		}
		for i := range n("past", 2) {
			q.Past = append(q.Past, cluster.Usage{From: int64(i), To: int64(i + 1 + n("to", 3)), Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(n("used", 9))}}})
		}
		if q.Parent != q.Name { // it may be above itself, or above jobs
			apply(t, s, cluster.QueuePut{Queue: *q})
		}
	case 3, 4, 5, 6:
		id := fmt.Sprintf("job/%d", n("job", 8))
		if s.Job(id) != nil {
			apply(t, s, cluster.JobGone{Job: id})
			return
		}
		shape := &cluster.Shape{Resources: cluster.Resources{{Name: cluster.CPU, Value: int64(1 + n("cores", 2))}}}
		if n("device", 1) == 0 {
			shape.Need = cluster.Need{Devices: 1, Memory: cluster.Bytes(n("memory", 1)), Partition: rapid.SampledFrom([]string{"", "1g.1gb"}).Draw(t, "profile")}
		}
		j := &cluster.Job{ID: id, Queue: fmt.Sprintf("q%d", n("queue", 5)), Alternatives: []cluster.Alternative{{
			Min: 1, Tasks: []*cluster.Task{{Name: "0", Shape: shape}, {Name: "1", Shape: shape}},
		}}}
		apply(t, s, cluster.JobPut{Job: *j}) // its queue may not exist, or may not be a leaf
	default:
		jobs := s.Jobs()
		if len(jobs) == 0 || len(s.Nodes()) == 0 {
			return
		}
		task := rapid.SampledFrom(rapid.SampledFrom(jobs).Draw(t, "job").Tasks()).Draw(t, "task")
		node := rapid.SampledFrom(s.Nodes()).Draw(t, "node")
		if task.Node != nil {
			apply(t, s, cluster.TaskGone{Task: task.Ref()})
		} else if claims, ok := node.Choose(task.Shape, nil); ok {
			x := s.Begin()
			_ = x.Place(task, node, claims, int64(step)) // there may be no room
			x.End()
		}
	}
}
