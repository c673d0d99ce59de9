package ctl

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/english"
	"github.com/berth-project/berth/internal/explain"
	"github.com/berth-project/berth/internal/feed"
	"github.com/berth-project/berth/internal/nearest"
	corev1 "k8s.io/api/core/v1"
)

const (
	kindPod   = "pod"
	kindModel = "model"
)

// podNames are the ways in which a user writes the kind Pod.
var podNames = []string{"pod", "pods", "po"}

// sources are the ways of grouping, which are the first part of the IDs of jobs, by the kind
// that a user writes. A kind that is not listed is the first part itself.
var sources = map[string][]string{
	"job":              {"batchjob", "group", "podgroup", "kai", "volcano", "coscheduling", "koordinator", "jobset", "training", "raycluster", "lws"},
	"group":            {"group", "podgroup", "kai", "volcano", "coscheduling", "koordinator"},
	"podgroup":         {"podgroup", "kai", "volcano", "coscheduling", "koordinator", "group"},
	"leaderworkerset":  {"lws"},
	"mpijob":           {"training"},
	"pytorchjob":       {"training"},
	"tfjob":            {"training"},
	"xgboostjob":       {"training"},
	"paddlejob":        {"training"},
	"jaxjob":           {"training"},
	"rayjob":           {"raycluster"},
	"gang":             {"koordinator"},
	"leaderworkersets": {"lws"},
}

// reference is a workload as a user names it.
type reference struct{ kind, namespace, name string }

// parseReference splits NAME, KIND/NAME or KIND/NAMESPACE/NAME.
func parseReference(text, namespace string) reference {
	parts := strings.Split(text, "/")
	r := reference{namespace: namespace, name: parts[len(parts)-1]}
	if len(parts) > 1 {
		r.kind, _, _ = strings.Cut(strings.ToLower(parts[0]), ".") // job.batch/NAME
	}
	if len(parts) == 3 {
		r.namespace = parts[1]
	}
	switch {
	case slices.Contains(podNames, r.kind):
		r.kind = kindPod
	case r.kind == kindModel+"s":
		r.kind = kindModel
	case r.kind != "" && sources[r.kind] == nil && sources[strings.TrimSuffix(r.kind, "s")] != nil:
		r.kind = strings.TrimSuffix(r.kind, "s")
	}
	return r
}

// workload returns the ID of the job that the user names. Notes say which one was chosen if
// the name means several.
func (p *program) workload(w *world, in *inputs, text string) (string, error) {
	if in.State.Job(text) != nil {
		return text, nil
	}
	r := parseReference(text, w.namespace)
	var pod *corev1.Pod
	if r.kind == "" || r.kind == kindPod {
		for _, o := range w.pods() {
			if o.Namespace == r.namespace && o.Name == r.name {
				pod = o
			}
		}
	}
	jobs := matchingJobs(in.State, r)
	owned := len(jobs) == 0
	if owned {
		jobs = ownedJobs(w, in, r)
	}
	ofPod := func(j *cluster.Job) bool {
		key, _ := in.Task(pod.UID)
		return key.Job == j.ID
	}
	switch {
	case pod != nil && len(jobs) > 0 && !slices.ContainsFunc(jobs, ofPod):
		return "", fmt.Errorf("%q is a pod and a job; name %s/%s or %s", text, kindPod, r.name, jobs[0].ID)
	case pod != nil:
		p.notePodOfModel(w, pod)
		return p.workloadOfPod(in, pod)
	case len(jobs) == 0:
		return "", notFound(w, in, r, text)
	}
	chosen := jobs[0]
	if at := slices.IndexFunc(jobs, in.State.View().IsPending); at >= 0 {
		chosen = jobs[at]
	}
	if owned {
		fmt.Fprintf(p.answers.Stderr(), "note: the pods of job/%s are placed one by one; the answer is about %s, one of %s\n", r.name, chosen.ID, english.Count(len(jobs), "pod"))
	} else if len(jobs) > 1 {
		fmt.Fprintf(p.answers.Stderr(), "note: %q means %s; the answer is about %s\n", text, english.Count(len(jobs), "job"), chosen.ID)
	}
	return chosen.ID, nil
}

// matchingJobs returns the jobs of several pods that the reference may mean, sorted by ID.
func matchingJobs(state *cluster.State, r reference) []*cluster.Job {
	if r.kind == kindPod {
		return nil
	}
	allowed := sources[r.kind]
	if r.kind == "" {
		allowed = sources["job"]
	} else if allowed == nil {
		allowed = []string{r.kind}
	}
	var out []*cluster.Job
	for _, j := range state.Jobs() {
		parts := strings.SplitN(j.ID, "/", 3)
		if len(parts) == 3 && slices.Contains(allowed, parts[0]) && parts[1] == r.namespace &&
			(parts[2] == r.name || strings.HasPrefix(parts[2], r.name+"/")) {
			out = append(out, j)
		}
	}
	return out
}

// ownedJobs returns the jobs of the pods that a Job owns which is not a gang, sorted by ID.
func ownedJobs(w *world, in *inputs, r reference) []*cluster.Job {
	if r.kind != "" && r.kind != "job" {
		return nil
	}
	var out []*cluster.Job
	for _, o := range w.pods() {
		owns := func(owner string) bool { return owner == r.name }
		if o.Namespace != r.namespace || !slices.ContainsFunc(jobOwners(o), owns) {
			continue
		}
		if key, isTask := in.Task(o.UID); isTask && in.State.Job(key.Job) != nil {
			out = append(out, in.State.Job(key.Job))
		}
	}
	slices.SortFunc(out, func(a, b *cluster.Job) int { return cmp.Compare(a.ID, b.ID) })
	return slices.Compact(out)
}

