package manifest

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestDump(t *testing.T) {
	b := read1(t, "testdata/dump.yaml")
	s, err := b.State()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"queue default Standard priority 0 weight 1 limits [] used [{cpu 3000} {memory 4294967296} {nvidia.com/gpu 2000} {pods 1}]",
		`node cpu-b cell "" nvidia.com/gpu`,
		"  cpu 0/15800 releasing 0",
		"  memory 0/64424509440 releasing 0",
		"  pods 0/110 releasing 0",
		`node gpu-a cell "west" nvidia.com/gpu`,
		"  cpu 3000/95690 releasing 1000",
		"  ephemeral-storage 0/95551679124 releasing 0",
		"  hugepages-1Gi 0/0 releasing 0",
		"  memory 4294967296/1204500955136 releasing 0",
		"  pods 1/250 releasing 1",
		"  device 0: 0 milli, 0 leases, 1 releasing",
		"  device 1: 1000 milli, 1 leases, 0 releasing",
		"  device 2: 1000 milli, 1 leases, 0 releasing",
		"pod/lab/train-1 queue default chosen -1 created 1780308001000000000",
		"  pod/lab/train-1/0 Pending []",
		"pod/prod/old queue default chosen 0 created 0",
		"  pod/prod/old/0 Releasing on gpu-a [{0 1000 42949672960 0}]",
		"pod/prod/web-0 queue default chosen 0 created 1780304400000000000",
		"  pod/prod/web-0/0 Bound on gpu-a since 1780304407000000000 [{1 1000 42949672960 0} {2 1000 42949672960 0}]",
		"budget prod/web of [{app In [web]}]: 25 percent true unavailable true",
	}
	if diff := cmp.Diff(want, describeState(s)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	n := s.Node("gpu-a")
	if n.Labels["metadata.name"] != "gpu-a" || n.Closed() || !s.Node("cpu-b").Closed() {
		t.Errorf("labels %v, closed %t and %t", n.Labels, n.Closed(), s.Node("cpu-b").Closed())
	}
	if diff := cmp.Diff([]cluster.Taint{{Key: "sku", Value: "gpu", Effect: cluster.NoSchedule}}, n.Taints); diff != "" {
		t.Errorf("taints\n%s", diff)
	}
	if web := s.Job("pod/prod/web-0"); web.Priority != 1000 || !web.Preemptible || len(web.Tasks()[0].Shape.Tolerations) != 2 {
		t.Errorf("%+v", web)
	}
}

