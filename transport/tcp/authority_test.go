package tcp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	a.cert = a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, a.key)
	return a
}

func (a *authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	signer := a.cert
	if signer == nil {
		signer = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, signer, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// valid returns a template for the certificate of a rank that has the given addresses.
func valid(ips ...netip.Addr) *x509.Certificate {
	c := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "a rank"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, ip := range ips {
		c.IPAddresses = append(c.IPAddresses, net.IP(ip.AsSlice()))
	}
	return c
}

// expired returns a template for an expired certificate.
func expired(ip netip.Addr) *x509.Certificate {
	c := valid(ip)
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	return c
}

// forServers returns a template for a certificate that only the accepting side may present.
func forServers(ip netip.Addr) *x509.Certificate {
	c := valid(ip)
	c.ExtKeyUsage = c.ExtKeyUsage[:1]
	return c
}

// issue returns a signed certificate, its key, and the authority.
func (a *authority) issue(t testing.TB, template *x509.Certificate) *TLS {
	t.Helper()
	key := newKey(t)
	cert := a.sign(t, template, key)
	return &TLS{Certificate: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key}, Authority: a.pool()}
}

// writeFiles writes the result of issue to files, and returns the paths for LoadTLS.
func (a *authority) writeFiles(t testing.TB, s *TLS) (certificate, key, authority string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(s.Certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return write("rank.pem", "CERTIFICATE", s.Certificate.Certificate[0]), write("rank.key", "PRIVATE KEY", der),
		write("authority.pem", "CERTIFICATE", a.cert.Raw)
}
