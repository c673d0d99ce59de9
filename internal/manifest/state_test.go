package manifest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// describeState returns lines that say which task holds what.
func describeState(s *cluster.State) []string {
	var out []string
	for _, q := range s.Queues() {
		out = append(out, fmt.Sprintf("queue %s %s priority %d weight %d limits %v used %v", q.Name, q.Tier, q.Priority, q.Weight, q.Limits, q.Used))
	}
	for _, n := range s.Nodes() {
		out = append(out, fmt.Sprintf("node %s cell %q %s", n.Name, n.Cell, n.DeviceResource))
		for _, l := range n.Resources {
			out = append(out, fmt.Sprintf("  %s %d/%d releasing %d", l.Name, l.Used, l.Capacity, l.Releasing))
		}
		for _, d := range n.Devices {
			if d.Use != (cluster.DeviceUse{}) {
				out = append(out, fmt.Sprintf("  device %d: %d milli, %d leases, %d releasing", d.Index, d.Use.Milli, d.Use.Leases, d.Use.ReleasingLeases))
			}
		}
	}
	for _, j := range s.Jobs() {
		out = append(out, fmt.Sprintf("%s queue %s chosen %d created %d", j.ID, j.Queue, j.Chosen, j.Created))
		for _, t := range j.Tasks() {
			on := ""
			if t.Node != nil {
				on = " on " + t.Node.Name
			}
			if t.Started != 0 {
				on += fmt.Sprint(" since ", t.Started)
			}
			out = append(out, fmt.Sprintf("  %s %s%s %v", t.ID, t.Status, on, t.Claims))
		}
	}
	for _, b := range s.View().Budgets() {
		out = append(out, fmt.Sprintf("budget %s/%s of %v: %d percent %t unavailable %t", b.Namespace, b.Name, b.Selector, b.Bound, b.Percent, b.Unavailable))
	}
	return out
}

func read1(t *testing.T, files ...string) *Bundle {
	t.Helper()
	b, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestState(t *testing.T) {
	b := read1(t, "testdata/berth.yaml")
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"queue default Standard priority 0 weight 1 limits [] used []",
		"queue research Guaranteed priority 3 weight 2 limits [{cpu 64000} {memory 1099511627776} {nvidia.com/gpu 8000}] used [{cpu 4000} {memory 2147483648} {nvidia.com/gpu 1000}]",
		`node gpu-1 cell "west" nvidia.com/gpu`,
		"  cpu 4000/96000 releasing 0",
		"  memory 2147483648/824633720832 releasing 0",
		"  device 0: 500 milli, 1 leases, 0 releasing",
		"  device 2: 500 milli, 1 leases, 0 releasing",
		"job/train queue research chosen 0 created 1767323045000000000",
		"  job/train/worker-0 Bound on gpu-1 [{2 500 42949672960 0}]",
		"  job/train/worker-1 Bound on gpu-1 [{0 500 42949672960 0}]",
		"  job/train/worker-2 Pending []",
	}
	if diff := cmp.Diff(want, describeState(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	again, err := b.State()
	if err != nil || again.Node("gpu-1") == s.Node("gpu-1") {
		t.Errorf("the second State could not be made: %v", err)
	}
	if diff := cmp.Diff(describeState(s), describeState(again)); diff != "" {
		t.Errorf("the second State differs\n%s", diff)
	}
	if got := b.Where(b.Jobs[0]); got != "testdata/berth.yaml:15" {
		t.Errorf("the job is at %s", got)
	}
}

func TestConfigurationAndScenario(t *testing.T) {
	b := read1(t, "testdata/berth.yaml")
	c := b.Configuration()
	three := 3
	want := []PluginEntry{
		{Name: "NodeResourcesFitPlus", Weight: &three, Where: "testdata/berth.yaml:36"},
		{Name: "Affinity", Disabled: true, Where: "testdata/berth.yaml:39"},
	}
	if diff := cmp.Diff(want, c.Plugins, cmpopts.IgnoreFields(PluginEntry{}, "Arguments")); diff != "" || c.Where != "testdata/berth.yaml:33" {
		t.Errorf("at %s (-want +got)\n%s", c.Where, diff)
	}
	s := b.Scenario()
	if s.Name != "taste" || s.Expect.Placements["job/train/worker-2"] != "gpu-1" || s.Expect.Scores["job/train/worker-2"]["gpu-1"]["NodeResourcesFitPlus"] != 12.5 {
		t.Errorf("%+v", s)
	}
	empty := &Bundle{}
	if empty.Configuration() != nil || empty.Scenario() != nil || !empty.Empty() {
		t.Error("an empty bundle has neither")
	}
}

// TestOrderDoesNotMatter checks that State depends on the objects, and not on the files or
// the order in which they are read.
func TestOrderDoesNotMatter(t *testing.T) {
	var docs []string
	for _, f := range []string{"testdata/berth.yaml", "testdata/dump.yaml"} {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, strings.Split(string(data), "\n---\n")...)
	}
	for i := range 6 {
		docs = append(docs, object("Node", fmt.Sprintf("m-%d", i), "spec: {devices: {product: x, count: 2, memory: 8Gi}}"),
			object("Job", fmt.Sprintf("k-%d", i), fmt.Sprintf("spec: {tasks: [{name: w, replicas: 2, devices: {share: 0.5}}]}\nstatus: {placements: [{task: w-0, node: m-%d}]}", i/2)))
	}
	var want []string
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		r.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		all := &Bundle{}
		for i, d := range docs {
			b, err := Parse(fmt.Sprintf("%d.yaml", i), []byte(d))
			if err != nil {
				t.Fatal(err)
			}
			all.Merge(b)
		}
		s, err := all.State()
		if err != nil {
			t.Fatal(err)
		}
		got := append(describeState(s), all.Notes...)
		if want == nil {
			want = got
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("in another order the State differs\n%s", diff)
		}
	})
}

