package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// freeAddress returns an address on which nothing listens.
func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// TestSecureAddress checks that only users with the permission read the input of sessions and
// profiles, and that what they read has no environment and no annotations of users. The
// scheduler has the permissions of config/rbac.yaml alone.
func TestSecureAddress(t *testing.T) {
	w := newWorld(t)
	w.addNodes(1)
	plain, secure := freeAddress(t), freeAddress(t)
	w.scheduler("--address", plain, "--secure-address", secure, "--profiling")
	w.create(pod("a", 1, func(p *corev1.Pod) {
		p.Annotations["example.com/password"] = "secret-annotation"
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TOKEN", Value: "secret-environment"}}
		p.Spec.Containers[0].Command = []string{"run", "secret-command"}
	}))
	w.eventually(func() string { return w.allBound("a") })
	reader, other := w.token("reader"), w.token("other")
	w.allow("reader", "berth-sessions-reader")
	certificate, err := tls.X509KeyPair(w.cp.Config().CertData, w.cp.Config().KeyData)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path, token  string
		certificates []tls.Certificate
		want         int
	}{
		"no credentials":              {"/debug/sessions", "", nil, http.StatusUnauthorized},
		"a token of no user":          {"/debug/sessions", "nonsense", nil, http.StatusUnauthorized},
		"a user without permission":   {"/debug/sessions", other, nil, http.StatusForbidden},
		"a user with permission":      {"/debug/sessions", reader, nil, http.StatusOK},
		"a session that is not kept":  {"/debug/sessions/1000000", reader, nil, http.StatusNotFound},
		"no number":                   {"/debug/sessions/last", reader, nil, http.StatusNotFound},
		"profiles without permission": {"/debug/pprof/cmdline", reader, nil, http.StatusForbidden},
		"a certificate":               {"/debug/pprof/heap", "", []tls.Certificate{certificate}, http.StatusOK},
		"the certificate of another":  {"/debug/sessions", "", []tls.Certificate{selfSigned(t)}, http.StatusUnauthorized},
		"metrics":                     {"/metrics", "", []tls.Certificate{certificate}, http.StatusOK},
	} {
		if code, text := get(t, "https://"+secure+tt.path, tt.token, tt.certificates...); code != tt.want {
			t.Errorf("%s: %d %s, want %d", name, code, text, tt.want)
		}
	}
	if code, _ := get(t, "http://"+plain+"/debug/pprof/heap", ""); code != http.StatusNotFound {
		t.Errorf("profiles are served without authentication: %d", code)
	}
	var text string
	w.eventually(func() string { // the first session may have had no pod
		var code int
		for number := range 20 {
			if code, text = get(t, fmt.Sprintf("https://%s/debug/sessions/%d", secure, number+1), reader); code == http.StatusOK && strings.Contains(text, `"action":"Bind"`) {
				return ""
			}
		}
		return fmt.Sprintf("no session binds the pod: %d %s", code, text)
	})
	for _, part := range []string{`"pod/default/a"`, `"name":"node-0000"`, `"kubernetes":{`} {
		if !strings.Contains(text, part) {
			t.Errorf("the input has no %s", part)
		}
	}
	if strings.Contains(text, "secret-") {
		t.Errorf("the input has what may be secret: %s", text)
	}
}

// token returns a token of a new service account.
func (w *world) token(account string) string {
	w.Helper()
	accounts := w.client.CoreV1().ServiceAccounts(namespace)
	if _, err := accounts.Create(w.ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	answer, err := accounts.CreateToken(w.ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return answer.Status.Token
}

// allow binds the ClusterRole to the service account.
func (w *world) allow(account, role string) {
	w.Helper()
	if _, err := w.client.RbacV1().ClusterRoleBindings().Create(w.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account + "-" + role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
	}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// get requests the URL with a token, if it is not "", and the certificates. The certificate of
// the server is not verified.
func get(t testing.TB, url, token string, certificates ...tls.Certificate) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}

// selfSigned returns a certificate of the group system:masters that no authority of the cluster
// has signed.
func selfSigned(t testing.TB) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}
