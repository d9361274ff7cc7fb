package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// certify writes a certificate for 127.0.0.1 and the certificate's key to dir.
func certify(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, filepath.Join(dir, "cert.pem"), string(certificate))
	write(t, filepath.Join(dir, "key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTLSAndPasswords(t *testing.T) {
	dir := t.TempDir()
	pool := certify(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "web.yml")
	write(t, path, fmt.Sprintf("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: "+
		"{operator: %q}\n", hash))
	s, _ := serve(t, Options{Config: path}, nil)
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Fatalf("the server is at %s", s.URL())
	}
	c := newClient(t, pool)
	for password, code := range map[string]int{"secret": 200, "guess": 401, "": 401} {
		req, err := http.NewRequest(http.MethodGet, s.URL()+"-/healthy", nil)
		if err != nil {
			t.Fatal(err)
		}
		if password != "" {
			req.SetBasicAuth("operator", password)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("password %q: %s, want %d", password, resp.Status, code)
		}
	}
	if resp, err := newClient(t, nil).Get(s.URL() + "-/healthy"); err == nil {
		resp.Body.Close()
		t.Error("a client that does not trust the certificate takes it")
	}
}

func TestBadWebConfig(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"unknown.yml": "tls: {}\n", "nofile.yml": "tls_server_config: {cert_file: no.pem, key_file: no.pem}\n",
		"yaml.yml":  "a: [\n",
		"users.yml": "basic_auth_users: {operator: plain}\n", "": "",
	} {
		path := filepath.Join(dir, name)
		if name == "" {
			path = filepath.Join(dir, "no.yml")
		} else {
			write(t, path, text)
		}
		s, err := Listen(Options{Listen: "127.0.0.1:0", Config: path})
		var bad *ConfigError
		if !errors.As(err, &bad) || bad.Path != path || !strings.HasPrefix(err.Error(), "http.web_config: "+path+": ") {
			t.Errorf("%s: %v", name, err)
		}
		if s != nil {
			s.Close()
		}
	}
	path := filepath.Join(dir, "empty.yml")
	write(t, path, "")
	if s, _ := serve(t, Options{Config: path}, nil); !strings.HasPrefix(s.URL(), "http://") {
		t.Error(s.URL())
	}
}

// lines collects the lines of a log.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestLogIsQuiet checks that a client without TLS at a TLS port causes a line at level debug, and that
// the toolkit's info lines are dropped.
func TestLogIsQuiet(t *testing.T) {
	dir := t.TempDir()
	certify(t, dir)
	path := filepath.Join(dir, "web.yml")
	write(t, path, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n")
	var log lines
	s, stop := serve(t, Options{Config: path,
		Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}, nil)
	resp, err := newClient(t, nil).Get("http" + strings.TrimPrefix(s.URL(), "https") + "-/healthy")
	if err == nil {
		resp.Body.Close()
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if text := log.b.String(); strings.Contains(text, "INFO") || !strings.Contains(text, "level=DEBUG msg=\"http: ") {
		t.Errorf("the log:\n%s", text)
	}
}

// TestFilesAreReadAgain checks that changed files are used for new connections and requests unless they are
// invalid, and that existing connections stay open.
func TestFilesAreReadAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the toolkit itself reads the files on this system")
	}
	dir := t.TempDir()
	first := certify(t, dir)
	path := filepath.Join(dir, "web.yml")
	config := func(password, more string) {
		hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, fmt.Sprintf("tls_server_config: {cert_file: cert.pem, key_file: key.pem%s}\nbasic_auth_users: "+
			"{operator: %q}\n", more, hash))
	}
	config("one", "")
	var log lines
	s, stop := serve(t, Options{Config: path, Log: slog.New(slog.NewTextHandler(&log, nil))}, nil)
	// ask returns the HTTP status of a request, or 0 if it cannot connect.
	ask := func(c *http.Client, password string) int {
		req, err := http.NewRequest(http.MethodGet, s.URL()+"-/healthy", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("operator", password)
		resp, err := c.Do(req)
		if err != nil {
			return 0
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp.StatusCode
	}
	old := newClient(t, first)
	if code := ask(old, "one"); code != 200 {
		t.Fatal(code)
	}
	second := certify(t, dir)
	if code := ask(newClient(t, second), "one"); code != 200 {
		t.Errorf("the new certificate: %d", code)
	}
	if code := ask(newClient(t, first), "one"); code != 0 {
		t.Errorf("the old certificate is used for a new connection: %d", code)
	}
	if code := ask(old, "one"); code != 200 {
		t.Errorf("the old connection: %d", code)
	}
	const secret = "open-sesame"
	for i, tt := range []struct {
		name   string
		change func()
		why    string
	}{
		{"an invalid key", func() { write(t, filepath.Join(dir, "key.pem"), secret) },
			"failed to find any PEM data in key input"},
		{"no key", func() { os.Remove(filepath.Join(dir, "key.pem")) }, "key_file: open "},
		{"no YAML", func() { write(t, path, secret) }, "cannot unmarshal !!str a value into"},
		{"a password in its place", func() { write(t, path, "basic_auth_users: "+secret) },
			"cannot unmarshal !!str a value into"},
		{"a plain password", func() { write(t, path, "basic_auth_users: {operator: "+secret+"}") },
			"too short to be a bcrypted password"},
		{"no TLS", func() { write(t, path, "{}") }, "a restart is needed to enable or disable TLS"},
		{"an authority without certificates", func() {
			certify(t, dir) // must not be used either
			config("one", ", client_ca_file: "+path+", client_auth_type: RequireAndVerifyClientCert")
		}, "has no certificate"},
	} {
		tt.change()
		if code := ask(newClient(t, second), "one"); code != 200 {
			t.Errorf("%s: %d", tt.name, code)
		}
		if code := ask(old, "one"); code != 200 {
			t.Errorf("%s: the old connection: %d", tt.name, code)
		}
		if n := s.ConfigFailures(); n != uint64(i+1) {
			t.Errorf("%s: %d failures, want %d", tt.name, n, i+1)
		}
		if text := log.text(); !strings.Contains(text, tt.why) {
			t.Errorf("%s: the log has not %q:\n%s", tt.name, tt.why, text)
		}
	}
	second = certify(t, dir)
	config("two", "")
	for password, want := range map[string]int{"one": 401, "two": 200} {
		if code := ask(old, password); code != want {
			t.Errorf("password %q on the old connection: %d, want %d", password, code, want)
		}
	}
	if code := ask(newClient(t, second), "two"); code != 200 {
		t.Errorf("the third certificate: %d", code)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	text := log.text()
	if strings.Contains(text, secret) || strings.Contains(text, "$2a$") {
		t.Errorf("the log has a secret:\n%s", text)
	}
	if n := strings.Count(text, "web configuration reloaded"); n != 2 {
		t.Errorf("%d reloads are logged, want 2:\n%s", n, text)
	}
}
