package certificate

import (
	"crypto/x509"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// keeperAt returns a Keeper whose clock shows *now.
func keeperAt(now *time.Time, hosts ...string) *Keeper {
	return New(Options{Hosts: hosts, Clock: func() time.Time { return *now }})
}

// renewed returns the Secret after a check, and whether it has changed.
func renewed(t *testing.T, k *Keeper, s *corev1.Secret) (*corev1.Secret, bool) {
	t.Helper()
	out, changed, err := k.renew(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, again, err := k.renew(out); err != nil || again {
		t.Errorf("a second check changes the Secret: %v, %v", again, err)
	}
	return out, changed
}

// trusted returns why an API server with the authorities of one Secret does not accept the
// certificate of another.
func trusted(authorities, s *corev1.Secret, host string, now time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authorities.Data[keyAuthorities])
	_, err := certificateOf(s).Verify(x509.VerifyOptions{DNSName: host, Roots: roots, CurrentTime: now})
	return err
}

// A key that cannot be read makes a new authority. There are never more than three, and the
// certificate in use stays until API servers know the new authority.
func TestUnreadableKeys(t *testing.T) {
	now := start
	k := keeperAt(&now, "webhook")
	first, _ := renewed(t, k, &corev1.Secret{})
	s := first
	for i := range 5 {
		now = now.Add(time.Minute)
		s = s.DeepCopy()
		s.Data[keyAuthorityKey] = []byte("unreadable")
		changed := false
		if s, changed = renewed(t, k, s); !changed {
			t.Fatal("no authority is made")
		}
		if n := len(parse(s.Data[keyAuthorities])); n != min(i+2, maxAuthorities) {
			t.Errorf("%d authorities after %d keys", n, i+1)
		}
		if !slices.Equal(s.Data[keyCertificate], first.Data[keyCertificate]) {
			t.Fatalf("the certificate is replaced after %d keys", i+1)
		}
		if err := trusted(s, s, "webhook", now); err != nil {
			t.Errorf("after %d keys: %v", i+1, err)
		}
	}
	now = now.Add(6 * time.Minute)
	last, _ := renewed(t, k, s)
	if slices.Equal(last.Data[keyCertificate], first.Data[keyCertificate]) {
		t.Error("the certificate is not replaced after API servers know the new authority")
	}
	if err := trusted(s, last, "webhook", now); err != nil {
		t.Errorf("an API server that knows the earlier authorities: %v", err)
	}
	// Authorities that an earlier version has left are removed.
	many := last.DeepCopy()
	for range 4 {
		own, _, err := newAuthority(now, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		many.Data[keyAuthorities] = append(many.Data[keyAuthorities], encode([]*x509.Certificate{own})...)
	}
	if many, _ = renewed(t, k, many); len(parse(many.Data[keyAuthorities])) != maxAuthorities {
		t.Errorf("%d authorities", len(parse(many.Data[keyAuthorities])))
	}
}

// An authority that was made while a clock was ahead is not used before it is valid.
func TestAuthorityOfTheFuture(t *testing.T) {
	now := start.Add(48 * time.Hour)
	k := keeperAt(&now, "webhook")
	s, _ := renewed(t, k, &corev1.Secret{})
	now = start
	s, changed := renewed(t, k, s)
	if !changed {
		t.Error("nothing is renewed")
	}
	if err := trusted(s, s, "webhook", now); err != nil {
		t.Error(err)
	}
}

// While the hosts change, old and new processes use one certificate, which is for the hosts of all.
func TestHostsChange(t *testing.T) {
	now := start
	before, after := keeperAt(&now, "old", "10.0.0.1"), keeperAt(&now, "new", "10.0.0.1", "fd00::1")
	s, _ := renewed(t, before, &corev1.Secret{})
	s, changed := renewed(t, after, s)
	if !changed {
		t.Error("no certificate is issued for the new hosts")
	}
	for range 3 {
		for _, k := range []*Keeper{before, after} {
			now = now.Add(time.Minute)
			if s, changed = renewed(t, k, s); changed {
				t.Error("the certificate is issued again")
			}
		}
	}
	want := []string{"new", "old", "10.0.0.1", "fd00::1"}
	if got := hostsOf(certificateOf(s)); !slices.Equal(got, want) {
		t.Errorf("the certificate is for %v, want %v", got, want)
	}
	// The next certificate is for the hosts that are needed.
	now = now.Add(300 * 24 * time.Hour)
	s, _ = renewed(t, after, s)
	if got := hostsOf(certificateOf(s)); !slices.Equal(got, []string{"new", "10.0.0.1", "fd00::1"}) {
		t.Errorf("the renewed certificate is for %v", got)
	}
}
