package daemon

import (
	"strings"
	"testing"
)

// TestHostSetupIsLogged checks that problems of the host are logged once per check, and that the daemon serves
// nevertheless.
func TestHostSetupIsLogged(t *testing.T) {
	c := newCluster(t)
	text := c.yaml("", "run: host", "run: standin", "peer: cpu", "peer: cpu")
	for i, unreached := range []string{"192.0.2.8:2718", "192.0.2.9:2718"} { // addresses reserved for documentation
		text = strings.Replace(text, c.addr(i+2), unreached, 1)
	}
	r := start(t, text)
	r.log.waitFor(t, `"check": "route"`)
	r.ping(t, 1, 1, 1)
	if got := strings.Count(r.log.String(), `"check": "route"`); got != 1 {
		t.Errorf("%d lines", got)
	}
	for _, want := range []string{"packets from a loopback address do not leave this host",
		`"action": "give rank 0 an address that other hosts reach"`, `"more": 3`} {
		if !strings.Contains(r.log.String(), want) {
			t.Errorf("the log has no %s:\n%s", want, r.log)
		}
	}
}
