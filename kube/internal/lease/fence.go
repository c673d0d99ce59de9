package lease

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// ErrNotHeld is the error of a request that was not sent because the lease is not held.
var ErrNotHeld = errors.New("the request was not sent: this process does not hold the lease of the leader")

// Forever is the time that is left to a process which needs no lease.
const Forever time.Duration = math.MaxInt64

// Fence returns a configuration of clients that send requests which may change something only
// while the lease is held: left returns how long that is, and 0 or less if it is not. It is called
// for each request after the wait for the limit of the client, immediately before the request is
// sent. A request that is under way when that time has passed ends with an error, so that its
// sender does not wait for an answer that another leader has made worthless. Requests of
// libraries, such as those that bind volumes and allocate devices, are included.
func Fence(config *rest.Config, left func() time.Duration) *rest.Config {
	out := rest.CopyConfig(config)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper { return &fenced{next, left} })
	return out
}

type fenced struct {
	next http.RoundTripper
	left func() time.Duration
}

// RoundTrip sends the request, or returns ErrNotHeld.
func (f *fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return f.next.RoundTrip(r)
	}
	left := f.left()
	if left <= 0 {
		if r.Body != nil {
			_ = r.Body.Close()
		}
		return nil, ErrNotHeld
	}
	if left == Forever {
		return f.next.RoundTrip(r)
	}
	ctx, end := f.whileLeft(r.Context(), left)
	response, err := f.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	response.Body = &limitedBody{response.Body, end}
	return response, nil
}

// whileLeft returns a context that ends when no time is left. The lease may be renewed meanwhile.
func (f *fenced) whileLeft(ctx context.Context, left time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	timer = time.AfterFunc(Forever, func() {
		if ctx.Err() != nil {
			return
		}
		if left := f.left(); left > 0 {
			timer.Reset(left)
		} else {
			cancel(context.DeadlineExceeded)
		}
	})
	timer.Reset(left) // the function reads timer
	return ctx, func() {
		cancel(nil)
		timer.Stop()
	}
}

// limitedBody is the body of a response whose context must be ended.
type limitedBody struct {
	io.ReadCloser
	end context.CancelFunc
}

// Close closes the body.
func (b *limitedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