func TestPodShape(t *testing.T) {
	s, err := read1(t, "testdata/dump.yaml").State()
	if err != nil {
		t.Fatal(err)
	}
	j := s.Job("pod/lab/train-1")
	wantShape := &cluster.Shape{
		Resources: cluster.Resources{{Name: "cpu", Value: 500}, {Name: "memory"}, {Name: "pods", Value: 1}},
		LeftOut:   cluster.Resources{{Name: "memory", Value: 200 << 20}},
		Need:      cluster.Need{Devices: 1, Partition: "1g.5gb", Resource: "nvidia.com/mig-1g.5gb"},
		Selector:  []cluster.Label{{Key: "kubernetes.io/os", Value: "linux"}},
		Required: []cluster.Term{{
			{Key: "nvidia.com/gpu.memory", Operator: cluster.Gt, Values: []string{"30000"}},
			{Key: "metadata.name", Operator: cluster.In, Values: []string{"gpu-a"}}}},
		Preferred: []cluster.Preference{{Weight: 10, Term: cluster.Term{{Key: "node.kubernetes.io/instance-type", Operator: cluster.In, Values: []string{"p4d.24xlarge"}}}}},
	}
	if diff := cmp.Diff(wantShape, j.Tasks()[0].Shape, cmpopts.IgnoreUnexported(cluster.Shape{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	wantAffinity := []cluster.JobTerm{
		// Every node has a hostname of its own, so that the domain is the node.
		{Selector: cluster.Term{{Key: "app", Operator: cluster.In, Values: []string{"train"}}}, Anti: true},
		// Empty selectors match everything: a condition that always holds, in all namespaces.
		{Selector: cluster.Term{{Operator: cluster.DoesNotExist}}, Within: "topology.kubernetes.io/zone", Anti: true, Weight: 5, Namespaces: []string{"lab", "prod"}},
	}
	if diff := cmp.Diff(wantAffinity, j.Affinity); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

const coreNode = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nstatus: {allocatable: {cpu: 4, memory: 8Gi, nvidia.com/gpu: 1}}\n---\n"

func pod(metadata, spec string) string {
	return "apiVersion: v1\nkind: Pod\nmetadata: {name: p" + metadata + "}\nspec: " + spec
}

func TestPodErrors(t *testing.T) {
	two := "{containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1, amd.com/gpu: 1}}}]}"
	tests := map[string]struct{ text, want string }{
		"fine, with a field of the future": {pod(", future: 1", "{containers: [], alsoFuture: {}}"), ""},
		"two kinds of device":              {pod("", two), "4:20: spec.containers: the pod asks for both amd.com/gpu and nvidia.com/gpu; ask for one kind of device, or split the pod"},
		"too many devices":                 {pod("", "{containers: [{name: c, resources: {requests: {nvidia.com/gpu: 2000}}}]}"), "4:20: spec.containers: 2000 of nvidia.com/gpu are more than the 1024 devices that one node may have"},
		"negative":                         {pod("", "{containers: [{name: c, resources: {requests: {cpu: -1}}}]}"), "4:20: spec.containers.cpu: -1 is negative"},
		"wrong type":                       {pod("", "{priority: high}"), `4:18: spec.priority: want a whole number, have "high"`},
		"queue label":                      {pod(", labels: {berth.dev/queue: lab}", "{}"), `3:47: metadata.labels["berth.dev/queue"]: there is no queue "lab"; declare it (kind: Queue, name: lab) or use default`},
		"queue annotation":                 {pod(", annotations: {berth.dev/queue: defualt}", "{}"), `3:52: metadata.annotations["berth.dev/queue"]: there is no queue "defualt"; did you mean "default"?`},
		"queues differ":                    {pod(", labels: {berth.dev/queue: default}, annotations: {berth.dev/queue: x}", "{}"), `3:88: metadata.annotations["berth.dev/queue"]: the annotation says "x" and the label "default"; keep one`},
		"preemptible":                      {pod(`, labels: {berth.dev/preemptible: "yes"}`, "{}"), `3:53: metadata.labels["berth.dev/preemptible"]: want "true" or "false", have "yes"`},
		"node not dumped":                  {pod("", "{nodeName: gpu-7}"), `4:18: spec.nodeName: pod/default/p runs on node "gpu-7", which is not in the input; dump both together: kubectl get nodes,pods,pdb -A -o yaml`},
		"twice":                            {pod("", "{}") + "\n---\n" + pod(", namespace: default", "{}"), "8:18: metadata.name: pod/default/p is already declared at 1; rename or remove one"},
		"negative allocatable":             {strings.Replace(coreNode, "cpu: 4", "cpu: -4", 1), "4:29: status.allocatable.cpu: -4 is negative"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, problems(tc.text)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPods(t *testing.T) {
	gpu := "containers: [{name: c, resources: {requests: {nvidia.com/gpu: 1}}}]"
	tests := map[string]struct {
		text  string
		want  []string // lines of describeState about pods and devices
		notes []string
	}{
		"restored": {
			text: coreNode + pod("", "{nodeName: n, "+gpu+"}"),
			want: []string{"  device 0: 1000 milli, 1 leases, 0 releasing", "pod/default/p queue default chosen 0 created 0", "  pod/default/p/0 Bound on n [{0 1000 0 0}]"},
		},
		"a device that is not there": {
			text:  coreNode + pod("", "{nodeName: n, "+strings.Replace(gpu, "gpu: 1", "gpu: 2", 1)+"}"),
			want:  []string{"pod/default/p queue default chosen 0 created 0", "  pod/default/p/0 Bound on n []"},
			notes: []string{"1 pod on devices that their node does not have free, counted without devices: pod/default/p"},
		},
		"labels that make no sense": {
			text:  strings.Replace(coreNode, "{name: n}", "{name: n, labels: {nvidia.com/gpu.product: X}}", 1) + pod("", "{nodeName: n, "+gpu+"}"),
			want:  []string{"pod/default/p queue default chosen 0 created 0", "  pod/default/p/0 Bound on n []"},
			notes: []string{"1 node with devices that could not be determined; tasks that need devices are not placed there: n (nvidia.com/gpu.count is missing)", "1 pod on devices that their node does not have free, counted without devices: pod/default/p"},
		},
		"terminating and never bound":   {text: coreNode + pod(", deletionTimestamp: 2026-01-01T00:00:00Z", "{"+gpu+"}")},
		"bare items of a PodList":       {text: "apiVersion: v1\nkind: PodList\nitems: [{metadata: {name: p}, spec: {}}]", want: []string{"pod/default/p queue default chosen -1 created 0", "  pod/default/p/0 Pending []"}},
		"gates matter only until bound": {text: coreNode + pod("", "{nodeName: n, schedulingGates: [{name: x}]}"), want: []string{"pod/default/p queue default chosen 0 created 0", "  pod/default/p/0 Bound on n []"}},
		"what is not read": {
			text: pod("", "{resourceClaims: [{name: x}], containers: [{ports: [{containerPort: 1, hostPort: 1}]}], volumes: [{name: v, persistentVolumeClaim: {claimName: c}}], tolerations: [{key: a, operator: Gt, value: \"1\"}]}"),
			want: []string{"pod/default/p queue default chosen -1 created 0", "  pod/default/p/0 Pending []"},
			notes: []string{
				"1 pod with a toleration by Gt, which berth does not read: pod/default/p", "1 pod with hostPort, which berth does not read: pod/default/p",
				"1 pod with persistentVolumeClaim, which berth does not read: pod/default/p", "1 pod with resourceClaims, which berth does not read: pod/default/p"},
		},
		"selectors we know the names of": {text: pod("", "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, namespaceSelector: {matchLabels: {team: a}}}]}}}"), want: []string{"pod/default/p queue default chosen -1 created 0", "  pod/default/p/0 Pending []"}, notes: []string{"1 pod with a namespace selector by label; only the names of namespaces are known: pod/default/p"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(tc.text))
			if err != nil {
				t.Fatal(err)
			}
			s, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range describeState(s) {
				if strings.Contains(line, "pod/") || strings.Contains(line, "device") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(tc.notes, b.Notes); diff != "" {
				t.Errorf("notes (-want +got)\n%s", diff)
			}
		})
	}
}
