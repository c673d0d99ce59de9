package manifest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// workload returns a manifest of a workload.
func workload(kind, metadata, rest string) string {
	versions := map[string]string{
		"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
		"RayCluster": "ray.io/v1", "PyTorchJob": "kubeflow.org/v1", "VolcanoJob": "batch.volcano.sh/v1alpha1",
	}
	version := versions[kind]
	return "apiVersion: " + version + "\nkind: " + strings.TrimPrefix(kind, "Volcano") + "\nmetadata: {name: w, namespace: ml" + metadata + "}\n" + rest + "\n"
}

const template = "template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}"

// expandAll returns a bundle of the text with the pods of its workloads.
func expandAll(t *testing.T, text string) *Bundle {
	t.Helper()
	b, err := Parse("f", []byte(coreNode+text))
	if err != nil {
		t.Fatal(err)
	}
	if err := (expander{b}).all(); err != nil {
		t.Fatal(err)
	}
	return b
}

// podNames returns the names of the pods, sorted.
func podNames(b *Bundle) []string {
	var out []string
	for _, p := range b.Pods {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func TestExpandedPods(t *testing.T) {
	owned := func(kind, name string) string {
		return ", ownerReferences: [{apiVersion: v1, kind: " + kind + ", name: " + name + ", uid: u, controller: true}]"
	}
	for name, c := range map[string]struct {
		text string
		want []string
		note string // a part of one note
	}{
		"Deployment":                    {workload("Deployment", "", "spec: {replicas: 2, "+template+"}"), []string{"w-0", "w-1"}, "2 pods of 1 workload"},
		"Deployment of none":            {workload("Deployment", "", "spec: {replicas: 0, "+template+"}"), nil, ""},
		"Deployment with a pod":         {workload("Deployment", "", "spec: {selector: {matchLabels: {app: w}}, "+template+"}") + "---\napiVersion: v1\nkind: Pod\nmetadata: {name: other, namespace: ml, labels: {app: w}}\nspec: {containers: [{name: c}]}\n", []string{"other"}, ""},
		"StatefulSet with a start":      {workload("StatefulSet", "", "spec: {ordinals: {start: 3}, "+template+"}"), []string{"w-3"}, ""},
		"Job, suspended":                {workload("Job", "", "spec: {suspend: true, "+template+"}"), nil, "workloads that are suspended, without pods in the input, and therefore not placed: 1 Job"},
		"Job of another controller":     {workload("Job", "", "spec: {managedBy: example.com/x, "+template+"}"), nil, "managed by a controller of their own (managedBy)"},
		"Job of the Job controller":     {workload("Job", "", "spec: {managedBy: kubernetes.io/job-controller, "+template+"}"), []string{"w-0"}, ""},
		"Job of a CronJob":              {workload("Job", owned("CronJob", "x"), "spec: {"+template+"}"), []string{"w-0"}, ""},
		"Job of a JobSet that is there": {workload("Job", owned("JobSet", "w"), "spec: {"+template+"}") + "---\n" + workload("JobSet", "", "spec: {replicatedJobs: [{name: r, template: {spec: {"+template+"}}}]}"), []string{"w-r-0-0"}, "1 pod of 1 workload"},
		"StatefulSet of a pod":          {workload("StatefulSet", owned("Pod", "x"), "spec: {"+template+"}"), nil, ""},
		"JobSet, suspended":             {workload("JobSet", "", "spec: {suspend: true, replicatedJobs: [{name: r, template: {spec: {"+template+"}}}]}"), nil, "not placed: 1 JobSet"},
		"JobSet, ended":                 {workload("JobSet", "", "spec: {replicatedJobs: [{name: r, template: {spec: {"+template+"}}}]}\nstatus: {terminalState: Failed}"), nil, ""},
		"PyTorchJob, ended":             {workload("PyTorchJob", "", "spec: {pytorchReplicaSpecs: {Master: {"+template+"}}}\nstatus: {conditions: [{type: Failed, status: \"True\"}]}"), nil, ""},
		"PyTorchJob, suspended":         {workload("PyTorchJob", "", "spec: {runPolicy: {suspend: true}, pytorchReplicaSpecs: {Master: {"+template+"}}}"), nil, "not placed: 1 PyTorchJob"},
		"PyTorchJob":                    {workload("PyTorchJob", "", "spec: {pytorchReplicaSpecs: {Master: {"+template+"}, Worker: {replicas: 2, "+template+"}}}"), []string{"w-master-0", "w-worker-0", "w-worker-1"}, "3 pods of 1 workload"},
		"Volcano, ended":                {workload("VolcanoJob", "", "spec: {tasks: [{name: t, "+template+"}]}\nstatus: {state: {phase: Completed}}"), nil, ""},
		"Volcano":                       {workload("VolcanoJob", "", "spec: {tasks: [{replicas: 2, "+template+"}, {name: t, "+template+"}]}"), []string{"w-default0-0", "w-default0-1", "w-t-0"}, ""},
		"RayCluster, limits":            {workload("RayCluster", "", "spec: {headGroupSpec: {"+template+"}, workerGroupSpecs: [{groupName: g, replicas: 9, maxReplicas: 1, "+template+"}, {groupName: h, replicas: 0, minReplicas: 1, "+template+"}, {groupName: s, suspend: true, replicas: 2, "+template+"}]}"), []string{"w-g-worker-0", "w-h-worker-0", "w-head"}, ""},
		"an unknown field":              {workload("Deployment", "", "spec: {template: {spec: {gpus: 3, containers: [{name: c}]}}}"), []string{"w-0"}, "1 workload with the unknown field spec.gpus of a pod template, which berth does not read: deployment/ml/w"},
		"a label of Kueue":              {workload("Deployment", ", labels: {kueue.x-k8s.io/queue-name: q}", "spec: {"+template+"}"), []string{"w-0"}, "1 workload with the label kueue.x-k8s.io/queue-name, which berth does not read: deployment/ml/w"},
		"a namespace with a selector":   {"apiVersion: v1\nkind: Namespace\nmetadata: {name: ml, annotations: {openshift.io/node-selector: type=gpu}}\n---\n" + workload("Deployment", "", "spec: {"+template+"}"), []string{"w-0"}, "1 namespace with the annotation openshift.io/node-selector, which berth does not apply to the pods that --expand makes: ml"},
		"keys that are no texts":        {workload("RayCluster", "", "spec: {headGroupSpec: {"+template+"}, 3: x}"), []string{"w-head"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := expandAll(t, c.text)
			if diff := cmp.Diff(c.want, podNames(b)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if _, err := b.State(); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(b.Notes, func(n string) bool { return strings.Contains(n, c.note) }) && c.note != "" {
				t.Errorf("no note has %q: %q", c.note, b.Notes)
			}
			if i := slices.IndexFunc(b.Notes, func(n string) bool { return strings.Contains(n, "--expand makes their pods") }); i >= 0 {
				t.Errorf("after --expand, there is the note %q", b.Notes[i])
			}
		})
	}
}

// TestExpandedSpecs checks what controllers add to the templates.
func TestExpandedSpecs(t *testing.T) {
	volume := func(p *corev1.Pod) []string {
		var out []string
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil {
				out = append(out, v.Name+"="+v.PersistentVolumeClaim.ClaimName)
			}
		}
		return out
	}
	for name, c := range map[string]struct {
		text string
		get  func(*corev1.Pod) []string
		want []string // of the last pod
	}{
		"claim templates of a StatefulSet": {
			workload("StatefulSet", "", "spec: {volumeClaimTemplates: [{metadata: {name: data}}], template: {spec: {containers: [{name: c}], volumes: [{name: data, emptyDir: {}}]}}}"), volume, []string{"data=data-w-0"},
		},
		"claim templates of a LeaderWorkerSet": {
			workload("LeaderWorkerSet", "", "spec: {leaderWorkerTemplate: {size: 2, volumeClaimTemplates: [{metadata: {name: data}}], workerTemplate: {spec: {containers: [{name: c}]}}}}"), volume, []string{"data=data-w-0-1"},
		},
		"volumes of a job of Volcano": {
			workload("VolcanoJob", "", "spec: {volumes: [{mountPath: /a, volumeClaimName: a}, {mountPath: /b, volumeClaim: {}}, {mountPath: /c}], tasks: [{name: t, "+template+"}]}"), volume, []string{"a=a", "w-volume-1=w-volume-1"},
		},
		"the scheduler and the class of a job of Volcano": {
			workload("VolcanoJob", "", "spec: {schedulerName: volcano, priorityClassName: high, tasks: [{name: t, "+template+"}]}"),
			func(p *corev1.Pod) []string { return []string{p.Spec.SchedulerName, p.Spec.PriorityClassName} }, []string{"volcano", "high"},
		},
		"the autoscaler of a RayCluster": {
			workload("RayCluster", "", "spec: {enableInTreeAutoscaling: true, headGroupSpec: {"+template+"}}"),
			func(p *corev1.Pod) []string {
				return []string{p.Spec.Containers[1].Name, p.Spec.Containers[1].Resources.Requests.Cpu().String()}
			}, []string{"autoscaler", "500m"},
		},
		"the autoscaler of a RayCluster with resources": {
			workload("RayCluster", "", "spec: {enableInTreeAutoscaling: true, autoscalerOptions: {resources: {requests: {cpu: 2}}}, headGroupSpec: {"+template+"}}"),
			func(p *corev1.Pod) []string {
				return []string{p.Spec.Containers[1].Resources.Requests.Cpu().String()}
			}, []string{"2"},
		},
		"labels of a RayCluster": {
			workload("RayCluster", ", labels: {kai.scheduler/queue: q, ray.io/priority-class-name: high, app: x}", "spec: {headGroupSpec: {"+template+"}}"),
			func(p *corev1.Pod) []string {
				return append(slices.Sorted(maps.Keys(p.Labels)), p.Spec.PriorityClassName)
			}, []string{"app", "kai.scheduler/queue", "ray.io/cluster", "ray.io/group", "high"},
		},
		"a node that the template names": {
			workload("Deployment", "", "spec: {template: {spec: {nodeName: n, containers: [{name: c}]}}}"),
			func(p *corev1.Pod) []string {
				f := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]
				return append([]string{p.Spec.NodeName, f.Key}, f.Values...)
			}, []string{"", "metadata.name", "n"},
		},
		"exclusive Jobs of a JobSet by labels of nodes": {
			workload("JobSet", ", annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack, alpha.jobset.sigs.k8s.io/node-selector: x}", "spec: {replicatedJobs: [{name: r, replicas: 2, template: {spec: {"+template+"}}}]}"),
			func(p *corev1.Pod) []string {
				return []string{p.Spec.NodeSelector["alpha.jobset.sigs.k8s.io/namespaced-job"], p.Spec.Tolerations[0].Key}
			}, []string{"ml_w-r-1", "alpha.jobset.sigs.k8s.io/no-schedule"},
		},
		"exclusive Jobs of one replicated job": {
			workload("JobSet", "", "spec: {replicatedJobs: [{name: r, replicas: 2, template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}, spec: {parallelism: 3, "+template+"}}}]}"),
			func(p *corev1.Pod) []string {
				return []string{p.Annotations["berth.dev/group-name"], p.Annotations["berth.dev/group-min-member"], p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey}
			}, []string{"w-r-1", "3", "rack"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := expandAll(t, c.text)
			if len(b.Pods) == 0 {
				t.Fatal("no pods were made")
			}
			if diff := cmp.Diff(c.want, c.get(b.Pods[len(b.Pods)-1])); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestExpandErrors checks what is wrong in workloads.
func TestExpandErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a number": {workload("Deployment", "", "spec: {replicas: many, "+template+"}"), `f:6:1: replicas: want a whole number, have "many"`},
		"template": {workload("Deployment", "", "spec: {template: {spec: {containers: 3}}}"), "f:6:1: the pod template cannot be read: cannot restore slice from int64"},
		"too many": {workload("Deployment", "", "spec: {replicas: 3000000, "+template+"}"), "f:6:1: spec.replicas: want from 0 to 200000 pods, have 3000000"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := Parse("f", []byte(coreNode+c.text))
			if err != nil {
				t.Fatal(err)
			}
			if err := (expander{b}).all(); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

// TestExpandAgain checks that a change of a workload makes its pods anew.
func TestExpandAgain(t *testing.T) {
	b := expandAll(t, workload("VolcanoJob", "", "spec: {tasks: [{name: t, replicas: 2, "+template+"}]}"))
	for _, step := range []struct {
		set  string
		want []string
	}{
		{"volcanojob/ml/w.spec.tasks[0].replicas=1", []string{"w-t-0"}},
		{"volcanojob/ml/w.spec.tasks[0].name=x", []string{"w-x-0"}},
	} {
		if err := b.Set(step.set); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, podNames(b)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", step.set, diff)
		}
		if _, err := b.State(); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzExpand checks that no workload makes the expansion panic.
func FuzzExpand(f *testing.F) {
	for _, kind := range []string{"Deployment", "StatefulSet", "Job", "JobSet", "LeaderWorkerSet", "RayCluster", "PyTorchJob", "VolcanoJob"} {
		f.Add(workload(kind, "", "spec: {replicas: 2, suspend: false, "+template+"}"))
	}
	for _, text := range []string{
		workload("JobSet", ", annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: a}", "spec: {volumeClaimPolicies: [{templates: [{metadata: {name: x}}, 3]}], replicatedJobs: [{name: r, replicas: 2, template: {spec: {parallelism: 2, "+template+"}}}, 4]}"),
		workload("LeaderWorkerSet", ", annotations: {leaderworkerset.sigs.k8s.io/exclusive-topology: a}", "spec: {leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {nodeName: n, affinity: {nodeAffinity: {}}, containers: [{}]}}}}"),
		workload("RayCluster", "", "spec: {enableInTreeAutoscaling: true, autoscalerOptions: {resources: 3}, headGroupSpec: {"+template+"}, workerGroupSpecs: [{replicas: 1, numOfHosts: 2, "+template+"}]}"),
		workload("VolcanoJob", "", "spec: {minAvailable: 0, volumes: [{volumeClaim: {}}], networkTopology: {1: 2}, tasks: [{replicas: 1, minAvailable: -1, dependsOn: {name: [x]}, "+template+"}]}"),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b, err := Parse("f", []byte(coreNode+text))
		if err != nil || (expander{b}).all() != nil {
			return
		}
		_, _ = b.State() // it may return an error, and must not panic
	})
}
