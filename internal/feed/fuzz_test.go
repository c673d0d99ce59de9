package feed

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// FuzzGroup reads a spec as that of each kind of group, with a pod in it: State accepts all
// facts, and a group that is not valid has a note.
func FuzzGroup(f *testing.F) {
	for _, seed := range []string{
		`{"minMember":2,"queue":"q","subGroups":[{"name":"a","parent":"b"},{"name":"b","minSubGroup":1}],"minSubGroup":1}`,
		`{"minMember":2,"minTaskMember":{"a":1}}`, `{"subGroups":[{"name":"a"},{"name":"a","parent":"a"}]}`, `{"minMember":1.5}`,
		`{"replicatedJobs":[{"name":"a","replicas":2,"template":{"spec":{"parallelism":3}},"dependsOn":[{"name":"b"}]}]}`,
		`{"startupPolicy":"LeaderReady","leaderWorkerTemplate":{"size":4}}`, `{"startupPolicy":{"startupPolicyOrder":"InOrder"}}`,
		`{"mpiReplicaSpecs":{"Worker":{"replicas":-1}},"launcherCreationPolicy":"WaitForWorkersReady"}`,
		`{"workerGroupSpecs":[{"replicas":2,"numOfHosts":4}]}`, `[]`, `{"minMember":99999999999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var spec any
		if json.Unmarshal(data, &spec) != nil {
			return
		}
		x := newFixture(t)
		for i, kind := range GroupKinds() {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "metadata": map[string]any{
				"namespace": "ml", "name": kind.Kind, "labels": map[string]any{"ray.io/gang-scheduling-enabled": "true"}}}}
			o.SetAPIVersion(kind.Group + "/v1")
			o.SetKind(kind.Kind)
			before := len(x.notes)
			x.put(o)
			group := x.feed.groups[groupKey{sources[kind], nameOf(&onePod(kind.Kind, "").ObjectMeta)}]
			if group.min == 0 && len(x.notes) == before {
				t.Errorf("%s has no minimum and no note", kind)
			}
			x.put(onePod("p"+string(rune('a'+i)), "", func(p *corev1.Pod) { nameGroup(p, sources[kind], kind.Kind) }))
		}
		if err := x.state.Audit(); err != nil {
			t.Error(err)
		}
		if jobs := len(x.state.Jobs()); jobs == 0 {
			t.Error("no pod is a task")
		}
	})
}

// nameGroup makes the pod a member of the group.
func nameGroup(p *corev1.Pod, source, name string) {
	switch source {
	case byKAI:
		p.Annotations["pod-group-name"], p.Labels["kai.scheduler/subgroup-name"] = name, "a"
	case byVolcano:
		p.Annotations["scheduling.volcano.sh/group-name"], p.Annotations["volcano.sh/task-spec"] = name, "a"
	case byCoscheduling:
		p.Labels["scheduling.x-k8s.io/pod-group"] = name
	case byJobSet:
		p.Labels["jobset.sigs.k8s.io/jobset-name"], p.Labels["jobset.sigs.k8s.io/replicatedjob-name"] = name, "a"
	case byLWS:
		p.Labels["leaderworkerset.sigs.k8s.io/name"], p.Labels["leaderworkerset.sigs.k8s.io/group-index"] = name, "0"
	case byTraining:
		p.Labels["training.kubeflow.org/job-name"], p.Labels["training.kubeflow.org/replica-type"] = name, worker
	case byRay:
		p.Labels["ray.io/cluster"] = name
	}
}
