package secure

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// user is the sender of a request.
type user struct {
	name, uid string
	groups    []string
	extra     map[string]authenticationv1.ExtraValue
}

// groupAuthenticated is the group of all users that were authenticated.
const groupAuthenticated = "system:authenticated"

// authenticate returns the user of the request; nil if it has no valid credentials. A
// certificate takes precedence over a token.
func (g *Gate) authenticate(r *http.Request) (*user, error) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		if u := g.authorities.user(r.Context(), r.TLS.PeerCertificates); u != nil {
			return u, nil
		}
	}
	token := bearerToken(r)
	if token == "" {
		return nil, nil
	}
	key := tokenKey(token)
	if u, known := g.tokens.get(key); known {
		return u, nil
	}
	answer, err := g.options.Client.AuthenticationV1().TokenReviews().Create(r.Context(), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	var u *user
	if s := &answer.Status; s.Authenticated {
		u = &user{s.User.Username, s.User.UID, s.User.Groups, s.User.Extra}
	}
	g.tokens.put(key, u)
	return u, nil
}

// bearerToken returns the token of the request; "" if it has none.
func bearerToken(r *http.Request) string {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// tokenKey returns the key of the token in a cache, which does not hold tokens.
func tokenKey(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// The API server publishes the certificate authority of its clients in this object.
const (
	authorityNamespace = "kube-system"
	authorityName      = "extension-apiserver-authentication"
	authorityKey       = "client-ca-file"
)

// reread is how long the published authorities are used before they are read again, and retry how
// long after they could not be read.
const (
	reread = time.Minute
	retry  = 5 * time.Second
)

// authorities are the certificate authorities of the users of the cluster.
type authorities struct {
	client kubernetes.Interface
	log    *slog.Logger

	mu   sync.Mutex
	pool *x509.CertPool // nil: none is known
	read time.Time
}

// user returns the user of the certificate chain; nil if no authority of the cluster has signed
// it for clients.
func (a *authorities) user(ctx context.Context, chain []*x509.Certificate) *user {
	pool := a.current(ctx)
	if pool == nil {
		return nil
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	leaf := chain[0]
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil || leaf.Subject.CommonName == "" {
		return nil
	}
	return &user{name: leaf.Subject.CommonName, groups: append(slices.Clone(leaf.Subject.Organization), groupAuthenticated)}
}

// current returns the authorities that the API server publishes. If they cannot be read, those
// that were read last are used.
func (a *authorities) current(ctx context.Context) *x509.CertPool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.read) < reread && !a.read.IsZero() {
		return a.pool
	}
	object, err := a.client.CoreV1().ConfigMaps(authorityNamespace).Get(ctx, authorityName, metav1.GetOptions{})
	if err != nil {
		a.log.Warn("The certificate authority of clients cannot be read; users are authenticated by tokens only.", "error", err)
		a.read = time.Now().Add(retry - reread)
		return a.pool
	}
	a.read, a.pool = time.Now(), nil
	if text := object.Data[authorityKey]; text != "" {
		pool := x509.NewCertPool()
		if pool.AppendCertsFromPEM([]byte(text)) {
			a.pool = pool
		}
	}
	return a.pool
}
