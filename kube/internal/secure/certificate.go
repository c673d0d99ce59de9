package secure

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"time"
)

// TLS returns the configuration of a server with the certificate and the key of the files,
// which are read again when they change. If both names are "", the server has a certificate that
// is signed by itself. Clients may send a certificate, which a Gate verifies.
func TLS(certificateFile, keyFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	if certificateFile == "" && keyFile == "" {
		own, err := selfSigned()
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{*own}
		return config, nil
	}
	f := &files{certificate: certificateFile, key: keyFile}
	if _, err := f.get(nil); err != nil {
		return nil, err
	}
	config.GetCertificate = f.get
	return config, nil
}

// files are a certificate and its key in files.
type files struct {
	certificate, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed [2]time.Time // when the files had been changed when they were loaded
}

// get returns the certificate. It reads the files again if they have changed; if they cannot be
// read then, the certificate that was read last is used.
func (f *files) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var changed [2]time.Time
	for i, name := range []string{f.certificate, f.key} {
		if info, err := os.Stat(name); err == nil {
			changed[i] = info.ModTime()
		}
	}
	if f.loaded != nil && changed == f.changed {
		return f.loaded, nil
	}
	c, err := tls.LoadX509KeyPair(f.certificate, f.key)
	switch {
	case err == nil:
		f.loaded, f.changed = &c, changed
	case f.loaded == nil:
		return nil, fmt.Errorf("the certificate %s and the key %s cannot be used: %w", f.certificate, f.key, err)
	}
	return f.loaded, nil
}

// selfSigned returns a new certificate that is signed by itself.
func selfSigned() (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "berth-scheduler"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	if host, err := os.Hostname(); err == nil {
		template.DNSNames = append(template.DNSNames, host)
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}, nil
}
