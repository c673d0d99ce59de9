package secure_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/berth-project/berth/kube/internal/secure"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestManyRequests checks that requests of unknown users are rejected if many wait for the API
// server already, and are reviewed again when the others have ended.
func TestManyRequests(t *testing.T) {
	arrived, answer := make(chan struct{}, 100), make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-answer
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{}}`))
	}))
	defer api.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	handler := secure.New(secure.Options{Client: client, Log: slog.New(slog.DiscardHandler)}).Protect(http.NotFoundHandler())
	send := func(token string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/sessions", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	const limit = 16
	var waiting sync.WaitGroup
	for i := range limit {
		waiting.Go(func() {
			if code := send(string(rune('a' + i))); code != http.StatusUnauthorized {
				t.Errorf("request %d: %d, want 401", i, code)
			}
		})
	}
	for range limit {
		<-arrived
	}
	if code := send("z"); code != http.StatusTooManyRequests {
		t.Errorf("one more request: %d, want 429", code)
	}
	close(answer)
	waiting.Wait()
	if code := send("z"); code != http.StatusUnauthorized {
		t.Errorf("after the others: %d, want 401", code)
	}
}
