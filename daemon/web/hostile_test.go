package web

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// TestHosts checks that the server answers a request only if a page from another site cannot have made it.
func TestHosts(t *testing.T) {
	s, _ := serve(t, Options{Listen: "127.0.0.1:0", Hosts: []string{"zrlmpid.example.org", "*.svc.cluster.local"},
		Ready: func() error { return nil }}, nil)
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{
		"127.0.0.1:9627": 200, "10.12.0.2": 200, "[::1]:9627": 200, "localhost:9627": 200, "zrlmpid": 200, own: 200,
		"zrlmpid.example.org:9627": 200, "ZRLMPID.example.org.": 200,
		"zrlmpid-0.zrlmpid.default.svc.cluster.local:9627": 200,
		"evil.example": 421, "evil.example:9627": 421, "zrlmpid.example.org.evil.example": 421,
		"127.0.0.1.evil.example":              421,
		"svc.cluster.local.evil.example:9627": 421, "xsvc.cluster.local": 421,
	} {
		req, err := http.NewRequest(http.MethodGet, s.URL()+"-/healthy", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := newClient(t, nil).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("host %q: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

// TestGuesses checks that only a few of many concurrent wrong passwords are checked, and that the right
// password is accepted at the same time.
func TestGuesses(t *testing.T) {
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "web.yaml")
	write(t, path, "basic_auth_users: {operator: "+string(hash)+"}")
	s, _ := serve(t, Options{Listen: "127.0.0.1:0", Config: path, Ready: func() error { return nil }}, nil)
	ask := func(password string) int {
		req, err := http.NewRequest(http.MethodGet, s.URL()+"-/healthy", nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		req.SetBasicAuth("operator", password)
		resp, err := newClient(t, nil).Do(req)
		if err != nil {
			t.Error(err)
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if code := ask("secret"); code != http.StatusOK {
		t.Fatalf("the right password: %d", code)
	}
	var checked, refused atomic.Int64
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			switch code := ask("guess" + string(rune('a'+i))); code {
			case http.StatusUnauthorized:
				checked.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			default:
				t.Errorf("guess %d: %d", i, code)
			}
		})
	}
	all.Wait()
	if checked.Load() > 2*clientBurst || refused.Load() == 0 {
		t.Errorf("%d were checked, %d refused", checked.Load(), refused.Load())
	}
	if code := ask("secret"); code != http.StatusOK {
		t.Errorf("the right password after guesses: %d", code)
	}
}

// TestAttempts checks the rate limits per address and in total, and that the memory that they use is limited.
func TestAttempts(t *testing.T) {
	l := newLoginLimiter(nil)
	now := time.Unix(1, 0)
	id := func(n int) (id [32]byte) {
		id[0], id[1] = byte(n), byte(n>>8)
		return id
	}
	allowed := 0
	for n := range 100 {
		if l.allow(id(n), "10.0.0.1:5", now) {
			allowed++
		}
	}
	if allowed != clientBurst {
		t.Errorf("%d of an address, want %d", allowed, clientBurst)
	}
	if !l.allow(id(1000), "10.0.0.2:5", now) {
		t.Error("another address is refused")
	}
	l.recordResult(id(7), true)
	if !l.allow(id(7), "10.0.0.1:5", now) {
		t.Error("a password that was right is refused")
	}
	if !l.allow(id(8), "10.0.0.1:5", now.Add(2*clientInterval)) {
		t.Error("it is refused later as well")
	}
	for n := range 3 * maxRemembered {
		l.allow(id(n), string(rune(n))+":5", now)
		l.recordResult(id(n), true)
	}
	if len(l.accepted) > maxRemembered || len(l.perClient) > maxRemembered {
		t.Errorf("%d passwords and %d addresses are remembered", len(l.accepted), len(l.perClient))
	}
}
