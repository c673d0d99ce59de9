package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The message about what is read names every kind.
func TestWhatIsReadNamesEveryKind(t *testing.T) {
	for _, k := range kinds {
		for _, name := range kindNames(k.version) {
			if !strings.Contains(whatIsRead, strings.TrimSuffix(name, "List")) {
				t.Errorf("%s of %s is read, and %q does not say so", name, k.version, whatIsRead)
			}
		}
	}
}

// TestSkippedKinds reads a dump of everything: objects of other kinds are counted and skipped.
func TestSkippedKinds(t *testing.T) {
	text := object("Node", "n", "spec: {resources: {cpu: 1}}")
	for _, kind := range []string{
		"v1 Binding", "v1 ComponentStatus", "v1 ConfigMap", "v1 Endpoints", "v1 Event", "v1 LimitRange", "v1 PersistentVolume",
		"v1 PersistentVolumeClaim", "v1 PodTemplate", "v1 ReplicationController", "v1 ResourceQuota", "v1 Secret", "v1 Service", "v1 ServiceAccount",
		"apps/v1 ControllerRevision", "apps/v1 ReplicaSet", "batch/v1 CronJob", "rbac.authorization.k8s.io/v1 Role", "kueue.x-k8s.io/v1beta1 Workload",
		"apps/v1 ControllerRevision", "tekton.dev/v1 Pipeline",
	} {
		version, name, _ := strings.Cut(kind, " ")
		text += "\n---\napiVersion: " + version + "\nkind: " + name + "\nmetadata: {name: x}"
	}
	b, err := Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Validate(); err != nil {
		t.Fatal(err)
	}
	want := []string{"skipped, because berth does not read these kinds: 2 ControllerRevision, 1 Binding, 1 ComponentStatus, 1 ConfigMap, 1 CronJob, 1 Endpoints, 1 Event, 1 LimitRange, 1 PersistentVolume, 1 PersistentVolumeClaim, 10 other kinds; it reads nodes, pods, disruption budgets, what describes groups of pods, and its own kinds"}
	if diff := cmp.Diff(want, b.Notes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
