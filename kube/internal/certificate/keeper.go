// Package certificate keeps the certificate of a webhook. It makes a certificate authority and a
// certificate, stores both in a Secret that all processes of the webhook share, renews them in
// time, and writes the authority to the configuration of the webhook. No other program is needed.
package certificate

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// The keys of the Secret. ca.crt may have several authorities, the newest first.
const (
	keyAuthorities  = "ca.crt"
	keyAuthorityKey = "ca.key"
	keyCertificate  = corev1.TLSCertKey
	keyKey          = corev1.TLSPrivateKeyKey
)

// maxAuthorities is how many authorities the Secret has at most.
const maxAuthorities = 3

// annotationRenewed of the Secret is when the newest authority was made.
const annotationRenewed = "berth.dev/authority-renewed"

// Options of a Keeper.
type Options struct {
	Client            kubernetes.Interface
	Namespace, Secret string
	// Configuration is the name of the ValidatingWebhookConfiguration; "": something else sets the
	// authority there.
	Configuration string
	Hosts         []string // names and addresses by which the API server reaches the webhook
	Log           *slog.Logger

	Every     time.Duration    // how often all is checked; 0 means a minute
	Authority time.Duration    // how long an authority is valid; 0 means 10 years
	Server    time.Duration    // how long a certificate is valid; 0 means a year
	Settle    time.Duration    // after which API servers know a new authority; 0 means 5 minutes
	Clock     func() time.Time // nil: that of the machine
}

// Keeper keeps a certificate. Use New.
type Keeper struct {
	options Options
	current atomic.Pointer[tls.Certificate]
	served  []byte // the text of current
}

// New returns a Keeper without a certificate.
func New(o Options) *Keeper {
	for _, d := range []struct {
		value *time.Duration
		unset time.Duration
	}{{&o.Every, time.Minute}, {&o.Authority, 10 * 365 * 24 * time.Hour}, {&o.Server, 365 * 24 * time.Hour}, {&o.Settle, 5 * time.Minute}} {
		if *d.value == 0 {
			*d.value = d.unset
		}
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Keeper{options: o}
}

// TLS returns the configuration of a server, which always has the newest certificate.
func (k *Keeper) TLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := k.current.Load(); c != nil {
			return c, nil
		}
		return nil, errors.New("there is no certificate yet")
	}}
}

// HasCertificate reports whether there is a certificate.
func (k *Keeper) HasCertificate() bool { return k.current.Load() != nil }

