package lease

import (
	"errors"
	"net/http"

	"k8s.io/client-go/rest"
)

// ErrNotHeld is the error of a request that was not sent because the lease is not held.
var ErrNotHeld = errors.New("the request was not sent: this process does not hold the lease of the leader")

// Fence returns a configuration of clients that send requests which may change something only
// while held returns true. It is asked for each request after the wait for the limit of the
// client, immediately before the request is sent. Requests of libraries, such as those that bind
// volumes and allocate devices, are included.
func Fence(config *rest.Config, held func() bool) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fenced{next, held} })
	return out
}

type fenced struct {
	next http.RoundTripper
	held func() bool
}

// RoundTrip sends the request, or returns ErrNotHeld.
func (f *fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead && !f.held() {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, ErrNotHeld
	}
	return f.next.RoundTrip(r)
}
