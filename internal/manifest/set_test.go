package manifest

import (
	"strings"
	"testing"
)

const settable = `
apiVersion: berth.dev/v1alpha1
kind: Node
metadata: {name: a.example.com, labels: {topology.kubernetes.io/zone: z1}}
spec: {resources: {cpu: 8, memory: 16Gi}, devices: {product: L4, count: 2, memory: 24Gi}}
---
apiVersion: berth.dev/v1alpha1
kind: Job
metadata: {name: train, namespace: ml}
spec: {tasks: [{name: t, resources: {cpu: 1}, devices: {count: 1}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: ml, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}
---
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: q}
spec: {minRunTime: {beforePreempt: 90s}}
---
apiVersion: berth.dev/v1alpha1
kind: DisruptionBudget
metadata: {name: b, namespace: ml}
spec: {selector: {matchLabels: {app: web}}, minAvailable: 30%}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: p, namespace: ml}
spec: {selector: {}, maxUnavailable: 1}
`

func TestSet(t *testing.T) {
	for assignment, check := range map[string]func(*Bundle) bool{
		`job/ml/train.spec.priority=10`:                                   func(b *Bundle) bool { return b.Jobs[0].Spec.Priority == 10 },
		`job/ml/train.spec.tasks[0].replicas=3`:                           func(b *Bundle) bool { return *b.Jobs[0].Spec.Tasks[0].Replicas == 3 },
		`job/ml/train.spec.tasks[1]={name: u}`:                            func(b *Bundle) bool { return len(b.Jobs[0].Spec.Tasks) == 2 },
		`job/ml/train.spec.nodeSelector={a: b=c}`:                         nil, // the value is not a label value
		`node/a.example.com.spec.devices.count=4`:                         func(b *Bundle) bool { return b.Nodes[0].Spec.Devices[0].Count == 4 },
		`node/a.example.com.metadata.labels["a.b/c"]=d`:                   func(b *Bundle) bool { return b.Nodes[0].Labels["a.b/c"] == "d" },
		`node/a.example.com.spec.unschedulable=true`:                      func(b *Bundle) bool { return b.Nodes[0].Spec.Unschedulable },
		`pod/ml/web.spec.nodeSelector={rack: r1}`:                         func(b *Bundle) bool { return b.Pods[0].Spec.NodeSelector["rack"] == "r1" },
		`node/a.example.com.metadata.labels.a.b/c=d`:                      func(b *Bundle) bool { return b.Nodes[0].Labels["a.b/c"] == "d" },
		`node/a.example.com.metadata.labels.topology.kubernetes.io/zone=`: func(b *Bundle) bool { return len(b.Nodes[0].Labels) == 0 },
		`queue/q.spec.quota.nvidia.com/gpu=20`:                            func(b *Bundle) bool { return len(b.Queues[0].Spec.Quota) == 1 },
		`queue/q.spec.limits.cpu=20`:                                      func(b *Bundle) bool { return len(b.Queues[0].Spec.Limits) == 1 },
		`queue/q.spec.minRunTime=`:                                        func(b *Bundle) bool { return b.Queues[0].Spec.MinRunTime == nil },
		`job/ml/train.spec.tasks[0].devices=`:                             func(b *Bundle) bool { return b.Jobs[0].Spec.Tasks[0].Devices == nil },
		`job/ml/train.spec.tasks[0].resources.example.com/x=2`:            func(b *Bundle) bool { return len(b.Jobs[0].Spec.Tasks[0].Resources) == 2 },
		`job/ml/train.spec.tasks[0]=`:                                     nil, // a job without tasks
		`pod/ml/web.spec.containers[0].resources.requests.nvidia.com/gpu=2`: func(b *Bundle) bool {
			return len(b.Pods[0].Spec.Containers[0].Resources.Requests) == 2
		},
		`budget/ml/b.spec.minAvailable=2`:               func(b *Bundle) bool { return b.Budgets[0].Spec.MinAvailable.IntVal == 2 },
		`budget/ml/b.spec.selector.matchLabels.app=api`: func(b *Bundle) bool { return b.Budgets[0].Spec.MinAvailable.StrVal == "30%" },
		`budget/ml/b.spec.maxUnavailable=1`:             nil, // the budget has minAvailable already
		`budget/ml/p.spec.maxUnavailable=5%`:            func(b *Bundle) bool { return b.CoreBudgets[0].Spec.MaxUnavailable.StrVal == "5%" },
		`queue/q.spec.minRunTime.beforeReclaim=1h`: func(b *Bundle) bool {
			return b.Queues[0].Spec.MinRunTime.BeforePreempt.Seconds() == 90 && b.Queues[0].Spec.MinRunTime.BeforeReclaim.Hours() == 1
		},
		`queue/q.spec.minRunTime.beforePreempt=0s`:             nil,
		`job/ml/train.spec.topology={required: rack}`:          func(b *Bundle) bool { return b.Jobs[0].Spec.Topology.Required == "rack" },
		`job/ml/train.spec.subgroups=[{name: a, tasks: [t]}]`:  func(b *Bundle) bool { return b.Jobs[0].Spec.Subgroups[0].Tasks[0] == "t" },
		`job/ml/train.spec.subgroups[0]={name: a, tasks: [u]}`: nil,
		`job/ml/train.spec.priority=high`:                      nil,
		`job/ml/train.spec.tasks[7].replicas=3`:                nil,
		`job/ml/train.spec.tasks[0.replicas=3`:                 nil,
		`job/ml/train.spec.priority.x=3`:                       nil,
		`job/ml/train.spec..x=3`:                               nil,
		`job/ml/train.spec.queue={`:                            nil,
		`job/ml/train.spec`:                                    nil,
		`job/train.spec.priority=10`:                           nil,
		`.spec.priority=10`:                                    nil,
		``:                                                     nil,
	} {
		b, err := Parse("test.yaml", []byte(settable))
		if err != nil {
			t.Fatal(err)
		}
		where := b.Where(b.Jobs[0])
		err = b.Set(assignment)
		if check == nil {
			if err == nil || !strings.HasPrefix(err.Error(), "--set "+assignment) {
				t.Errorf("%s: error %v", assignment, err)
			}
			continue
		}
		if err != nil || !check(b) {
			t.Errorf("%s: not set; error %v", assignment, err)
		}
		if b.Where(b.Jobs[0]) != where {
			t.Errorf("%s: the position of the job is lost", assignment)
		}
		if _, err := b.State(); err != nil {
			t.Errorf("%s: %v", assignment, err)
		}
	}
}
