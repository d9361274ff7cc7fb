package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/bcrypt"
)

func init() {
	attacks = append(attacks,
		attack{name: "a page asks under another name", run: rebinding, once: true},
		attack{name: "wrong passwords", run: guesses, once: true},
		attack{name: "a status without end", run: endlessStatus, once: true},
	)
}

// webAddress is the daemon's HTTP address, and evilAddress an HTTP address of the other user.
const (
	webAddress  = "127.66.1.1:9627"
	evilAddress = "127.66.1.9:9627"
)

// ask sends an HTTP request to the daemon, which does not know the user that sends it, and returns the status code.
func (h *host) ask(name, password string) (code int) {
	req, err := http.NewRequestWithContext(h.Context(), http.MethodGet, "http://"+webAddress+"/status.json", nil)
	if err != nil {
		h.Error(err)
		return 0
	}
	req.Host = name
	if password != "" {
		req.SetBasicAuth("operator", password)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Error(err)
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // only the code matters
	return resp.StatusCode
}

// rebinding sends requests as a browser page on this host would after DNS rebinding: to the daemon, but with a name of
// the other user as the host.
func rebinding(h *host) {
	h.start("--config", h.config(""), "--control", h.private+"/z.sock", "--http", webAddress)
	for name, want := range map[string]int{webAddress: 200, "evil.example": 421, "evil.example:9627": 421} {
		if code := h.ask(name, ""); code != want {
			h.Errorf("Host: %s: %d, want %d", name, code, want)
		}
	}
}

// guesses sends 40 wrong passwords concurrently. The daemon must spend time on only a few of them, and accept the right
// password afterwards.
func guesses(h *host) {
	hash, err := bcrypt.GenerateFromPassword([]byte("right"), bcrypt.DefaultCost)
	must(h.T, err)
	web := h.private + "/web.yaml"
	must(h.T, os.WriteFile(web, fmt.Appendf(nil, "basic_auth_users: {operator: %q}\n", hash), 0o600))
	config := h.config(fmt.Sprintf("http: {web_config: %q}", web))
	d := h.start("--config", config, "--control", h.private+"/z.sock", "--http", webAddress)
	if code := h.ask(webAddress, "right"); code != http.StatusOK {
		h.Fatalf("the right password: %d\n%s", code, d.log)
	}
	before := d.processorTime()
	var all sync.WaitGroup
	var checked, refused atomic.Int64
	for i := range 40 {
		all.Go(func() {
			switch code := h.ask(webAddress, "guess "+strconv.Itoa(i)); code {
			case http.StatusUnauthorized:
				checked.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			default:
				h.Errorf("guess %d: %d", i, code)
			}
		})
	}
	all.Wait()
	h.Logf("%d passwords checked, %d refused, %v", checked.Load(), refused.Load(), d.processorTime()-before)
	if checked.Load() > 20 || refused.Load() == 0 {
		h.Errorf("%d passwords were checked, %d refused", checked.Load(), refused.Load())
	}
	if code := h.ask(webAddress, "right"); code != http.StatusOK {
		h.Errorf("the right password after guesses: %d", code)
	}
}

// processorTime returns the processor time that the daemon has used so far.
func (d *daemon) processorTime() time.Duration {
	d.h.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", d.cmd.Process.Pid))
	must(d.h.T, err)
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	must(d.h.T, err)
	return time.Duration(ns)
}

// endlessStatus lets root ask a host of the other user for its status, which never ends.
func endlessStatus(h *host) {
	more := bytes.Repeat([]byte(`{"ranks":[`), 1<<16)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(more); err != nil {
				return
			}
		}
	})}
	h.Cleanup(func() { server.Close() })
	var l net.Listener
	h.attacker(func() (err error) {
		l, err = net.Listen("tcp", evilAddress)
		return err
	})
	go server.Serve(l)
	code, out := h.bounded("why", "--daemons", "http://"+evilAddress)
	if code == 0 || !strings.Contains(out, evilAddress) {
		h.Errorf("exit code %d, %s", code, out)
	}
}
