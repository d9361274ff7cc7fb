// Package netnstest gives tests separate hosts: network namespaces that close when the test ends.
package netnstest

import (
	"os/exec"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/netns"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// Host is a network namespace. Its methods fail the test in place of returning errors, and may only be called by the
// goroutine of the test.
type Host struct {
	*netns.Namespace
	t testing.TB
}

// New returns a host without devices, except for its loopback, which is up. The text what names the subject of the test
// if there is no right or no program for it.
func New(t testing.TB, what string) Host {
	t.Helper()
	check(t, what)
	n, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	h := Host{n, t}
	h.IP("link set lo up")
	return h
}

// Pair returns two hosts joined by their devices eth0 (netns.Pair), which are created with the given options.
func Pair(t testing.TB, what string, options [2]string) [2]Host {
	t.Helper()
	check(t, what)
	p, err := netns.NewPair(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return [2]Host{{p[0], t}, {p[1], t}}
}

func check(t testing.TB, what string) {
	t.Helper()
	needs.Root(t, what, "can create network namespaces")
	needs.Program(t, what, "ip", "iproute2")
}

// Join joins the host to another one (netns.Join).
func (h Host) Join(device string, other Host, otherDevice string) {
	h.t.Helper()
	if err := netns.Join(h.Namespace, other.Namespace, device, otherDevice); err != nil {
		h.t.Fatal(err)
	}
}

// IP runs commands of the program ip.
func (h Host) IP(lines ...string) {
	h.t.Helper()
	if err := h.RunIP(lines...); err != nil {
		h.t.Fatalf("%q: %v", lines, err)
	}
}

// Set changes a kernel setting.
func (h Host) Set(key, value string) {
	h.t.Helper()
	if err := h.Namespace.Set(key, value); err != nil {
		h.t.Fatal(err)
	}
}

// Run runs a program on the host and returns its output.
func (h Host) Run(program string, args ...string) (out []byte) {
	h.t.Helper()
	var err error
	h.Do(func() { out, err = exec.Command(program, args...).CombinedOutput() })
	if err != nil {
		h.t.Fatalf("%s %q: %v: %s", program, args, err, out)
	}
	return out
}