func TestChangedBundle(t *testing.T) {
	b := read1(t, "testdata/berth.yaml")
	more := *b.Nodes[0]
	more.Name = "gpu-2"
	b.Nodes = append(b.Nodes, &more)
	s, err := b.State()
	if err != nil || len(s.Nodes()) != 2 {
		t.Fatalf("%v", err)
	}
	more.Name = "Not A Name"
	if _, err := b.State(); err == nil || !strings.HasPrefix(err.Error(), `metadata.name: "Not A Name" is not a valid name`) {
		t.Errorf("an object without a position: %v", err)
	}
}

func TestNodeDevices(t *testing.T) {
	type device struct {
		UUID, Parent, Product, Type, Profile, Link string
		MiB                                        int64
		NUMA                                       int
		Lost                                       bool
	}
	tests := map[string]struct {
		spec     string
		labels   string
		resource string
		want     []device
	}{
		"two kinds": {
			spec: "{devices: [{product: a, count: 1, memory: 1Gi, link: x}, {product: b, count: 2, memory: 2Gi, numa: [0, 1], links: [y, z], uuids: [u, v], lost: [1]}]}", resource: "nvidia.com/gpu",
			want: []device{{UUID: "GPU-n-0", Product: "a", Type: "cuda", MiB: 1024, NUMA: -1, Link: "x"}, {UUID: "u", Product: "b", Type: "cuda", MiB: 2048, Link: "y"}, {UUID: "v", Product: "b", Type: "cuda", MiB: 2048, NUMA: 1, Link: "z", Lost: true}},
		},
		"slices": {
			spec: "{devices: {product: a, count: 1, memory: 40Gi, partitions: [{profile: 3g.20gb, memory: 20Gi}, {profile: 1g.5gb, count: 2, memory: 5Gi}]}}", resource: "nvidia.com/gpu",
			want: []device{{UUID: "MIG-n-0-0", Parent: "GPU-n-0", Product: "a", Type: "cuda", Profile: "3g.20gb", MiB: 20480, NUMA: -1}, {UUID: "MIG-n-0-1", Parent: "GPU-n-0", Product: "a", Type: "cuda", Profile: "1g.5gb", MiB: 5120, NUMA: -1}, {UUID: "MIG-n-0-2", Parent: "GPU-n-0", Product: "a", Type: "cuda", Profile: "1g.5gb", MiB: 5120, NUMA: -1}},
		},
		"replicas": {
			spec: "{devices: {product: a, count: 1, memory: 40Gi, type: rocm, sharing: {strategy: mps, replicas: 2}}}", resource: "amd.com/gpu",
			want: []device{{UUID: "GPU-n-0::0", Parent: "GPU-n-0", Product: "a", Type: "rocm", MiB: 20480, NUMA: -1}, {UUID: "GPU-n-0::1", Parent: "GPU-n-0", Product: "a", Type: "rocm", MiB: 20480, NUMA: -1}},
		},
		"named":                     {spec: "{deviceResource: a.b/npu, devices: {product: a, count: 1, memory: 1Gi}}", resource: "a.b/npu", want: []device{{UUID: "GPU-n-0", Product: "a", Type: "cuda", MiB: 1024, NUMA: -1}}},
		"labels":                    {spec: "{}", labels: `{nvidia.com/gpu.product: P, nvidia.com/gpu.count: "1", nvidia.com/gpu.memory: "10"}`, resource: "nvidia.com/gpu", want: []device{{UUID: "GPU-n-0", Product: "P", Type: "cuda", MiB: 10, NUMA: -1}}},
		"labels capped":             {spec: "{resources: {nvidia.com/gpu: 1}}", labels: `{nvidia.com/gpu.product: P, nvidia.com/gpu.count: "4", nvidia.com/gpu.memory: "10"}`, resource: "nvidia.com/gpu", want: []device{{UUID: "GPU-n-0", Product: "P", Type: "cuda", MiB: 10, NUMA: -1}}},
		"nothing known but a count": {spec: "{resources: {amd.com/gpu: 1}}", resource: "amd.com/gpu", want: []device{{UUID: "GPU-n-0", Product: "unknown", Type: "rocm", NUMA: -1}}},
		"slices, only a count":      {spec: "{resources: {nvidia.com/mig-1g.5gb: 1}}", resource: "nvidia.com/gpu", want: []device{{UUID: "GPU-n-0", Product: "unknown", Type: "cuda", Profile: "1g.5gb", NUMA: -1}}},
		"none":                      {spec: "{resources: {cpu: 1}}", resource: "nvidia.com/gpu"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(node(tc.spec), "{name: n}", "{name: n, labels: "+orNone(tc.labels)+"}", 1)
			b, err := Parse("f", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			n := s.Node("n")
			var got []device
			for _, d := range n.Devices {
				got = append(got, device{d.UUID, d.Parent, d.Product, d.Type, d.Profile, d.Link, int64(d.Memory >> 20), d.NUMA, d.Lost})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || n.DeviceResource != tc.resource {
				t.Errorf("%s (-want +got)\n%s", n.DeviceResource, diff)
			}
		})
	}
}

func orNone(labels string) string {
	if labels == "" {
		return "{}"
	}
	return labels
}

func TestPlacedAlternative(t *testing.T) {
	const forms = "{cells: [east, west], alternatives: [{name: large, tasks: [{name: w, replicas: 2}]}, {name: small, tasks: [{name: w}]}]}"
	tests := map[string]struct {
		status string
		want   int
	}{
		"the cell decides": {"{placements: [{task: w-0, node: n}]}", 1},
		"named":            {"{alternative: small, placements: [{task: w-0, node: n}]}", 3},
		"named with cell":  {"{alternative: small in west, placements: [{task: w-0, node: n}]}", 3},
		"none runs":        {"{}", -1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(node("{cell: west}")+"\n---\n"+job(forms)+"\nstatus: "+tc.status))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Job("job/j").Chosen; got != tc.want {
				t.Errorf("alternative %d, want %d", got, tc.want)
			}
		})
	}
}

func TestUnknownCell(t *testing.T) {
	b, err := Parse("f", []byte(node("{cell: west}")+"\n---\n"+job("{cells: [wset], tasks: [{name: w}]}")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.State(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`job/j names the cell "wset", which no node is in; did you mean "west"?`}, b.Notes); diff != "" {
		t.Error(diff)
	}
}

func TestNotes(t *testing.T) {
	b := read1(t, "testdata/dump.yaml")
	if _, err := b.State(); err != nil {
		t.Fatal(err)
	}
	first := slices.Clone(b.Notes)
	want := []string{
		"1 node not ready, taking no new tasks: cpu-b",
		"1 pod held back by scheduling gates, not scheduled: pod/prod/gated",
		"1 pod with topologySpreadConstraints, which berth does not read: pod/lab/train-1",
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := b.State(); err != nil || !slices.Equal(first, b.Notes) {
		t.Errorf("a second call of State repeats notes: %v", b.Notes)
	}
}
