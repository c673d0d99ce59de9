package modelset_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/engine"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/estimate/library"
	"github.com/berth-project/berth/internal/manifest"
	"github.com/berth-project/berth/internal/model"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/plugins/standard"
	"github.com/google/go-cmp/cmp"
)

const nodes = `apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: %s}
spec:
  resources: {cpu: 64, memory: 512Gi}
  devices: {product: %s, count: %d, memory: %dGi}
---
`

// newCluster returns a cluster of two nodes with 2 L4 and one with 4 A100.
func newCluster(t *testing.T) *modelset.Cluster {
	t.Helper()
	text := fmt.Sprintf(nodes, "l4-1", "NVIDIA-L4", 2, 24) + fmt.Sprintf(nodes, "l4-2", "NVIDIA-L4", 2, 24) + fmt.Sprintf(nodes, "a100", "NVIDIA-A100-SXM4-80GB", 4, 80)
	b, err := manifest.Parse("nodes", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	state, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(standard.Registry(), standard.Profile())
	if err != nil {
		t.Fatal(err)
	}
	return &modelset.Cluster{Engine: e, State: state}
}

// spec returns the model of a manifest.
func spec(t *testing.T, text string) *model.Spec {
	t.Helper()
	b, err := manifest.Parse("model", []byte("apiVersion: berth.dev/v1alpha1\nkind: Model\nmetadata: {name: chat}\nspec: "+text))
	if err != nil {
		t.Fatal(err)
	}
	s, notes := convert.Model(b.Models[0], &convert.Environment{})
	if len(notes) > 0 {
		t.Fatal(notes)
	}
	if name := b.Models[0].Spec.Source.Preset; name != "" {
		if s.Source, err = library.Known(name); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestDecide asks about models, and leaves the State as it was.
func TestDecide(t *testing.T) {
	tests := map[string]struct {
		spec    string
		missing int
		whole   bool
		form    string // of the first replica
		node    string // of its first task; "" if it is refused
		group   string
	}{
		"one device":              {"{source: {preset: llama-3.1-8b}, context: 8192}", 1, false, "1 device", "l4-1", ""},
		"whole devices":           {"{source: {preset: llama-3.1-8b}, context: 8192}", 1, true, "1 device", "l4-1", ""},
		"a group":                 {"{replicas: 2, memory: {total: 30Gi}, backend: vllm, placement: {unit: Node}}", 2, false, "1 whole node of NVIDIA-L4 × 2 (tp 2)", "l4-1", "NVIDIA-L4 × 2"},
		"no group":                {"{replicas: 4, memory: {total: 30Gi}, backend: vllm, placement: {unit: Node}}", 4, false, "1 whole node of NVIDIA-A100-SXM4-80GB × 4 (tp 4)", "", ""},
		"part of a device":        {"{memory: {device: 9Gi}, backend: custom}", 1, false, "1 device", "l4-1", ""},
		"a whole device for part": {"{memory: {device: 9Gi}, backend: custom}", 1, true, "1 device", "l4-1", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.WholeDevices = tt.whole
			before := c.State.Digest()
			answers, err := c.Decide([]modelset.Want{{Spec: spec(t, tt.spec), Missing: tt.missing}})
			if err != nil {
				t.Fatal(err)
			}
			if c.State.Digest() != before {
				t.Error("the State has changed")
			}
			a := answers[0]
			if a.Err != nil || len(a.Replicas) != tt.missing {
				t.Fatalf("%d replicas, %v", len(a.Replicas), a.Err)
			}
			r := a.Replicas[0]
			if (r.Refusal != nil) != (tt.node == "") || r.Form.Name != tt.form {
				t.Errorf("form %q, refusal %+v", r.Form.Name, r.Refusal)
			}
			if len(r.Places) > 0 && r.Places[0].Node != tt.node {
				t.Errorf("on %q, want %q", r.Places[0].Node, tt.node)
			}
			if group := ""; a.Group != nil || tt.group != "" {
				if a.Group != nil {
					group = a.Group.String()
				}
				if group != tt.group {
					t.Errorf("group %q, want %q", group, tt.group)
				}
			}
			if need := r.Form.Tasks[0].Shape.Need; tt.whole && (need.Share != 0 || need.Memory != 0 || need.SumAtLeast == 0) {
				t.Errorf("the need %+v is for parts of devices", need)
			}
		})
	}
}

// TestDecideTogether decides about two models as one simulation does: the second gets what the
// first leaves.
func TestDecideTogether(t *testing.T) {
	c := newCluster(t)
	first, second := spec(t, "{replicas: 1, memory: {total: 30Gi}, backend: vllm, placement: {unit: Node}}"), spec(t, "{replicas: 2, memory: {total: 30Gi}, backend: vllm, placement: {unit: Node}}")
	second.ID = "model/other"
	answers, err := c.Decide([]modelset.Want{{Spec: first, Missing: 1}, {Spec: second, Missing: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if g := answers[0].Group; g == nil || g.Product != "NVIDIA-L4" {
		t.Errorf("the first is on %v", g)
	}
	if r := answers[1].Replicas[0]; r.Refusal == nil || r.Refusal.Permanent {
		t.Errorf("the second is placed, or refused for ever: %+v", r)
	}
}

// TestFleetFollowsNodes decides twice with one Fleet, and changes the nodes in between: the second
// answer is that of a Fleet without a memory.
func TestFleetFollowsNodes(t *testing.T) {
	changes := map[string]func(*cluster.Node) []cluster.Change{
		"a node is removed": func(n *cluster.Node) []cluster.Change { return []cluster.Change{cluster.NodeGone{Name: n.Name}} },
		"a device is smaller": func(n *cluster.Node) []cluster.Change {
			n.Devices[0].OwnSpec().Memory /= 2
			return []cluster.Change{cluster.NodePut{Node: *n}}
		},
		"a node is added": func(n *cluster.Node) []cluster.Change {
			n.Name = "added"
			for i := range n.Devices {
				own := n.Devices[i].OwnSpec()
				n.Devices[i].ID.Node, own.Product, own.Memory = n.Name, "NVIDIA-H200", 141<<30
			}
			return []cluster.Change{cluster.NodePut{Node: *n}}
		},
		"nothing changes": func(*cluster.Node) []cluster.Change { return nil },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			wants := []modelset.Want{{Spec: spec(t, "{replicas: 2, source: {preset: llama-3.3-70b}}"), Missing: 2}}
			c.Fleet = &modelset.Fleet{}
			if _, err := c.Decide(wants); err != nil {
				t.Fatal(err)
			}
			own := *c.State.Node("a100")
			own.Devices = slices.Clone(own.Devices)
			for _, x := range change(&own) {
				if err := c.State.Apply(x); err != nil {
					t.Fatal(err)
				}
			}
			again, err := c.Decide(wants)
			if err != nil {
				t.Fatal(err)
			}
			c.Fleet = nil
			want, err := c.Decide(wants)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(text(want), text(again)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// text describes the forms and the places of the first answer.
func text(answers []modelset.Answer) string {
	var out strings.Builder
	for _, f := range answers[0].Forms {
		fmt.Fprintln(&out, f.Name)
	}
	for _, r := range answers[0].Replicas {
		fmt.Fprintln(&out, r.Places)
		if r.Refusal != nil {
			fmt.Fprintln(&out, r.Refusal.Message)
		}
	}
	return out.String()
}
