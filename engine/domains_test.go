package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/enginetest"
)

// domainPlugin prefers nodes of domains with few idle nodes, and counts calls.
type domainPlugin struct {
	level    string
	calls    int // of the score
	filtered int // calls of the filter
	bad      bool
}

func (*domainPlugin) Name() string { return "Domains" }

func (p *domainPlugin) OnSessionOpen(s *engine.Session) {
	s.Hooks.AddShapeFilter(nil, func(s *cluster.Shape, n *cluster.Node) *engine.Rejection {
		p.filtered++
		if _, ok := n.Choose(s, nil); !ok {
			return &engine.Rejection{Reason: "Full", Cure: engine.Wait}
		}
		return nil
	})
	engine.EqualNodes(s.Hooks)
	engine.AddDomainScore(s.Hooks, p.level, nil, func(_ *cluster.Shape, _ *cluster.Node, d engine.Domain) float64 {
		if p.calls++; p.bad {
			return 101
		}
		if d.Nodes == 0 {
			return 50
		}
		return 100 * float64(d.Nodes-d.Idle) / float64(d.Nodes)
	})
}

func domainEngine(t *testing.T, p *domainPlugin) *engine.Engine {
	t.Helper()
	r := engine.NewRegistry()
	if err := r.RegisterPluginBuilder(p.Name(), func(engine.Arguments) (engine.Plugin, error) { return p, nil }); err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(r, engine.Profile{{Name: p.Name(), Weight: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func domainSession(t *testing.T, e *engine.Engine, s *cluster.State, search engine.Search) engine.Outcome {
	t.Helper()
	session := e.Open(s, engine.Options{Search: search})
	out, err := session.Run()
	session.Close()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDomainScoreFollowsTheDomain: a placement changes the scores of the other nodes of its domain, in the
// same session and for a ranking that exists already, and for no other node.
func TestDomainScoreFollowsTheDomain(t *testing.T) {
	const racks, each = 20, 5
	var objects []enginetest.Part
	for i := range racks * each {
		objects = append(objects, enginetest.Node(fmt.Sprintf("n%03d", i)).Label("rack", fmt.Sprint("r", i%racks)).GPUs(1, "L4", "24Gi"))
	}
	state := enginetest.State(objects...)
	p := &domainPlugin{level: "rack"}
	e := domainEngine(t, p)
	put := func(name string) {
		t.Helper()
		if err := state.Apply(cluster.JobPut{Job: *enginetest.Job(name).Devices(1).Build()}); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	domainSession(t, e, state, engine.Indexed)
	if p.filtered > 3 { // the node that was taken changed
		t.Errorf("the filter was called %d times for %d equal nodes", p.filtered, racks*each)
	}
	before := p.calls
	put("b")
	out := domainSession(t, e, state, engine.Indexed)
	if len(out.Decisions) != 1 || out.Decisions[0].Node != "n020" { // the second node of rack r0
		t.Fatalf("%+v", out.Decisions)
	}
	// The four other nodes of the domain are scored again. The node that is taken is scored by its
	// decision, and is rejected by then.
	if n := p.calls - before; n > 2*each {
		t.Errorf("%d scores were computed, of %d nodes", n, racks*each)
	}
	for i := range each - 2 {
		put(fmt.Sprint("c", i))
	}
	for _, d := range domainSession(t, e, state, engine.Indexed).Decisions {
		if state.Node(d.Node).Labels["rack"] != "r0" {
			t.Errorf("%s is on %s", d.Task.ID(), d.Node)
		}
	}
}

func TestDomainScoreOutOfRange(t *testing.T) {
	state := enginetest.State(enginetest.Node("n").Label("rack", "r").GPUs(1, "L4", "24Gi"), enginetest.Job("a").Devices(1))
	session := domainEngine(t, &domainPlugin{level: "rack", bad: true}).Open(state, engine.Options{})
	if _, err := session.Run(); err == nil || !strings.Contains(err.Error(), "Domains: a score of 101 for node n is not between 0 and 100") {
		t.Errorf("the error is %v", err)
	}
}

// TestDomainsAgreeWithAScan changes nodes, labels and jobs at random. Every decision of the index is
// compared with one that counts the nodes of each domain.
func TestDomainsAgreeWithAScan(t *testing.T) {
	for seed := range uint64(30) {
		dice := rand.New(rand.NewPCG(seed, 3))
		state := cluster.NewState()
		e := domainEngine(t, &domainPlugin{level: "rack"})
		apply := func(c cluster.Change) {
			t.Helper()
			if err := state.Apply(c); err != nil {
				t.Fatal(err)
			}
		}
		placed := 0
		for step := range 150 {
			name := fmt.Sprintf("n%d", dice.IntN(20))
			switch dice.IntN(6) {
			case 0, 1:
				b := enginetest.Node(name).GPUs(dice.IntN(4), "L4", "24Gi")
				if r := dice.IntN(5); r > 0 {
					b.Label("rack", fmt.Sprint("r", r))
				}
				apply(cluster.NodePut{Node: *b.Build()})
			case 2:
				if dice.IntN(3) == 0 {
					apply(cluster.NodeGone{Name: name})
				}
			case 3:
				apply(cluster.JobGone{Job: fmt.Sprint("job/j", dice.IntN(step+1))})
			default:
				apply(cluster.JobPut{Job: *enginetest.Job(fmt.Sprint("j", step)).Devices(1 + dice.IntN(2)).Build()})
			}
			if dice.IntN(8) == 0 { // readers of another State begin again
				state = state.Clone()
			}
			out := domainSession(t, e, state, engine.Twin)
			placed += len(out.Decisions)
		}
		if placed < 10 {
			t.Errorf("seed %d: %d decisions", seed, placed)
		}
	}
}
