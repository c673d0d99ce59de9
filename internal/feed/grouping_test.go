package feed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/berth-project/berth/cluster"
	"github.com/google/go-cmp/cmp"
)

// members returns manifests of pods. Each line of text is the name of a pod, and what its
// metadata has beyond that.
func members(text string) string {
	var out []string
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, meta, _ := strings.Cut(strings.TrimSpace(line), " ")
		out = append(out, fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {namespace: ml, name: %s, uid: uid-%s, resourceVersion: "%d", creationTimestamp: "2026-10-01T00:00:00Z", %s}
spec:
  schedulerName: berth
  containers:
  - name: main
    resources: {requests: {cpu: 1, nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}
status: {phase: Pending}`, name, name, i+100, meta))
	}
	return strings.Join(out, "\n---\n")
}

// summary describes the jobs of a State in one line each.
func summary(s *cluster.State) []string {
	var out []string
	for _, j := range s.Jobs() {
		a := j.Alternatives[0]
		line := fmt.Sprintf("%s min=%d queue=%s priority=%d", j.ID, a.Min, j.Queue, j.Priority)
		if j.Preemptible {
			line += " preemptible"
		}
		if a.Topology.Required != "" {
			line += " within=" + a.Topology.Required
		}
		for _, g := range a.Subgroups {
			line += fmt.Sprintf(" %s>=%d", g.Name, g.Min)
		}
		line += ":"
		for _, t := range a.Tasks {
			if line += " " + t.Name; t.Subgroup > 0 {
				line += "@" + a.Subgroups[t.Subgroup-1].Name
			}
		}
		out = append(out, line)
	}
	slices.Sort(out)
	return out
}

// pendingJobs returns the IDs of the jobs that a session considers.
func pendingJobs(s *cluster.State) []string {
	var out []string
	for _, j := range s.Pending() {
		out = append(out, j.ID)
	}
	slices.Sort(out)
	return out
}

type groupingTest struct {
	pods, object string
	want         []string // with the object
	pending      []string
	// before lists what is pending before the object is delivered: nothing, for a gang.
	before []string
}

func (c groupingTest) run(t *testing.T) {
	first, last := newFixture(t), newFixture(t)
	first.putAll(members(c.pods))
	if diff := cmp.Diff(c.before, pendingJobs(first.state)); c.object != "" && diff != "" {
		t.Errorf("pending before the object arrived (-want +got):\n%s", diff)
	}
	if c.object != "" {
		first.putAll(c.object)
		last.putAll(c.object)
	}
	last.putAll(members(c.pods))
	if diff := cmp.Diff(c.want, summary(first.state)); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(c.pending, pendingJobs(first.state)); diff != "" {
		t.Errorf("pending (-want +got):\n%s", diff)
	}
	same(t, first.state, last.state)
}

// groupsByAnnotation are groups that labels, annotations and fields of pods name.
var groupsByAnnotation = map[string]groupingTest{
	"pods without a group": {
		pods: `a
b`,
		want:    []string{"pod/ml/a min=1 queue=default priority=0: 0", "pod/ml/b min=1 queue=default priority=0: 0"},
		pending: []string{"pod/ml/a", "pod/ml/b"},
	},
	"Berth labels": {
		pods: `a labels: {berth.dev/group-name: train, berth.dev/group-min-member: "2", berth.dev/queue: team}
b labels: {berth.dev/group-name: train, berth.dev/group-min-member: "2"}`,
		object: "apiVersion: berth.dev/v1alpha1\nkind: Queue\nmetadata: {name: team}",
		want:   []string{"group/ml/train min=2 queue=team priority=0: a b"}, pending: []string{"group/ml/train"},
	},
	"Berth annotations below the minimum": {
		pods: `a annotations: {berth.dev/group-name: train, berth.dev/group-min-member: "2"}`,
		want: []string{"group/ml/train min=2 queue=default priority=0: a"},
	},
	"Berth label without a minimum": {
		pods: `a labels: {berth.dev/group-name: train}`,
		want: []string{"group/ml/train min=0 queue=default priority=0: a"},
	},
	"KAI": {
		pods: `a annotations: {pod-group-name: pg}, labels: {kai.scheduler/subgroup-name: driver}
b annotations: {pod-group-name: pg}, labels: {kai.scheduler/subgroup-name: workers}
c annotations: {pod-group-name: pg}, labels: {kai.scheduler/subgroup-name: workers}`,
		object: `apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {namespace: ml, name: pg, uid: pg, resourceVersion: "7"}
spec:
  minMember: 3
  queue: default
  priorityClassName: train
  topologyConstraint: {topology: dc, requiredTopologyLevel: example.com/rack}
  subGroups: [{name: driver, minMember: 1}, {name: workers, minMember: 2}]
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: train}
value: 50`,
		want:    []string{"kai/ml/pg min=3 queue=default priority=50 preemptible within=example.com/rack driver>=1 workers>=2: a@driver b@workers c@workers"},
		pending: []string{"kai/ml/pg"},
	},
	"KAI with nested subgroups in any order": {
		pods: `a annotations: {pod-group-name: pg}, labels: {kai.scheduler/subgroup-name: inner}`,
		object: `apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {namespace: ml, name: pg}
spec: {preemptibility: non-preemptible, minSubGroup: 1, subGroups: [{name: inner, parent: outer, minMember: 1}, {name: outer, minSubGroup: 1}]}`,
		want:    []string{"kai/ml/pg min=1 queue=default priority=0 outer>=0 inner>=1: a@inner"},
		pending: []string{"kai/ml/pg"},
	},
	"Volcano": {
		pods: `a annotations: {scheduling.k8s.io/group-name: pg, volcano.sh/task-spec: ps}
b annotations: {scheduling.volcano.sh/group-name: pg, volcano.sh/task-spec: worker, volcano.sh/preemptable: "true"}`,
		object: `apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {namespace: ml, name: pg}
spec: {minMember: 2, queue: default, minTaskMember: {ps: 1, worker: 1}}`,
		want:    []string{"volcano/ml/pg min=2 queue=default priority=0 preemptible ps>=1 worker>=1: a@ps b@worker"},
		pending: []string{"volcano/ml/pg"},
	},
	"Volcano with minima of tasks that are more than the minimum": {
		pods: `a annotations: {scheduling.k8s.io/group-name: pg, volcano.sh/task-spec: ps}
b annotations: {scheduling.k8s.io/group-name: pg, volcano.sh/task-spec: worker}`,
		object: `apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {namespace: ml, name: pg}
spec: {minMember: 1, minTaskMember: {ps: 1, worker: 1}}`,
		want:    []string{"volcano/ml/pg min=1 queue=default priority=0: a b"},
		pending: []string{"volcano/ml/pg"},
	},
	"Volcano without a gang": {
		pods: `a annotations: {scheduling.k8s.io/group-name: pg}`,
		object: `apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata: {namespace: ml, name: pg}
spec: {minMember: 0}`,
		want:    []string{"volcano/ml/pg min=1 queue=default priority=0: a"},
		pending: []string{"volcano/ml/pg"},
	},
	"Volcano with the minimum on the pod": {
		pods: `a annotations: {scheduling.volcano.sh/group-name: pg, scheduling.volcano.sh/group-min-member: "1", scheduling.volcano.sh/queue-name: default}`,
		want: []string{"volcano/ml/pg min=1 queue=default priority=0: a"}, pending: []string{"volcano/ml/pg"},
	},
	"scheduler-plugins": {
		pods: `a labels: {scheduling.x-k8s.io/pod-group: pg}
b labels: {pod-group.scheduling.sigs.k8s.io/name: pg}`,
		object: `apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {namespace: ml, name: pg}
spec: {minMember: 2, scheduleTimeoutSeconds: 10}`,
		want: []string{"coscheduling/ml/pg min=2 queue=default priority=0: a b"}, pending: []string{"coscheduling/ml/pg"},
	},
	"scheduler-plugins with an invalid minimum": {
		pods: `a labels: {scheduling.x-k8s.io/pod-group: pg}`,
		object: `apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {namespace: ml, name: pg}
spec: {minMember: many}`,
		want: []string{"coscheduling/ml/pg min=0 queue=default priority=0: a"},
	},
	"Koordinator": {
		pods: `a annotations: {gang.scheduling.koordinator.sh/name: g, gang.scheduling.koordinator.sh/min-available: "2"}
b annotations: {gang.scheduling.koordinator.sh/name: g, gang.scheduling.koordinator.sh/min-available: "2"}`,
		want: []string{"koordinator/ml/g min=2 queue=default priority=0: a b"}, pending: []string{"koordinator/ml/g"},
	},
	"Berth's label before that of scheduler-plugins": {
		pods: `a labels: {berth.dev/group-name: mine, berth.dev/group-min-member: "1", scheduling.x-k8s.io/pod-group: pg}`,
		want: []string{"group/ml/mine min=1 queue=default priority=0: a"}, pending: []string{"group/ml/mine"},
	},
}

func TestGroupsByAnnotation(t *testing.T) {
	for name, c := range groupsByAnnotation {
		t.Run(name, c.run)
	}
}

// Metadata of pods that have an owner.
const (
	indexMeta  = "annotations: {batch.kubernetes.io/job-completion-index: %q}, ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: j, controller: true}]"
	jobSetMeta = "labels: {jobset.sigs.k8s.io/jobset-name: set, jobset.sigs.k8s.io/replicatedjob-name: %s}"
	lwsMeta    = "labels: {leaderworkerset.sigs.k8s.io/name: llm, leaderworkerset.sigs.k8s.io/group-index: \"%d\", leaderworkerset.sigs.k8s.io/worker-index: \"%d\"}"
)

var indexedPods = "a " + fmt.Sprintf(indexMeta, "0") + "\nb " + fmt.Sprintf(indexMeta, "1")

// groupsByOwner are groups that follow from the owners of pods.
var groupsByOwner = map[string]groupingTest{
	"Indexed Job of which all pods run together": {
		pods:   indexedPods,
		object: "apiVersion: batch/v1\nkind: Job\nmetadata: {namespace: ml, name: train}\nspec: {completionMode: Indexed, parallelism: 2, completions: 2}",
		want:   []string{"batchjob/ml/train min=2 queue=default priority=0: a b"}, pending: []string{"batchjob/ml/train"},
	},
	"Indexed Job that works through a list": {
		pods:   indexedPods,
		object: "apiVersion: batch/v1\nkind: Job\nmetadata: {namespace: ml, name: train}\nspec: {completionMode: Indexed, parallelism: 2, completions: 10}",
		want:   []string{"batchjob/ml/train min=1 queue=default priority=0: a b"}, pending: []string{"batchjob/ml/train"},
	},
	"Job without indexes": {
		pods:    `a ownerReferences: [{apiVersion: batch/v1, kind: Job, name: train, uid: j, controller: true}]`,
		want:    []string{"pod/ml/a min=1 queue=default priority=0: 0"},
		pending: []string{"pod/ml/a"},
	},
	"StatefulSet": {
		pods:    `a labels: {apps.kubernetes.io/pod-index: "0"}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: web, uid: s, controller: true}]`,
		want:    []string{"pod/ml/a min=1 queue=default priority=0: 0"},
		pending: []string{"pod/ml/a"},
	},
	"JobSet": {
		pods: "a " + fmt.Sprintf(jobSetMeta, "driver") + "\nb " + fmt.Sprintf(jobSetMeta, "workers") + "\nc " + fmt.Sprintf(jobSetMeta, "workers"),
		object: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {namespace: ml, name: set}
spec:
  replicatedJobs:
  - {name: driver, template: {spec: {parallelism: 1, completions: 1}}}
  - {name: workers, replicas: 2, template: {spec: {parallelism: 1, completions: 1}}}`,
		want: []string{"jobset/ml/set min=3 queue=default priority=0: a b c"}, pending: []string{"jobset/ml/set"},
	},
	"JobSet in order": {
		pods: "a " + fmt.Sprintf(jobSetMeta, "driver"),
		object: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {namespace: ml, name: set}
spec:
  startupPolicy: {startupPolicyOrder: InOrder}
  replicatedJobs: [{name: driver}, {name: workers, replicas: 2, template: {spec: {parallelism: 4}}}]`,
		want: []string{"jobset/ml/set/driver min=1 queue=default priority=0: a"}, pending: []string{"jobset/ml/set/driver"},
	},
	"LeaderWorkerSet": {
		pods: "a " + fmt.Sprintf(lwsMeta, 0, 0) + "\nb " + fmt.Sprintf(lwsMeta, 0, 1) + "\nc " + fmt.Sprintf(lwsMeta, 1, 0),
		object: `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {namespace: ml, name: llm}
spec: {replicas: 2, startupPolicy: LeaderCreated, leaderWorkerTemplate: {size: 2}}`,
		want: []string{
			"lws/ml/llm/0 min=2 queue=default priority=0 leader>=1 worker>=1: a@leader b@worker",
			"lws/ml/llm/1 min=2 queue=default priority=0 leader>=1 worker>=1: c@leader",
		},
		pending: []string{"lws/ml/llm/0"},
	},
	"LeaderWorkerSet with LeaderReady": {
		pods: "a " + fmt.Sprintf(lwsMeta, 0, 0),
		object: `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {namespace: ml, name: llm}
spec: {startupPolicy: LeaderReady, leaderWorkerTemplate: {size: 3}}`,
		want: []string{"lws/ml/llm/0/leader min=1 queue=default priority=0: a"}, pending: []string{"lws/ml/llm/0/leader"},
	},
	"LeaderWorkerSet with exclusive placement": {
		pods: "a annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: rack}, " + fmt.Sprintf(lwsMeta, 0, 0) +
			"\nb annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: rack}, " + fmt.Sprintf(lwsMeta, 1, 1),
		object: `apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {namespace: ml, name: llm}
spec: {startupPolicy: LeaderCreated, leaderWorkerTemplate: {size: 3}}`,
		want: []string{
			"lws/ml/llm/0/leader min=1 queue=default priority=0: a",
			"lws/ml/llm/1/worker min=2 queue=default priority=0: b",
		},
		pending: []string{"lws/ml/llm/0/leader"},
	},
	"JobSet with exclusive placement": {
		pods: "a annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack, batch.kubernetes.io/job-completion-index: \"0\"}, " + fmt.Sprintf(jobSetMeta, "workers"),
		want: []string{"pod/ml/a min=1 queue=default priority=0: 0"}, pending: []string{"pod/ml/a"},
	},
	"JobSet with exclusive placement by node selector": {
		pods: "a annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack, alpha.jobset.sigs.k8s.io/node-selector: \"true\"}, " + fmt.Sprintf(jobSetMeta, "workers"),
		object: `apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {namespace: ml, name: set}
spec: {replicatedJobs: [{name: workers, template: {spec: {parallelism: 2, completions: 2}}}]}`,
		want: []string{"jobset/ml/set min=2 queue=default priority=0: a"},
	},
	"MPIJob": {
		pods: `a labels: {training.kubeflow.org/job-name: mpi, training.kubeflow.org/replica-type: launcher}
b labels: {training.kubeflow.org/job-name: mpi, training.kubeflow.org/replica-type: worker}`,
		object: `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {namespace: ml, name: mpi}
spec: {mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 1}}}`,
		want: []string{"training/ml/mpi min=2 queue=default priority=0: a b"}, pending: []string{"training/ml/mpi"},
	},
	"MPIJob whose launcher waits for the workers": {
		pods: `b labels: {training.kubeflow.org/job-name: mpi, training.kubeflow.org/replica-type: worker}`,
		object: `apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {namespace: ml, name: mpi}
