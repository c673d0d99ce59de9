// Package secure lets only users of the cluster through to a handler. It asks the API server
// which user sends a request, and whether this user may read the path, as the components of
// Kubernetes do: by TokenReview, by the certificate authority of clients that the API server
// publishes, and by SubjectAccessReview.
package secure

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
)

// Options of a Gate.
type Options struct {
	Client kubernetes.Interface
	Log    *slog.Logger
}

// Gate authenticates and authorizes requests. It is safe for concurrent use.
type Gate struct {
	options     Options
	authorities authorities
	tokens      cache[*user]
	allowed     cache[bool]
	reviews     chan struct{} // has a value for each request that is being reviewed
}

// maxReviews is how many requests are reviewed at the same time, and reviewTime how long that may
// take. Requests that are not authenticated yet cost requests to the API server.
const (
	maxReviews = 16
	reviewTime = 10 * time.Second
)

// remember is how long an answer of the API server is used again.
const remember = 10 * time.Second

// New returns a Gate.
func New(o Options) *Gate {
	return &Gate{options: o, authorities: authorities{client: o.Client, log: o.Log}, reviews: make(chan struct{}, maxReviews)}
}

// Protect returns a handler that passes on the requests of users that may read the path.
func (g *Gate) Protect(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are served", http.StatusMethodNotAllowed)
			return
		}
		if impersonates(r.Header) {
			http.Error(w, "impersonation is not supported; send the request as yourself", http.StatusForbidden)
			return
		}
		if g.review(w, r) {
			next.ServeHTTP(w, r)
		}
	})
}

// review reports whether the request is allowed. Otherwise it answers the request.
func (g *Gate) review(w http.ResponseWriter, r *http.Request) bool {
	if g.isKnown(r) {
		return true
	}
	select {
	case g.reviews <- struct{}{}:
		defer func() { <-g.reviews }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests wait for the API server to say which user they are of; try again", http.StatusTooManyRequests)
		return false
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	r = r.WithContext(ctx)
	u, err := g.authenticate(r)
	switch {
	case err != nil:
		g.options.Log.Error("A request could not be authenticated.", "path", r.URL.Path, "error", err)
		http.Error(w, "the API server did not say which user this is; see the log of the scheduler", http.StatusInternalServerError)
		return false
	case u == nil:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token or a client certificate of the cluster is required", http.StatusUnauthorized)
		return false
	}
	allowed, err := g.authorize(r, u)
	switch {
	case err != nil:
		g.options.Log.Error("A request could not be authorized.", "path", r.URL.Path, "user", u.name, "error", err)
		http.Error(w, "the API server did not say whether this is allowed; see the log of the scheduler", http.StatusInternalServerError)
	case !allowed:
		http.Error(w, "user "+u.name+" may not get "+r.URL.Path+"; a ClusterRole with this path in nonResourceURLs and the verb get allows it", http.StatusForbidden)
	}
	return allowed && err == nil
}

func impersonates(h http.Header) bool {
	for name := range h {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}
