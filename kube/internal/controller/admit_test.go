package controller

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/internal/modelset"
	"github.com/berth-project/berth/kube/internal/modelsource"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAdmit checks new models and changes on a cluster of one small node.
func TestAdmit(t *testing.T) {
	model := func(edit func(*v1alpha1.ModelSpec)) *v1alpha1.Model {
		m := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "chat"}}
		m.Spec.Source.Preset, m.Spec.Context, m.Spec.Replicas = "llama-3.1-8b", 8192, new(1)
		edit(&m.Spec)
		return m
	}
	same := func(*v1alpha1.ModelSpec) {}
	large := func(s *v1alpha1.ModelSpec) { s.Source.Preset = "llama-3.3-70b" }
	args := func(s *v1alpha1.ModelSpec) { s.Server = &v1alpha1.ModelServer{Args: []string{"--seed=1"}} }
	both := func(s *v1alpha1.ModelSpec) { large(s); args(s) }
	cells := func(s *v1alpha1.ModelSpec) {
		for i := range maxForms + 1 {
			s.Placement.Cells = append(s.Placement.Cells, fmt.Sprint("c", i))
		}
	}
	for name, c := range map[string]struct {
		old, new func(*v1alpha1.ModelSpec)
		want     string
	}{
		"a model that fits":                     {nil, same, ""},
		"a model that is too large":             {nil, large, "infeasible: " + noGroup},
		"a change that does not fit":            {same, large, "infeasible: " + noGroup},
		"a change of a model that does not fit": {large, both, "warning: " + noGroup},
		"a change of the server":                {same, args, ""},
		"more replicas":                         {same, func(s *v1alpha1.ModelSpec) { s.Replicas = new(9) }, ""},
		"more forms than are tried":             {nil, cells, "warning: a replica can be placed in more than 200 forms"},
		"a preset that is not known":            {nil, func(s *v1alpha1.ModelSpec) { s.Source.Preset = "x" }, "problem: "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newClaimWorld(t)
			w.put(gpuNode("l4-1", "NVIDIA-L4", 1, 23034))
			var old *v1alpha1.Model
			if c.old != nil {
				old = model(c.old)
			}
			v, err := w.Admit(model(c.new), old)
			if err != nil {
				t.Fatal(err)
			}
			var have string
			switch {
			case v.Problem != "":
				have = "problem: " + v.Problem
			case v.Infeasible != "":
				have = "infeasible: " + v.Infeasible
			case v.Warning != "":
				have = "warning: " + v.Warning
			}
			if !strings.HasPrefix(have, c.want) || c.want == "" && have != "" {
				t.Errorf("%q, want %q", have, c.want)
			}
		})
	}
}

// TestAdmitWarns checks a model for which there are nodes, and no image.
func TestAdmitWarns(t *testing.T) {
	w := newClaimWorld(t)
	w.put(gpuNode("l4-1", "NVIDIA-L4", 1, 23034))
	m, err := modelsource.Decode(object(`metadata: {namespace: ml, name: chat}
spec: {backend: custom, source: {repository: example/m}, memory: {device: 8Gi}}
`).Object)
	if err != nil {
		t.Fatal(err)
	}
	v, err := w.Admit(m, nil)
	if err != nil || !strings.HasPrefix(v.Warning, "no server can be started for the model yet: spec.server.image") {
		t.Errorf("%+v, %v", v, err)
	}
}

// TestSample compares the verdicts on a cluster that is large enough for samples with those of all
// nodes.
func TestSample(t *testing.T) {
	w := newClaimWorld(t)
	for i := range 600 {
		k := kinds[i%len(kinds)]
		n := gpuNode(fmt.Sprintf("node-%04d", i), k.product, k.count, k.mib)
		n.Labels["pool"] = fmt.Sprint(i % 7)
		if i%11 == 0 {
			n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
		}
		if i%13 == 0 {
			n.Spec.Unschedulable = true
		}
		w.put(n)
		if i%3 == 0 {
			w.put(usesNode(n.Name))
		}
	}
	random := rand.New(rand.NewPCG(3, 4))
	counts := map[bool]int{}
	for range 300 {
		m := randomModel(random)
		if random.IntN(3) == 0 {
			m.Spec.Placement.NodeSelector = map[string]string{"pool": fmt.Sprint(random.IntN(9))}
		}
		have, err := w.Admit(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.spec(m)
		if err != nil {
			continue
		}
		s.ID += "~"
		c := w.cluster()
		c.Once = true
		answers, err := c.Decide([]modelset.Want{{Spec: s, Missing: 1}})
		if err != nil {
			t.Fatal(err)
		}
		infeasible := answers[0].Err == nil && answers[0].Replicas[0].Refusal != nil && answers[0].Replicas[0].Refusal.Permanent
		if counts[infeasible]++; infeasible != (have.Infeasible != "") {
			t.Errorf("%+v: infeasible %t, and the verdict is %+v", m.Spec, infeasible, have)
		}
	}
	if counts[true] < 30 || counts[false] < 30 {
		t.Errorf("too few of one sort: %v", counts)
	}
}