spec: {launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 1}}}`,
		want: []string{"training/ml/mpi/worker min=1 queue=default priority=0: b"}, pending: []string{"training/ml/mpi/worker"},
	},
	"elastic PyTorchJob": {
		pods: `a labels: {training.kubeflow.org/job-name: torch, training.kubeflow.org/replica-type: worker}`,
		object: `apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {namespace: ml, name: torch}
spec: {elasticPolicy: {minReplicas: 1, maxReplicas: 4}, pytorchReplicaSpecs: {Worker: {replicas: 4}}}`,
		want: []string{"training/ml/torch min=1 queue=default priority=0: a"}, pending: []string{"training/ml/torch"},
	},
	"RayCluster as a gang": {
		pods: `a labels: {ray.io/cluster: ray, ray.io/node-type: head}
b labels: {ray.io/cluster: ray, ray.io/node-type: worker, ray.io/group: gpu}`,
		object: `apiVersion: ray.io/v1
kind: RayCluster
metadata: {namespace: ml, name: ray, labels: {ray.io/gang-scheduling-enabled: "true"}}
spec: {workerGroupSpecs: [{groupName: gpu, replicas: 2, minReplicas: 1, numOfHosts: 1}]}`,
		want: []string{"raycluster/ml/ray min=3 queue=default priority=0: a b"},
	},
	"RayCluster that is no gang": {
		pods:   `a labels: {ray.io/cluster: ray, ray.io/node-type: head}`,
		object: "apiVersion: ray.io/v1\nkind: RayCluster\nmetadata: {namespace: ml, name: ray}\nspec: {workerGroupSpecs: [{groupName: gpu, replicas: 2}]}",
		want:   []string{"raycluster/ml/ray min=1 queue=default priority=0: a"}, pending: []string{"raycluster/ml/ray"},
	},
}

func TestGroupsByOwner(t *testing.T) {
	for name, c := range groupsByOwner {
		t.Run(name, c.run)
	}
}
