package convert_test

import (
	"strings"
	"testing"

	"github.com/berth-project/berth/api/v1alpha1"
	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodIsolation checks that a pod requests what its annotation says, and that a pod whose
// annotation has an error is not used.
func TestPodIsolation(t *testing.T) {
	for text, tc := range map[string]struct {
		want cluster.Isolation
		err  string // a part of the message
	}{
		`{"gpu": "DeviceExclusive"}`:                  {want: cluster.Isolation{GPU: cluster.GPUDeviceExclusive}},
		`{"cpu": "WholeCore"}`:                        {want: cluster.Isolation{CPU: cluster.CPUWholeCore}},
		`{"gpu": "SessionExclusive", "session": "a"}`: {want: cluster.Isolation{GPU: cluster.GPUSessionExclusive, Session: "a"}},
		`{}`:                     {},
		``:                       {err: `want JSON such as {"gpu": "DeviceExclusive"}`},
		`DeviceExclusive`:        {err: "want JSON"},
		`{"gpu": "Exclusive"}`:   {err: "Exclusive"},
		`{"gpus": "Shared"}`:     {err: "unknown field"},
		`{"gpu": "Shared"} {}`:   {err: "text after the value"},
		`{"session": "a"}`:       {err: "a session needs gpu"},
		`{"cpu": ["WholeCore"]}`: {err: "want JSON"},
	} {
		t.Run(text, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "a", Annotations: map[string]string{v1alpha1.AnnotationIsolation: text}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Resources: corev1.ResourceRequirements{Requests: amounts("cpu", "1500m")}}}},
			}
			job, notes := convert.Pod(pod, &convert.Environment{})
			if tc.err != "" {
				if !notes.Invalid() || !strings.Contains(notes[0].Message, tc.err) {
					t.Errorf("the notes are %v, want an error with %q", notes, tc.err)
				}
				return
			}
			shape := job.Alternatives[0].Tasks[0].Shape
			if notes.Invalid() || shape.Isolation != tc.want {
				t.Errorf("%+v, want %+v; %v", shape.Isolation, tc.want, notes)
			}
			if whole := tc.want.CPU == cluster.CPUWholeCore; whole != (shape.Resources.Of(cluster.CPU) == 2000) {
				t.Errorf("the task requests %d thousandths of a core", shape.Resources.Of(cluster.CPU))
			}
		})
	}
}

// TestNodeIsolation checks that a node offers what its annotation says, and nothing if it has an
// error.
func TestNodeIsolation(t *testing.T) {
	for text, want := range map[string]cluster.SupportedIsolation{
		`{"cpu": ["WholeCore"], "gpu": ["DeviceExclusive"], "shareMode": "exclusive", "isolableCores": 4}`: {
			CPU: []cluster.CPUClass{cluster.CPUWholeCore}, GPU: []cluster.GPUClass{cluster.GPUDeviceExclusive}, Share: cluster.ShareExclusive, IsolableCores: 4,
		},
		`{"gpu": ["DeviceExclusive", "Nonsense"]}`: {},
		`{"isolableCores": -1}`:                    {},
		`{"gpu": "DeviceExclusive"}`:               {},
		`nonsense`:                                 {},
	} {
		t.Run(text, func(t *testing.T) {
			node, notes := convert.CoreNode(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{v1alpha1.AnnotationIsolation: text}}})
			compare(t, want, node.SupportedIsolation)
			if notes.Invalid() {
				t.Errorf("the node is not used: %v", notes)
			}
			if mistaken := want.GPU == nil; mistaken != (len(notes) == 1 && notes[0].Severity == convert.Ignored) {
				t.Errorf("the notes are %v", notes)
			}
		})
	}
}
