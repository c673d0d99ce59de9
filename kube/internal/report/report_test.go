package report_test

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/report"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestLease checks that a report is not sent without the lease, and is sent when the lease is
// held again.
func TestLease(t *testing.T) {
	var held atomic.Bool
	sent := make(chan string, 100)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://api", QPS: -1, Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		sent <- r.Method + " " + r.URL.Path
		return nil, errors.New("the connection is lost")
	})})
	if err != nil {
		t.Fatal(err)
	}
	r := report.New(report.Options{Client: client, Held: held.Load})
	defer r.Stop()
	r.Put(report.Report{Pod: types.NamespacedName{Namespace: "ml", Name: "p"}, UID: "u1", Condition: &report.Condition{Reason: "Unschedulable"}})
	time.Sleep(200 * time.Millisecond)
	if len(sent) > 0 || r.Waiting() != 1 {
		t.Errorf("%d requests without the lease, %d reports wait", len(sent), r.Waiting())
	}
	held.Store(true)
	select {
	case got := <-sent:
		if got != "PATCH /api/v1/namespaces/ml/pods/p/status" {
			t.Errorf("request %q", got)
		}
	case <-time.After(time.Minute):
		t.Error("the report was not sent when the lease was held again")
	}
}
