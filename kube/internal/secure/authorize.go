package secure

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// accessKey returns the key of the user and the path in a cache.
func accessKey(r *http.Request, u *user) string {
	return fmt.Sprintf("%q %q %q %q %q %q", u.name, u.uid, u.groups, u.extra, r.Method, r.URL.Path)
}

// isKnown reports whether the API server has said lately that the user of the token may read the
// path. Such a request is not reviewed.
func (g *Gate) isKnown(r *http.Request) bool {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		return false
	}
	u, _ := g.tokens.get(tokenKey(bearerToken(r)))
	if u == nil {
		return false
	}
	allowed, _ := g.allowed.get(accessKey(r, u))
	return allowed
}

// authorize reports whether the user may read the path.
func (g *Gate) authorize(r *http.Request, u *user) (bool, error) {
	key := accessKey(r, u)
	if allowed, known := g.allowed.get(key); known {
		return allowed, nil
	}
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: u.name, UID: u.uid, Groups: u.groups,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
	}
	for name, values := range u.extra {
		if spec.Extra == nil {
			spec.Extra = map[string]authorizationv1.ExtraValue{}
		}
		spec.Extra[name] = authorizationv1.ExtraValue(values)
	}
	answer, err := g.options.Client.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	g.allowed.put(key, answer.Status.Allowed)
	return answer.Status.Allowed, nil
}

// cache keeps answers for a short time. The zero value is empty.
type cache[T any] struct {
	mu      sync.Mutex
	entries map[string]cached[T]
}

type cached[T any] struct {
	value T
	until time.Time
}

// maxCached is how many answers a cache keeps.
const maxCached = 1024

func (c *cache[T]) get(key string) (T, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, found := c.entries[key]
	if !found || time.Now().After(e.until) {
		var none T
		return none, false
	}
	return e.value, true
}

// put keeps the value. If the cache is full, it is emptied.
func (c *cache[T]) put(key string, value T) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil || len(c.entries) >= maxCached {
		c.entries = map[string]cached[T]{}
	}
	c.entries[key] = cached[T]{value, time.Now().Add(remember)}
}
