package ctl_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const queues = `apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: research}
spec: {quota: {nvidia.com/gpu: 4}}
---
apiVersion: berth.dev/v1alpha1
kind: Queue
metadata: {name: batch}
spec: {limits: {nvidia.com/gpu: 2}}
`

// createJob creates a Job and its pods, which no controller does here.
func (w *world) createJob(name string, pods int, gpus int64, indexed bool) {
	w.Helper()
	n := int32(pods)
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: batchv1.JobSpec{
			Parallelism: &n, Completions: &n,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "image"}}}},
		},
	}
	if indexed {
		mode := batchv1.IndexedCompletion
		job.Spec.CompletionMode = &mode
	}
	job, err := w.client.BatchV1().Jobs(namespace).Create(w.ctx, job, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	for i := range pods {
		w.create(pod(fmt.Sprintf("%s-%d", name, i), gpus, func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
			if indexed {
				p.Annotations["batch.kubernetes.io/job-completion-index"] = fmt.Sprint(i)
			}
		}))
	}
}

// TestWorkloads checks how workloads are named, and the answers about queues.
func TestWorkloads(t *testing.T) {
	w := newWorld(t)
	w.Install("../../config/crd/queues.berth.dev.yaml")
	w.apply(queues)
	w.addNodes(node("gpu-1", 4), node("gpu-2", 4))
	w.create(pod("a", 2, inQueue("research")))
	w.bind("a", "gpu-1")
	w.create(pod("b", 3, inQueue("batch")))
	w.createJob("indexed", 3, 4, true)
	w.createJob("plain", 2, 9, false)
	w.create(pod("short-0", 1, inGang("short", 2)))
	w.create(pod("lost", 1, func(p *corev1.Pod) { p.Labels["scheduling.x-k8s.io/pod-group"] = "absent" }))
	w.create(pod("wrong", 1, func(p *corev1.Pod) { p.Labels["berth.dev/group-name"] = "wrong" }))
	w.create(pod("short", 1))
	for _, c := range []struct{ file, args string }{
		{"workloads-queues.txt", "queues"},
		{"workloads-limit.txt", "why b"},
		{"workloads-indexed.txt", "why job/indexed"},
		{"workloads-plain.txt", "why job/plain"},
		{"workloads-set.txt", "whatif --set queue/batch.spec.limits={nvidia.com/gpu: 4}"},
		{"workloads-top.txt", "top"},
	} {
		t.Run(strings.TrimSuffix(c.file, ".txt"), func(t *testing.T) {
			w.TB = t
			r := w.run(strings.SplitN(c.args, " ", 3)...)
			golden(t, c.file, r.stderr+r.stdout)
			if r.code != 0 {
				t.Errorf("exit code %d", r.code)
			}
		})
	}
	for args, same := range map[string]string{
		"why batchjob/default/indexed": "why job/indexed", "why indexed": "why job/indexed", "why job.batch/indexed": "why job/indexed",
		"why jobs/default/indexed -n kube-system": "why job/indexed", "why pods/b": "why b",
	} {
		if got, want := w.answer(strings.Fields(args)...), w.answer(strings.Fields(same)...); got != want {
			t.Errorf("kubectl berth %s differs from kubectl berth %s", args, same)
		}
	}
	for args, want := range map[string]string{
		"why lost":           "coscheduling/default/absent is not scheduled: metadata: waiting for the object that describes their group (coscheduling default/absent)",
		"why wrong":          `group/default/wrong is not scheduled: metadata.annotations["berth.dev/group-min-member"]: the pod names the group "wrong" and not its minimum; add berth.dev/group-min-member`,
		"why podgroup/short": "group/default/short is not scheduled: it has 1 of the 2 pods that are placed together; it is considered when it has them all",
		"why short-0":        "group/default/short is not scheduled: it has 1 of the 2 pods that are placed together; it is considered when it has them all",
		"why short":          `"short" is a pod and a job; name pod/short or group/default/short`,
	} {
		r := w.run(strings.Fields(args)...)
		if !strings.HasSuffix(r.stderr, "kubectl berth: "+want+"\n") || r.code != 2 {
			t.Errorf("kubectl berth %s: exit code %d, %q; want %q", args, r.code, r.stderr, want)
		}
	}
}
