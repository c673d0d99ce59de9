package cluster_test

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/berth-project/berth/cluster"
)

// byRank returns the names of all nodes, sorted by rank.
func byRank(s *cluster.State) []string {
	nodes := slices.Clone(s.Nodes())
	slices.SortFunc(nodes, func(a, b *cluster.Node) int {
		return cmp.Compare(s.View().Recent().Rank(a.Slot()), s.View().Recent().Rank(b.Slot()))
	})
	out := []string{}
	for _, n := range nodes {
		out = append(out, n.Name)
	}
	return out
}

// TestOrderOfNodes adds nodes one at a time or many at once and removes them again. Ranks,
// lists and groups must stay sorted by name.
func TestOrderOfNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.NewState()
		there := map[string]bool{}
		node := func(i int) *cluster.Node {
			name := fmt.Sprintf("n%03d", i)
			there[name] = true
			return &cluster.Node{Name: name, Devices: make([]cluster.Device, i%3)}
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			switch i := rapid.IntRange(0, 200).Draw(t, "node"); rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				if name := fmt.Sprintf("n%03d", i); there[name] {
					if err := s.RemoveNode(name); err != nil {
						t.Fatal(err)
					}
					delete(there, name)
				} else if err := s.AddNode(node(i)); err != nil {
					t.Fatal(err)
				}
			default:
				var nodes []*cluster.Node
				for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, 200), 0, 40, rapid.ID).Draw(t, "nodes") {
					if !there[fmt.Sprintf("n%03d", i)] {
						nodes = append(nodes, node(i))
					}
				}
				if err := s.AddNodes(nodes); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{}
			for name := range there {
				want = append(want, name)
			}
			slices.Sort(want)
			if diff := gocmp.Diff(want, byRank(s)); diff != "" {
				t.Fatal(diff)
			}
			if !slices.IsSortedFunc(s.Nodes(), byName) || len(s.Nodes()) != len(want) {
				t.Fatal("nodes are out of order")
			}
			grouped := 0
			for _, g := range s.View().Groups() {
				if grouped += len(g.Nodes); !slices.IsSortedFunc(g.Nodes, byName) {
					t.Fatalf("nodes of %v are out of order", g.Key)
				}
			}
			for _, n := range s.Nodes() {
				if n.Group() == nil {
					grouped++
				}
			}
			if grouped != len(want) {
				t.Fatalf("%d nodes are in a group or have no devices, want %d", grouped, len(want))
			}
		}
	})
}

func byName(a, b *cluster.Node) int { return strings.Compare(a.Name, b.Name) }

// TestRanksNeverRunOut adds nodes always at the same place, so that no rank is left between
// their neighbours and all nodes get new ranks.
func TestRanksNeverRunOut(t *testing.T) {
	tests := map[string]func(i int) string{
		"halving": func(i int) string { return "b" + strings.Repeat("a", i) },
		"upward":  func(i int) string { return fmt.Sprintf("c%04d", i) },
		"first":   func(i int) string { return fmt.Sprintf("a%04d", 1000-i) },
	}
	for name, spell := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.NewState()
			want := []string{"b", "bb"}
			for i := range 200 {
				want = append(want, spell(i+1))
			}
			for _, name := range want {
				if err := s.AddNode(&cluster.Node{Name: name}); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(want)
			if diff := gocmp.Diff(want, byRank(s)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestManyNodesAtOnce adds a list of nodes in which one is known already or named twice.
// The last one with a name counts.
func TestManyNodesAtOnce(t *testing.T) {
	tests := map[string][]*cluster.Node{
		"one is known": {{Name: "b"}, {Name: "a", Cell: "west"}},
		"one twice":    {{Name: "b"}, {Name: "a", Cell: "east"}, {Name: "a", Cell: "west"}},
	}
	for name, nodes := range tests {
		t.Run(name, func(t *testing.T) {
			s := cluster.NewState()
			if err := s.AddNode(&cluster.Node{Name: "a"}); err != nil {
				t.Fatal(err)
			}
			if err := s.AddNodes(nodes); err != nil {
				t.Error(err)
			}
			if diff := gocmp.Diff([]string{"a", "b"}, byRank(s)); diff != "" || s.Node("a").Cell != "west" {
				t.Error(diff, s.Node("a").Cell)
			}
		})
	}
}

// TestQuotas changes the terms of queues. Quotas must follow the terms of all queues
// below.
func TestQuotas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.NewState()
		names := []string{"a", "b", "c", "d", "e", "f"}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			q := &cluster.Queue{Name: rapid.SampledFrom(names).Draw(t, "name")}
			if parent := rapid.SampledFrom(append([]string{""}, names...)).Draw(t, "parent"); s.Queue(parent) != nil {
				q.Parent = parent
			}
			for _, r := range []string{"cpu", "memory"} {
				if rapid.Bool().Draw(t, r) {
					q.Quota = append(q.Quota, cluster.Amount{Name: r, Value: rapid.SampledFrom([]int64{0, 1, 7, math.MaxInt64}).Draw(t, "amount")})
				}
			}
			_ = s.SetQueue(q) // it fails for a queue that is its own parent
			for _, q := range s.Queues() {
				if diff := gocmp.Diff(quotas(s, q), s.View().Quotas(q)); diff != "" {
					t.Fatalf("%s: %s", q.Name, diff)
				}
			}
		}
	})
}

// quotas computes View.Quotas in a plain way.
func quotas(s *cluster.State, q *cluster.Queue) cluster.Resources {
	var out cluster.Resources
	for _, name := range []string{"cpu", "memory"} {
		sum, known := int64(0), false
		for _, c := range s.Queues() {
			if s.View().Parent(c) != q {
				continue
			}
			for _, a := range quotas(s, c) {
				if a.Name == name {
					known = true
					if total, ok := cluster.AddOverflow(sum, a.Value); ok {
						sum = total
					} else {
						sum = math.MaxInt64
					}
				}
			}
		}
		for _, a := range q.Quota {
			if a.Name == name {
				sum, known = a.Value, true
			}
		}
		if known {
			out = append(out, cluster.Amount{Name: name, Value: sum})
		}
	}
	return out
}
