package daemon

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/web"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
)

// issue creates a new certificate authority, and a certificate that it has signed for the given IP addresses,
// and writes both to dir.
func issue(t *testing.T, dir string, ips ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter}
	for _, ip := range ips {
		leaf.IPAddresses = append(leaf.IPAddresses, net.ParseIP(ip))
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("key.pem", "EC PRIVATE KEY", keyDER)
	for name, template := range map[string]*x509.Certificate{"ca.pem": ca, "cert.pem": leaf} {
		der, err := x509.CreateCertificate(rand.Reader, template, ca, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		write(name, "CERTIFICATE", der)
	}
}

// TestReloadOfCertificates checks that the TLS files are reread for new connections, and that invalid files are
// refused.
func TestReloadOfCertificates(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	other.network = c.network
	ip := func(rank int) string { return strings.Split(c.addr(rank), ":")[0] }
	dir := t.TempDir()
	links := "defaults: {profile: extended, transport: tcp}\ntls: {certificate: " + dir + "/cert.pem, key: " + dir +
		"/key.pem, authority: " + dir + "/ca.pem}"
	issue(t, dir, ip(0), ip(1))
	text := c.yaml(links, "run: host", "peer: software")
	near := start(t, text)
	far := start(t, other.yaml(links, "peer: software", "run: host"))
	exchange := func() {
		t.Helper()
		sent := make(chan error, 1)
		go func() {
			_, err := near.findRank(0).Engine.Send(within(t), 1, pattern(1000), mpe.Options{})
			sent <- err
		}()
		buf := make([]byte, 4000)
		if _, err := far.findRank(1).Engine.Recv(within(t), 0, buf, mpe.Options{}); err != nil ||
			!bytes.Equal(buf, pattern(1000)) {
			t.Error(err)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
	exchange()
	issue(t, dir, ip(0), ip(1))
	near.mustReload(t, text)
	exchange() // on the existing connection
	if err := far.stop(); err != nil {
		t.Fatal(err)
	}
	far = start(t, other.yaml(links, "peer: software", "run: host"))
	exchange() // both know only the new authority

	var credential *tcp.CredentialError
	issue(t, dir, ip(1))
	if err := near.Reload(mustParse(t, text)); !errors.As(err, &credential) || credential.What != "certificate" {
		t.Errorf("another's certificate: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := near.Reload(mustParse(t, text)); !errors.As(err, &credential) || credential.What != "key" {
		t.Errorf("an empty key: %v", err)
	}
	exchange()
}

// TestCheckFiles checks that errors in TLS files are detected before anything is bound.
func TestCheckFiles(t *testing.T) {
	c := newCluster(t)
	dir := t.TempDir()
	webConfig := filepath.Join(dir, "web.yml")
	check := func() error {
		t.Helper()
		text := c.yaml("defaults: {profile: extended, transport: tcp}\nhttp: {listen: \"127.0.0.1:1\", web_config: "+
			webConfig+"}\n"+
			"tls: {certificate: "+dir+"/cert.pem, key: "+dir+"/key.pem, authority: "+dir+"/ca.pem}", "run: host",
			"peer: software")
		d, err := New(mustParse(t, text), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d.CheckFiles()
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(webConfig, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	if err := check(); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "cert.pem") {
		t.Errorf("no files: %v", err)
	}
	issue(t, dir, "10.0.0.1")
	if _, ok := errors.AsType[*tcp.CredentialError](check()); !ok {
		t.Errorf("the certificate of another address: %v", check())
	}
	issue(t, dir, strings.Split(c.addr(0), ":")[0])
	if err := check(); err != nil {
		t.Error(err)
	}
	write("tls_server_config: {cert_file: none.pem, key_file: none.pem}\n")
	if _, ok := errors.AsType[*web.ConfigError](check()); !ok {
		t.Errorf("the web configuration: %v", check())
	}
}
