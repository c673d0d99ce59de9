package testcluster

import (
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// writers is the number of pods that CreateMany creates at the same time.
const writers = 16

// Pod returns a pod that berth-scheduler places.
func Pod(name string, gpus int64, edit ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			SchedulerName: "berth-scheduler",
			Containers:    []corev1.Container{{Name: "main", Image: "image"}},
		},
	}
	if gpus > 0 {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{GPU: *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

// InGang puts a pod into a gang by labels.
func InGang(name string, min int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels["berth.dev/group-name"], p.Labels["berth.dev/group-min-member"] = name, fmt.Sprint(min)
	}
}

// InQueue puts a pod into a queue.
func InQueue(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels["berth.dev/queue"] = name }
}

// Create creates the pods.
func (c *Cluster) Create(pods ...*corev1.Pod) {
	c.Helper()
	for _, p := range pods {
		if _, err := c.Client.CoreV1().Pods(p.Namespace).Create(c.Ctx, p, metav1.CreateOptions{}); err != nil {
			c.Fatal(err)
		}
	}
}

// CreateMany creates pods with several requests at the same time.
// It returns when each was created.
func (c *Cluster) CreateMany(count int, build func(int) *corev1.Pod) []time.Time {
	c.Helper()
	created := make([]time.Time, count)
	var wg sync.WaitGroup
	errs := make([]error, count)
	slots := make(chan struct{}, writers)
	for i := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			_, errs[i] = c.Client.CoreV1().Pods(Namespace).Create(c.Ctx, build(i), metav1.CreateOptions{})
			created[i] = time.Now()
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			c.Fatal(err)
		}
	}
	return created
}

// Pods returns all pods, by name.
func (c *Cluster) Pods() map[string]*corev1.Pod {
	c.Helper()
	list, err := c.Client.CoreV1().Pods(Namespace).List(c.Ctx, metav1.ListOptions{})
	if err != nil {
		c.Fatal(err)
	}
	out := map[string]*corev1.Pod{}
	for i := range list.Items {
		out[list.Items[i].Name] = &list.Items[i]
	}
	return out
}

// DeletePods deletes all pods. The API server ends the deletion of very many after a minute.
func (c *Cluster) DeletePods() {
	c.Helper()
	c.Eventually(func() string {
		err := c.Client.CoreV1().Pods(Namespace).DeleteCollection(c.Ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
		if n := len(c.Pods()); n > 0 {
			return fmt.Sprintf("%d pods are left: %v", n, err)
		}
		return ""
	})
}

// ConditionText returns the condition PodScheduled of a pod.
func ConditionText(p *corev1.Pod) string {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return "no condition"
}
