package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestListenProblem(t *testing.T) {
	for listen, want := range map[string]string{
		"": "", "127.0.0.1:9627": "", "[::1]:1": "", ":0": "", "localhost:65535": "", "[fe80::1%eth0]:80": "",
		"9627":           `"9627" is not an address with a port: write it as in 127.0.0.1:9627 or [::1]:9627, or write "" to disable HTTP`,
		"::1":            `"::1" is not an address with a port: write it as in 127.0.0.1:9627 or [::1]:9627, or write "" to disable HTTP`,
		"127.0.0.1:":     `"" is not a port: it is 0 to 65535`,
		"127.0.0.1:http": `"http" is not a port: it is 0 to 65535`,
		":65536":         `"65536" is not a port: it is 0 to 65535`,
		":-1":            `"-1" is not a port: it is 0 to 65535`,
		":09":            `"09" is not a port: write 9`,
		"example.org:80": `"example.org" is not an IP address, and not localhost: names of hosts are not looked up`,
	} {
		if got := listenProblem(listen); got != want {
			t.Errorf("%q: %q, want %q", listen, got, want)
		}
	}
}

func TestHTTP(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"http: {listen: here}\n",
			`f.yaml:2: http.listen: "here" is not an address with a port: write it as in 127.0.0.1:9627 or [::1]:9627, or write "" to disable HTTP`},
		{"http: {web_config: \"a\\0\"}\n", "f.yaml:2: http.web_config: a path cannot contain a zero byte"},
		{"metrics: {peers: -1}\n", "f.yaml:2: metrics.peers: -1 is outside 0 to 1024"},
		{"metrics: {peers: 1025}\n", "f.yaml:2: metrics.peers: 1025 is outside 0 to 1024"},
		{"http: {pprof: maybe}\n", `f.yaml:2: http.pprof: "maybe" is not true or false`},
	} {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(host+tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if got := text(err); got != filepath.Dir(path)+"/"+tt.want {
			t.Errorf("%s: %q, want %q", tt.text, got, tt.want)
		}
	}
}

// TestIsHTTPExplicit checks that a daemon runs without its HTTP listener only if the address is the default, which
// nobody asked for.
func TestIsHTTPExplicit(t *testing.T) {
	env := func(listen string) func(*Config) error {
		return func(c *Config) error {
			return c.ApplyEnv(func(k string) (string, bool) {
				if k != EnvHTTPListen {
					return "", false
				}
				return listen, true
			})
		}
	}
	for _, tt := range []struct {
		name, text, listen string
		change             func(*Config) error
		want               bool
	}{
		{"default", "", DefaultHTTP, nil, false},
		{"section", "http: {pprof: true}\n", DefaultHTTP, nil, false},
		{"file", "http: {listen: \"127.0.0.1:9627\"}\n", DefaultHTTP, nil, true},
		{"environment", "", DefaultHTTP, env(DefaultHTTP), true},
		{"environment, none", "http: {listen: \":1\"}\n", "", env(""), true},
		{"program", "", ":2", func(c *Config) error { c.HTTP.Listen = ":2"; return nil }, true},
		{"flag", "", DefaultHTTP, func(c *Config) error { c.SetHTTPListen(DefaultHTTP); return nil }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustParse(t, host+tt.text)
			if tt.change != nil {
				if err := tt.change(c); err != nil {
					t.Fatal(err)
				}
			}
			if c.HTTP.Listen != tt.listen || c.IsHTTPExplicit() != tt.want {
				t.Errorf("%q, asked for: %v", c.HTTP.Listen, c.IsHTTPExplicit())
			}
		})
	}
	if err := env("x")(New()); text(err) != `ZRLMPID_HTTP_LISTEN: "x" is not an address with a port: write it as in 127.0.0.1:9627 or [::1]:9627, or write "" to disable HTTP` {
		t.Error(err)
	}
	if New().IsHTTPExplicit() {
		t.Error("a configuration of a program's has the default, and yet it was asked for")
	}
}

func TestWebConfigIsRelativeToTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(host+"http: {web_config: web.yml}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if want := filepath.Join(filepath.Dir(path), "web.yml"); err != nil || c.HTTP.WebConfig != want {
		t.Errorf("%q, %v, want %q", c.HTTP.WebConfig, err, want)
	}
}
