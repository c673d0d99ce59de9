package lease_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/berth-project/berth/kube/internal/lease"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestFence checks that objects are read at any time, and are changed only while the lease is
// held.
func TestFence(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p"}}`))
	}))
	defer server.Close()
	held := true
	client, err := kubernetes.NewForConfig(lease.Fence(&rest.Config{Host: server.URL}, func() time.Duration {
		if held {
			return time.Minute
		}
		return 0
	}))
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods("ml")
	for _, held = range []bool{true, false} {
		if _, err := pods.Get(t.Context(), "p", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		if _, err := pods.Patch(t.Context(), "p", types.MergePatchType, []byte("{}"), metav1.PatchOptions{}, "status"); held != (err == nil) || !held && !errors.Is(err, lease.ErrNotHeld) {
			t.Errorf("patch with held %t: %v", held, err)
		}
		if err := pods.Delete(t.Context(), "p", metav1.DeleteOptions{}); held != (err == nil) {
			t.Errorf("delete with held %t: %v", held, err)
		}
	}
	if len(got) != 4 {
		t.Errorf("%v were sent, want two GET, one PATCH and one DELETE", got)
	}
}

// TestFenceEndsRequests checks that a request which is under way when the lease ends does not wait
// for its answer, and that it does wait while the lease is renewed.
func TestFenceEndsRequests(t *testing.T) {
	ended, asked := make(chan struct{}), 0
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices that its client has gone after it has read the body
		<-r.Context().Done()
		close(ended)
	}))
	defer server.Close()
	client, err := kubernetes.NewForConfig(lease.Fence(&rest.Config{Host: server.URL}, func() time.Duration {
		// The lease is renewed twice, and then lost.
		if asked++; asked > 3 {
			return 0
		}
		return 50 * time.Millisecond
	}))
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := client.CoreV1().Pods("ml").Delete(t.Context(), "p", metav1.DeleteOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("delete: %v, want that the deadline is exceeded", err)
	}
	<-ended
	if took := time.Since(begin); took < 150*time.Millisecond {
		t.Errorf("the request has ended after %s, although the lease was renewed twice", took)
	}
}
