package cluster_test

import (
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/enginetest"
	"github.com/google/go-cmp/cmp"
)

const (
	gpu  = cluster.DefaultDeviceResource
	h100 = gpu + ":H100"
	l4   = gpu + ":L4"
)

// deviceUse returns what the queues use of devices, and how much of it is firm.
func deviceUse(s *cluster.State) map[string]cluster.Resources {
	out := map[string]cluster.Resources{}
	for _, q := range s.Queues() {
		for what, list := range map[string]cluster.Resources{"": q.Used, " firm": q.UsedByFirm} {
			for _, a := range list {
				if a.Name != cluster.CPU && a.Name != cluster.Memory {
					out[q.Name+what] = append(out[q.Name+what], a)
				}
			}
		}
	}
	return out
}

// TestUseByProduct: use is counted by product if a queue has terms for the product. The
// queue team, below org, holds two H100, one of them firm, and half an L4, which is firm.
func TestUseByProduct(t *testing.T) {
	figures := map[string]struct{ used, firm int64 }{h100: {2000, 1000}, l4: {500, 500}}
	all := func(products ...string) map[string]cluster.Resources {
		used, firm := cluster.Resources{{Name: gpu, Value: 2500}}, cluster.Resources{{Name: gpu, Value: 1500}}
		for _, name := range products {
			used, firm = used.With(name, figures[name].used), firm.With(name, figures[name].firm)
		}
		return map[string]cluster.Resources{"org": used, "org firm": firm, "team": used, "team firm": firm}
	}
	set := func(change func(*cluster.Queue)) func(*cluster.State) error {
		return func(s *cluster.State) error {
			q := *s.Queue("org")
			change(&q)
			return s.SetQueue(&q)
		}
	}
	limit := func(name string) func(*cluster.State) error {
		return set(func(q *cluster.Queue) { q.Limits = q.Limits.With(name, 9000) })
	}
	tests := map[string]struct {
		changes []func(*cluster.State) error
		want    map[string]cluster.Resources
	}{
		"no terms": {nil, all()},
		"a limit":  {[]func(*cluster.State) error{limit(h100)}, all(h100)},
		"a quota": {[]func(*cluster.State) error{set(func(q *cluster.Queue) { q.Quota = q.Quota.With(h100, 0) })},
			all(h100)},
		"a weight": {[]func(*cluster.State) error{set(func(q *cluster.Queue) { q.OverQuotaWeight = q.OverQuotaWeight.With(h100, 2) })},
			all(h100)},
		"two":          {[]func(*cluster.State) error{limit(h100), limit(l4)}, all(h100, l4)},
		"no more":      {[]func(*cluster.State) error{limit(h100), set(func(q *cluster.Queue) { q.Limits = nil })}, all()},
		"another name": {[]func(*cluster.State) error{limit("amd.com/gpu:H100")}, all()},
		"by another too": {[]func(*cluster.State) error{limit(l4), func(s *cluster.State) error {
			return s.SetQueue(&cluster.Queue{Name: "apart", Limits: cluster.Resources{{Name: l4, Value: 1}}})
		}, set(func(q *cluster.Queue) { q.Limits = nil })}, all(l4)},
		"devices become others": {[]func(*cluster.State) error{limit(h100), limit(l4), func(s *cluster.State) error {
			return s.UpdateNode("n", func(n *cluster.Node) { n.Devices[2].OwnSpec().Product = "H100" })
		}}, map[string]cluster.Resources{
			"org": {{Name: gpu, Value: 2500}, {Name: h100, Value: 2500}}, "org firm": {{Name: gpu, Value: 1500}, {Name: h100, Value: 1500}},
			"team": {{Name: gpu, Value: 2500}, {Name: h100, Value: 2500}}, "team firm": {{Name: gpu, Value: 1500}, {Name: h100, Value: 1500}},
		}},
		"the node is removed": {[]func(*cluster.State) error{limit(h100), func(s *cluster.State) error { return s.RemoveNode("n") }}, map[string]cluster.Resources{}},
		"a task is evicted":   {[]func(*cluster.State) error{func(s *cluster.State) error { return s.Evict(task(s, "soft", 0)) }, limit(h100)}, map[string]cluster.Resources{"org": {{Name: gpu, Value: 1500}, {Name: h100, Value: 1000}}, "org firm": {{Name: gpu, Value: 1500}, {Name: h100, Value: 1000}}, "team": {{Name: gpu, Value: 1500}, {Name: h100, Value: 1000}}, "team firm": {{Name: gpu, Value: 1500}, {Name: h100, Value: 1000}}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := enginetest.State(
				enginetest.Node("n").CPU(8, "64Gi").GPUs(2, "H100", "80Gi").GPUs(1, "L4", "24Gi"),
				enginetest.Queue("org"), enginetest.Queue("team").Parent("org"),
				enginetest.Job("firm").Queue("team").Devices(1).On("n"), enginetest.Job("soft").Queue("team").Preemptible().Devices(1).On("n"), enginetest.Job("half").Queue("team").Share(1, 500).On("n"),
			)
			copied := s.Clone()
			for _, change := range tc.changes {
				if err := change(s); err != nil {
					t.Fatal(err)
				}
			}
			if d := cmp.Diff(tc.want, deviceUse(s)); d != "" {
				t.Errorf("use (-want +got):\n%s", d)
			}
			if d := cmp.Diff(all(), deviceUse(copied)); d != "" {
				t.Errorf("the copy changed (-want +got):\n%s", d)
			}
			again := s.Clone()
			for _, q := range again.Queues() { // a copy follows the terms of its own queues
				terms := cluster.Queue{Name: q.Name, Parent: q.Parent}
				if err := again.SetQueue(&terms); err != nil {
					t.Fatal(err)
				}
			}
			if len(again.View().Products()) != 0 {
				t.Errorf("no queue has terms, but these products are counted: %v", again.View().Products())
			}
			team := *s.Queue("team")
			if err := s.SetQueue(&team); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, deviceUse(s)); d != "" {
				t.Errorf("a change of the copy changed the original (-want +got):\n%s", d)
			}
		})
	}
}

// TestKinds adds, changes and removes nodes. Kinds must always list the kinds of the devices
// that are not lost.
func TestKinds(t *testing.T) {
	kinds := func(s *cluster.State) (out []string) {
		for _, d := range s.View().Kinds() {
			out = append(out, d.ProductResource+" "+d.Profile)
		}
		return out
	}
	s := enginetest.State(enginetest.Node("a").GPUs(2, "H100", "80Gi").GPUs(1, "L4", "24Gi"), enginetest.Node("b").GPUs(1, "L4", "24Gi").Slices(2, "A100", "1g.10gb", "10Gi"))
	if d := cmp.Diff([]string{h100 + " ", l4 + " ", "nvidia.com/mig-1g.10gb:A100 1g.10gb"}, kinds(s)); d != "" {
		t.Errorf("kinds (-want +got):\n%s", d)
	}
	if err := s.UpdateNode("a", func(n *cluster.Node) { n.Devices[0].Lost, n.Devices[1].OwnSpec().Product = true, "B200" }); err != nil {
		t.Fatal(err)
	}
	copied := s.Clone()
	if err := s.RemoveNode("b"); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{gpu + ":B200 ", l4 + " "}, kinds(s)); d != "" {
		t.Errorf("kinds (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{gpu + ":B200 ", l4 + " ", "nvidia.com/mig-1g.10gb:A100 1g.10gb"}, kinds(copied)); d != "" {
		t.Errorf("kinds of the copy (-want +got):\n%s", d)
	}
}
