package report_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/report"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

func podNow(uid, version, node string, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "p", UID: types.UID(uid), ResourceVersion: version},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Conditions: conditions},
	}
}

// TestConflict checks what is sent after a conflict: the condition for the newest version of the
// pod, with the time since when it has been false, and nothing for a pod that is bound or another
// one.
func TestConflict(t *testing.T) {
	since := metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
	waiting := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "WaitingForGang", LastTransitionTime: since}
	for name, tc := range map[string]struct {
		now  *corev1.Pod // nil: the pod is gone
		want string      // the version and the time in the second patch; "": there is none
	}{
		"it has changed":           {podNow("u1", "7", ""), "7 now"},
		"it was not placed before": {podNow("u1", "7", "", waiting), "7 then"},
		"it is bound":              {podNow("u1", "7", "n"), ""},
		"it is another pod":        {podNow("u2", "7", ""), ""},
		"it is gone":               {nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var patches []string
			answered := make(chan struct{}, 10)
			client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				var answer any = tc.now
				code := http.StatusOK
				conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "p", errors.New("it has changed"))
				switch {
				case r.Method == http.MethodPatch:
					var patch corev1.Pod
					body, _ := io.ReadAll(r.Body)
					if err := json.Unmarshal(body, &patch); err != nil {
						t.Error(err)
					}
					at := "now"
					if patch.Status.Conditions[0].LastTransitionTime.Equal(&since) {
						at = "then"
					}
					if patches = append(patches, patch.ResourceVersion+" "+at); len(patches) == 1 {
						answer, code = conflict.Status(), http.StatusConflict
					}
				case tc.now == nil:
					answer, code = apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, "p").Status(), http.StatusNotFound
				}
				text, _ := json.Marshal(answer)
				answered <- struct{}{}
				return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(text))), Request: r}, nil
			})})
			if err != nil {
				t.Fatal(err)
			}
			r := report.New(report.Options{Client: client, Held: func() bool { return true }, Workers: 1})
			r.Put(report.Report{Pod: types.NamespacedName{Namespace: "ml", Name: "p"}, UID: "u1", Version: "5", Condition: &report.Condition{Reason: "Unschedulable"}})
			wanted := 2
			if tc.want != "" {
				wanted = 3
			}
			for range wanted {
				select {
				case <-answered:
				case <-time.After(time.Minute):
					t.Fatal("a request was not sent")
				}
			}
			time.Sleep(200 * time.Millisecond) // a further request would be sent after 50 ms
			r.Stop()
			want := "5 now"
			if tc.want != "" {
				want += ", " + tc.want
			}
			if got := strings.Join(patches, ", "); got != want {
				t.Errorf("patches for %q, want %q", got, want)
			}
		})
	}
}
