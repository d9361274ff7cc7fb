package daemon

import (
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// TestSecretsAreNotShown checks that no log line of any level, status, page, metric or error contains a
// password or its hash, a key, an argument of a kernel's program, an environment variable, or payload, even if
// the files that contain them are invalid.
func TestSecretsAreNotShown(t *testing.T) {
	const argument, password, variable, payload, misplaced = "argument-secret", "password-secret", "variable-secret",
		"payload-secret!!", "misplaced-secret"
	t.Setenv("SECRET_OF_THE_TEST", variable)
	dir := t.TempDir()
	c := newCluster(t)
	ip := func(rank int) string { return strings.Split(c.addr(rank), ":")[0] }
	issue(t, dir, ip(0), ip(1), ip(2), "127.0.0.1")
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	web := fmt.Sprintf("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {operator: %q}\n",
		hash)
	write("web.yml", web)
	text := c.yaml("http: {listen: \"127.0.0.1:0\", web_config: "+dir+"/web.yml, pprof: true}\n"+
		"tls: {certificate: "+dir+"/cert.pem, key: "+dir+"/key.pem, authority: "+dir+"/ca.pem}",
		"run: host", "run: standin, kernel: \"exec:/bin/true --token="+argument+"\"", "run: standin",
		"peer: software, link: {profile: extended, transport: tcp}")
	var shown strings.Builder
	r := startWith(t, text, func(o *Options) {
		o.LoadConfig = func() (*config.Config, error) { return config.Load(filepath.Join(dir, "zrlmpid.yaml")) }
	})
	shown.WriteString(r.ready)

	// Use the secrets.
	message := []byte(strings.Repeat(payload, 100))
	if _, err := r.findRank(0).Engine.Send(within(t), 2, message, mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, len(message))
	if _, err := r.findRank(0).Engine.Recv(within(t), 2, back, mpe.Options{}); err != nil || !bytes.Equal(back, message) {
		t.Fatal(err)
	}
	foreign, err := net.Dial("udp", c.addr(0))
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	from, err := net.DialUDP("udp", &net.UDPAddr{IP: net.ParseIP(ip(2))}, foreign.RemoteAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for _, conn := range []net.Conn{foreign, from} { // from an unknown address and from a known one
		if _, err := conn.Write(message[:64]); err != nil {
			t.Fatal(err)
		}
	}
	r.log.waitFor(t, "packet dropped")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		Timeout: testTimeout}
	defer client.CloseIdleConnections()
	get := func(path, with string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(within(t), http.MethodGet, r.webURL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("operator", with)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.Copy(&shown, resp.Body); err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	for _, path := range []string{"", "metrics", "status.json", "-/ready", "debug/pprof/goroutine?debug=2",
		"debug/pprof/cmdline"} {
		if code := get(path, password); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code := get("metrics", misplaced); code != http.StatusUnauthorized {
		t.Errorf("a wrong password: %d", code)
	}
	show := func(v any, err error) {
		t.Helper()
		if text, jsonErr := json.Marshal(v); jsonErr == nil {
			shown.Write(text)
		}
		fmt.Fprintf(&shown, "%v %+v %v\n", v, v, err)
	}
	show(r.client.Status(within(t)))
	_, _, err = r.client.Recv(within(t), control.RecvRequest{From: 2, To: 1, Words: 1})
	show(nil, err)

	// Reload files that are refused.
	valid := map[string]string{"zrlmpid.yaml": text, "web.yml": web, "key.pem": string(key)}
	for _, tt := range []struct{ file, text string }{
		{"zrlmpid.yaml", strings.Replace(text, argument, misplaced, 1)},
		{"zrlmpid.yaml", strings.Replace(text, "exec:", "exe:", 1)},
		{"zrlmpid.yaml", strings.Replace(text, "exec:/bin/true", "exec:/no/such/program", 1)},
		{"web.yml", misplaced},
		{"web.yml", "basic_auth_users: [" + misplaced + "]"},
		{"web.yml", "tls_server_config: {key: " + misplaced + "}"},
		{"key.pem", misplaced},
		{"cert.pem", string(key)},
	} {
		for name, text := range valid {
			write(name, text)
		}
		write(tt.file, tt.text)
		show(r.client.Reload(within(t)))
		if code := get("-/healthy", password); code != http.StatusOK {
			t.Errorf("with another %s: %d", tt.file, code)
		}
	}
	if n := r.web.ConfigFailures(); n != 5 {
		t.Errorf("%d failures of the web configuration, want 5", n)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	shown.WriteString(r.log.String())
	for _, there := range []string{"exec:/bin/true", "configuration refused", "web configuration refused",
		"with other arguments"} {
		if !strings.Contains(shown.String(), there) {
			t.Errorf("%q is not shown: the test checks nothing", there)
		}
	}
	secrets := []string{argument, password, variable, payload, misplaced, string(hash),
		strings.Split(string(key), "\n")[1]}
	for _, s := range secrets {
		for _, form := range []string{s, base64.StdEncoding.EncodeToString([]byte(s)), fmt.Sprintf("%x", s),
			fmt.Sprint([]byte(s))} {
			if i := strings.Index(shown.String(), form); i >= 0 {
				t.Errorf("%q is shown: …%s…", s, shown.String()[max(i-200, 0):min(i+200, shown.Len())])
			}
		}
	}
}
