package certificate

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"slices"
	"time"
)

type x509Certificate = x509.Certificate

const (
	blockCertificate = "CERTIFICATE"
	blockKey         = "EC PRIVATE KEY"
)

// early is how long before its making a certificate is valid, because clocks differ.
const early = time.Hour

// parse returns the certificates of the text, as far as they can be read.
func parse(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return out
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == blockCertificate {
			out = append(out, c)
		}
	}
}

// valid returns the authorities that have not ended.
func valid(list []*x509.Certificate, now time.Time) []*x509.Certificate {
	var out []*x509.Certificate
	for _, c := range list {
		if c.IsCA && now.Before(c.NotAfter) {
			out = append(out, c)
		}
	}
	return out
}

// limit returns the newest authorities, of which the first is the newest, and the one that has signed
// the certificate. c may be nil.
func limit(authorities []*x509.Certificate, c *x509.Certificate) []*x509.Certificate {
	for len(authorities) > maxAuthorities {
		last := len(authorities) - 1
		if c != nil && c.CheckSignatureFrom(authorities[last]) == nil {
			last--
		}
		authorities = slices.Delete(authorities, last, last+1)
	}
	return authorities
}

// hostsOf returns the names and addresses that the certificate is for.
func hostsOf(c *x509.Certificate) []string {
	out := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

// union returns all elements of a, and those of b that a does not have.
func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, x := range b {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

func encode(list []*x509.Certificate) []byte {
	var out []byte
	for _, c := range list {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: blockCertificate, Bytes: c.Raw})...)
	}
	return out
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("there is no key")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	text, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: blockKey, Bytes: text}), err
}

// isKeyOf reports whether the key belongs to the certificate.
func isKeyOf(key *ecdsa.PrivateKey, c *x509.Certificate) bool {
	public, is := c.PublicKey.(*ecdsa.PublicKey)
	return is && key.PublicKey.Equal(public)
}

// newAuthority returns a new authority.
func newAuthority(now time.Time, lifetime time.Duration) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "berth-webhook-ca"}, NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
	}
	return sign(template, nil, nil)
}

// issue returns a new certificate of a server and its key, as texts.
func issue(authority *x509.Certificate, key *ecdsa.PrivateKey, hosts []string, now time.Time, lifetime time.Duration) (certificate, own []byte, err error) {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "berth-webhook"}, NotBefore: now.Add(-early), NotAfter: now.Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	c, ownKey, err := sign(template, authority, key)
	if err != nil {
		return nil, nil, err
	}
	own, err = encodeKey(ownKey)
	return encode([]*x509.Certificate{c}), own, err
}

// sign makes a certificate with a new key. Without a parent, it is signed by itself.
func sign(template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent, parentKey = template, key
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	text, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
	if err != nil {
		return nil, nil, err
	}
	c, err := x509.ParseCertificate(text)
	return c, key, err
}