// Run keeps the certificate until the context ends.
func (k *Keeper) Run(ctx context.Context) {
	failures := 0
	for {
		wait := k.options.Every
		if err := k.Check(ctx); err != nil && ctx.Err() == nil {
			failures++
			wait = min(wait, time.Duration(failures)*time.Second)
			k.options.Log.Warn("The certificate of the webhook could not be checked.", "error", err)
		} else {
			failures = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// Check makes what is missing, renews what ends soon, and serves what the Secret has.
func (k *Keeper) Check(ctx context.Context) error {
	secret, err := k.secret(ctx)
	if err != nil {
		return err
	}
	if !bytes.Equal(k.served, secret.Data[keyCertificate]) {
		pair, err := tls.X509KeyPair(secret.Data[keyCertificate], secret.Data[keyKey])
		if err != nil {
			return fmt.Errorf("secret %s/%s: %w", k.options.Namespace, k.options.Secret, err)
		}
		k.current.Store(&pair)
		k.served = secret.Data[keyCertificate]
	}
	return k.writeAuthorities(ctx, secret.Data[keyAuthorities])
}

// secret returns the Secret, after what is missing or ends soon was renewed.
func (k *Keeper) secret(ctx context.Context) (*corev1.Secret, error) {
	secrets := k.options.Client.CoreV1().Secrets(k.options.Namespace)
	for {
		old, err := secrets.Get(ctx, k.options.Secret, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if err != nil && !missing {
			return nil, err
		}
		if missing {
			old = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: k.options.Namespace, Name: k.options.Secret}, Type: corev1.SecretTypeOpaque}
		}
		renewed, changed, err := k.renew(old)
		switch {
		case err != nil || !changed:
			return renewed, err
		case missing:
			renewed, err = secrets.Create(ctx, renewed, metav1.CreateOptions{})
		default:
			renewed, err = secrets.Update(ctx, renewed, metav1.UpdateOptions{})
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return renewed, err // another process has not been faster
		}
	}
}

// renew returns the Secret with all that it must have, and whether it has changed.
func (k *Keeper) renew(old *corev1.Secret) (*corev1.Secret, bool, error) {
	now := k.options.Clock()
	s := old.DeepCopy()
	if s.Data == nil {
		s.Data = map[string][]byte{}
	}
	changed := false
	authorities := valid(parse(s.Data[keyAuthorities]), now)
	key, err := parseKey(s.Data[keyAuthorityKey])
	if err != nil || len(authorities) == 0 || !isKeyOf(key, authorities[0]) || now.Before(authorities[0].NotBefore) || now.After(authorities[0].NotAfter.Add(-k.options.Authority/10)) {
		// The earlier authorities stay, because the certificate in use is signed by one.
		own, ownKey, err := newAuthority(now, k.options.Authority)
		if err != nil {
			return nil, false, err
		}
		if key = ownKey; len(authorities) > 0 {
			if s.Annotations == nil {
				s.Annotations = map[string]string{}
			}
			s.Annotations[annotationRenewed] = now.UTC().Format(time.RFC3339)
		}
		authorities = append([]*x509Certificate{own}, authorities...)
		if s.Data[keyAuthorityKey], err = encodeKey(key); err != nil {
			return nil, false, err
		}
		changed = true
	}
	authorities = limit(authorities, certificateOf(s))
	if text := encode(authorities); !bytes.Equal(text, s.Data[keyAuthorities]) {
		s.Data[keyAuthorities], changed = text, true
	}
	if hosts, must := k.mustIssue(s, authorities, now); must {
		certificate, own, err := issue(authorities[0], key, hosts, now, k.options.Server)
		if err != nil {
			return nil, false, err
		}
		s.Data[keyCertificate], s.Data[keyKey], changed = certificate, own, true
	}
	return s, changed, nil
}

// mustIssue reports whether the Secret needs another certificate, and for which hosts. If only hosts
// are missing, the new certificate has those of the old one too: during a change of the hosts, other
// processes need them, and would otherwise replace the certificate again.
func (k *Keeper) mustIssue(s *corev1.Secret, authorities []*x509Certificate, now time.Time) (hosts []string, must bool) {
	hosts = k.options.Hosts
	c := certificateOf(s)
	if c == nil {
		return hosts, true
	}
	signer := slices.IndexFunc(authorities, func(a *x509Certificate) bool { return c.CheckSignatureFrom(a) == nil })
	if signer < 0 || now.Before(authorities[signer].NotBefore) || now.After(c.NotAfter.Add(-k.options.Server/3)) || now.Before(c.NotBefore) {
		return hosts, true
	}
	if slices.ContainsFunc(hosts, func(h string) bool { return c.VerifyHostname(h) != nil }) {
		return union(hosts, hostsOf(c)), true
	}
	if signer == 0 {
		return nil, false
	}
	// The API servers must know the new authority first.
	renewed, err := time.Parse(time.RFC3339, s.Annotations[annotationRenewed])
	return hosts, err != nil || now.After(renewed.Add(k.options.Settle))
}

// certificateOf returns the certificate of the Secret; nil if it cannot be used.
func certificateOf(s *corev1.Secret) *x509Certificate {
	list := parse(s.Data[keyCertificate])
	if _, err := tls.X509KeyPair(s.Data[keyCertificate], s.Data[keyKey]); err != nil || len(list) == 0 {
		return nil
	}
	return list[0]
}

// writeAuthorities writes the authorities to the configuration of the webhook, if it has others.
func (k *Keeper) writeAuthorities(ctx context.Context, text []byte) error {
	if k.options.Configuration == "" {
		return nil
	}
	configurations := k.options.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	c, err := configurations.Get(ctx, k.options.Configuration, metav1.GetOptions{})
	if err != nil {
		return err
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	patch := []operation{{"test", "/metadata/resourceVersion", c.ResourceVersion}}
	for i := range c.Webhooks {
		if !bytes.Equal(c.Webhooks[i].ClientConfig.CABundle, text) {
			patch = append(patch, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), text})
		}
	}
	if len(patch) == 1 {
		return nil
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = configurations.Patch(ctx, c.Name, types.JSONPatchType, body, metav1.PatchOptions{FieldManager: "berth-controller"})
	return err
}
