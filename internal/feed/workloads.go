package feed

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/field"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// sources are the kinds of objects that describe groups and are not part of Kubernetes.
var sources = map[schema.GroupKind]string{
	{Group: "scheduling.run.ai", Kind: "PodGroup"}:               byKAI,
	{Group: "scheduling.volcano.sh", Kind: "PodGroup"}:           byVolcano,
	{Group: "scheduling.x-k8s.io", Kind: "PodGroup"}:             byCoscheduling,
	{Group: "jobset.x-k8s.io", Kind: "JobSet"}:                   byJobSet,
	{Group: "leaderworkerset.x-k8s.io", Kind: "LeaderWorkerSet"}: byLWS,
	{Group: "kubeflow.org", Kind: "MPIJob"}:                      byTraining,
	{Group: "kubeflow.org", Kind: "PyTorchJob"}:                  byTraining,
	{Group: "kubeflow.org", Kind: "TFJob"}:                       byTraining,
	{Group: "kubeflow.org", Kind: "XGBoostJob"}:                  byTraining,
	{Group: "kubeflow.org", Kind: "PaddleJob"}:                   byTraining,
	{Group: "kubeflow.org", Kind: "JAXJob"}:                      byTraining,
	{Group: "ray.io", Kind: "RayCluster"}:                        byRay,
}

// GroupKinds returns the kinds that PutGroup reads, sorted. A scheduler must deliver the
// objects of each kind that the API server has: pods of a group wait for its object.
func GroupKinds() []schema.GroupKind {
	return slices.SortedFunc(maps.Keys(sources), func(a, b schema.GroupKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind))
	})
}

// Source returns the first part of the IDs of jobs that objects of the kind describe.
func Source(kind schema.GroupKind) string { return sources[kind] }

// describe reads what the object says about its group.
func (x *object) describe(source string) group {
	switch source {
	case byKAI:
		return x.kai()
	case byVolcano:
		return x.volcano()
	case byCoscheduling:
		return x.coscheduling()
	case byJobSet:
		return x.jobSet()
	case byLWS:
		return x.leaderWorkerSet()
	case byTraining:
		return x.training()
	}
	return x.ray()
}

// total returns the sum as a minimum, which is at least 1. It notes a sum that is not valid.
func (x *object) total(counts map[string]int) int {
	sum := int64(0)
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[name]; n < 0 || n > convert.MaxTasks {
			x.invalid([]string{"spec"}, "want from 0 to %d pods of %s, have %d", convert.MaxTasks, name, n)
		}
		sum += int64(counts[name])
	}
	return checkedMin(max(1, sum), field.Path{"spec"}, x.notes)
}

// jobSet reads a JobSet. All its replicated jobs together are a gang, unless some are
// started only after others are ready: each replicated job is then a gang of its own.
func (x *object) jobSet() group {
	spec := x.at("spec")
	g := group{minOf: map[string]int{}, apart: spec.text("startupPolicy", "startupPolicyOrder") == "InOrder"}
	for _, r := range spec.objects("replicatedJobs") {
		job := r.at("template", "spec")
		pods := job.number(1, "parallelism")
		pods = min(pods, job.number(pods, "completions"))
		if pods < 0 || pods > convert.MaxTasks || r.number(1, "replicas") > convert.MaxTasks {
			x.invalid([]string{"spec", "replicatedJobs"}, "want at most %d pods", convert.MaxTasks)
			continue
		}
		g.minOf[r.text("name")] = int(r.number(1, "replicas") * pods)
		g.apart = g.apart || len(r.objects("dependsOn")) > 0
	}
	if g.min = x.total(g.minOf); g.apart {
		return g
	}
	return group{min: g.min}
}

// leaderWorkerSet reads a LeaderWorkerSet. A leader and its workers are a gang. With
// startupPolicy LeaderReady, the workers are created only after the leader is ready: the
// leader is then placed on its own, and the workers are a gang of their own. The same holds for
// pods with exclusive placement.
func (x *object) leaderWorkerSet() group {
	size := checkedMin(x.number(1, "spec", "leaderWorkerTemplate", "size"), field.Path{"spec", "leaderWorkerTemplate", "size"}, x.notes)
	g := group{min: size, apart: x.text("spec", "startupPolicy") == "LeaderReady"}
	g.minOf = map[string]int{leader: 1, worker: max(1, size-1)}
	if size > 1 {
		g.subgroups = []cluster.Subgroup{{Name: leader, Min: 1}, {Name: worker, Min: size - 1}}
	}
	return g
}

// training reads a job of the Training Operator or of the MPI Operator. Its minimum is the
// minAvailable of its scheduling policy, or else all its replicas. An elastic PyTorchJob
// needs only the least number of workers that it states. If the launcher of an MPIJob is
// created only after the workers are ready, it is placed on its own.
func (x *object) training() group {
	spec := x.at("spec")
	counts := map[string]int{}
	for _, key := range slices.Sorted(maps.Keys(spec.fields)) {
		if !strings.HasSuffix(key, "ReplicaSpecs") {
			continue
		}
		types := spec.at(key)
		for _, kind := range slices.Sorted(maps.Keys(types.fields)) {
			counts[strings.ToLower(kind)] = int(types.number(1, kind, "replicas"))
		}
	}
	if least := spec.number(0, "elasticPolicy", "minReplicas"); least > 0 {
		counts[worker] = int(least)
	}
	g := group{min: x.total(counts)}
	if spec.text("launcherCreationPolicy") == "WaitForWorkersReady" {
		g.apart, g.minOf = true, counts
	}
	policy := spec.at("runPolicy", "schedulingPolicy")
	g.queue, g.class = policy.text("queue"), policy.text("priorityClass")
	if n := policy.number(0, "minAvailable"); n != 0 && !g.apart {
		g.min = checkedMin(n, field.Path{"spec", "runPolicy", "schedulingPolicy", "minAvailable"}, x.notes)
	}
	return g
}

// ray reads a RayCluster. If its label says so, the head and the workers are a gang. The
// minimum is then the head and the replicas that the cluster starts with, or the least
// number of them if it scales by itself. Otherwise each pod is placed on its own.
func (x *object) ray() group {
	if x.text("metadata", "labels", "ray.io/gang-scheduling-enabled") != "true" {
		return group{min: 1}
	}
	spec := x.at("spec")
	counts := map[string]int{"head": 1}
	scales, _ := spec.value("enableInTreeAutoscaling").(bool)
	for _, g := range spec.objects("workerGroupSpecs") {
		replicas := g.number(g.number(0, "minReplicas"), "replicas")
		if scales {
			replicas = g.number(0, "minReplicas")
		}
		hosts := g.number(1, "numOfHosts")
		if replicas < 0 || replicas > convert.MaxTasks || hosts < 0 || hosts > convert.MaxTasks {
			x.invalid([]string{"spec", "workerGroupSpecs"}, "want at most %d pods", convert.MaxTasks)
			continue
		}
		counts["worker group "+g.text("groupName")] = int(replicas * hosts)
	}
	return group{min: x.total(counts)}
}