// jobOwners returns the names of the Jobs that own the pod.
func jobOwners(o *corev1.Pod) []string {
	var out []string
	for _, owner := range o.OwnerReferences {
		if owner.Kind == "Job" {
			out = append(out, owner.Name)
		}
	}
	return out
}

// workloadOfPod returns the ID of the job of the pod, or an error that says why the pod is not
// scheduled by Berth.
func (p *program) workloadOfPod(in *inputs, o *corev1.Pod) (string, error) {
	id := kindPod + "/" + o.Namespace + "/" + o.Name
	if !slices.Contains(p.flags.names, o.Spec.SchedulerName) {
		text := "it is not on a node"
		if o.Spec.NodeName != "" {
			text = "it is on node " + o.Spec.NodeName
		}
		return "", fmt.Errorf("%s has the scheduler name %s, and Berth places pods with %s; %s. --scheduler-name names others", id, o.Spec.SchedulerName, explain.List(p.flags.names, 3), text)
	}
	key, isTask := in.Task(o.UID)
	if isTask && in.State.Job(key.Job) != nil && in.State.Task(cluster.TaskRef{Job: key.Job, Name: key.Task}) != nil {
		if !strings.HasPrefix(key.Job, kindPod+"/") {
			fmt.Fprintf(p.answers.Stderr(), "note: %s is a pod of %s, and the answer is about all its pods\n", id, key.Job)
		}
		return key.Job, nil
	}
	why := cmp.Or(convert.WhyLeftOut(o), in.noteAbout(o), "it is being deleted")
	return "", fmt.Errorf("%s is not scheduled: %s", id, why)
}

// noteAbout returns what was noted about the pod; "" if nothing was.
func (in *inputs) noteAbout(o *corev1.Pod) string {
	for i := range in.Notes {
		if n := &in.Notes[i]; n.Kind == "Pod" && n.Namespace == o.Namespace && n.Name == o.Name {
			return reasonOf(n)
		}
	}
	return ""
}

// whyIdle returns why the job is not considered although it has pods without a node: the object
// that describes its group is missing or wrong, or it has fewer pods than its minimum. It
// returns "" for other jobs.
func whyIdle(w *world, in *inputs, id string) string {
	j := in.State.Job(id)
	if !j.Open || in.State.View().IsPending(j) || j.Placed() > 0 {
		return ""
	}
	pods := 0
	for _, o := range w.pods() {
		if key, _ := in.Task(o.UID); key.Job != id {
			continue
		}
		if note := in.noteAbout(o); note != "" {
			return note
		}
		pods++
	}
	if least := j.Alternatives[0].Min; pods < least {
		return fmt.Sprintf("it has %d of the %d pods that are placed together; it is considered when it has them all", pods, least)
	}
	return ""
}

// reasonOf returns the note without the name of its object.
func reasonOf(n *feed.Note) string {
	_, text, _ := strings.Cut(noteText(n), ": ")
	return text
}

// notFound returns an error that lists the nearest names.
func notFound(w *world, in *inputs, r reference, text string) error {
	here, elsewhere := map[string]bool{}, map[string]bool{}
	see := func(kind, namespace, name string) {
		if r.kind != "" && (r.kind == kindPod) != (kind == kindPod) {
			return
		}
		if namespace == r.namespace {
			here[name] = true
		} else if name == r.name {
			elsewhere[namespace] = true
		}
	}
	for _, o := range w.pods() {
		see(kindPod, o.Namespace, o.Name)
		for _, owner := range jobOwners(o) {
			see("job", o.Namespace, owner)
		}
	}
	for _, j := range in.State.Jobs() {
		if parts := strings.SplitN(j.ID, "/", 3); len(parts) == 3 {
			see(parts[0], parts[1], parts[2])
		}
	}
	pods := len(here) > 0
	if list, _ := w.models(); r.kind == "" {
		for _, m := range list {
			see(kindModel, m.Namespace, m.Name)
		}
	}
	message := fmt.Sprintf("namespace %s has no pod or job %q", r.namespace, text)
	near := nearestNames(r.name, slices.Sorted(maps.Keys(here)))
	switch {
	case len(elsewhere) > 0:
		message += fmt.Sprintf("; namespace %s has one (see -n)", explain.List(slices.Sorted(maps.Keys(elsewhere)), 3))
	case len(near) > 0:
		message += "; the nearest names are " + explain.List(near, len(near))
	case !pods:
		message += "; it has no pods"
	}
	return &unknownError{message}
}

// unknownError is the error about a name that no pod and no job has.
type unknownError struct{ message string }

func (e *unknownError) Error() string { return e.message }

// nearestNames returns up to five names that are similar to the name, the most similar first.
func nearestNames(name string, names []string) []string {
	var out []string
	for len(out) < 5 {
		near, found := nearest.Find(name, names)
		if !found {
			break
		}
		out = append(out, near)
		names = slices.DeleteFunc(names, func(n string) bool { return n == near })
	}
	return out
}
