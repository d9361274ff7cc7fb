package node

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestPathFallback checks that path: auto falls back to the kernel's socket with the reason, and that path: xdp does
// not.
func TestPathFallback(t *testing.T) {
	refused := errors.New("the device is in use")
	for _, test := range []struct {
		path    config.Path
		lacking bool // this process has no paths
		role    string
		failed  string // error of Bind
		reason  string // PathError
		opened  bool
	}{
		{path: config.PathKernel},
		{path: config.PathAuto, reason: "in use", opened: true},
		{path: config.PathXDP, failed: "path: xdp is not possible: the device is in use", reason: "in use", opened: true},
		{path: config.PathAuto, lacking: true, reason: "only the ranks of a zrlmpid"},
		{path: config.PathAuto, role: "standin, kernel: echo, kernel_options: {peer: 1}, faults: {rules: [loss 5%]}",
			reason: "faults are injected"},
	} {
		t.Run(fmt.Sprintf("%s %v %s", test.path, test.lacking, test.role), func(t *testing.T) {
			m := transporttest.Map(t, 2)
			text := fmt.Sprintf("ranks: [{rank: 0, address: %q, run: %s}, {rank: 1, address: %q, peer: fpga}]\n"+
				"defaults: {path: %s}\n", m.Addr(0).String(), cmp.Or(test.role, "host"), m.Addr(1).String(), test.path)
			cfg := mustParse(t, text)
			r, err := Plan(cfg, cfg.Rank(0))
			if err != nil {
				t.Fatal(err)
			}
			opened := false
			if !test.lacking {
				r.OpenPath = func(path config.Path) udp.OpenPath {
					return func(netip.AddrPort, []netip.AddrPort) (udp.Path, error) {
						opened = path == test.path
						return nil, refused
					}
				}
			}
			err = r.Bind(m)
			defer func() { _ = r.sockets.close() }() // nothing is sent
			if (err == nil) != (test.failed == "") || err != nil && !strings.Contains(err.Error(), test.failed) {
				t.Fatalf("Bind: %v, want %q", err, test.failed)
			}
			if reason := r.PathError(); (reason == nil) != (test.reason == "") ||
				reason != nil && !strings.Contains(reason.Error(), test.reason) {
				t.Errorf("PathError: %v, want %q", reason, test.reason)
			}
			if opened != test.opened {
				t.Errorf("opened: %v", opened)
			}
			if err != nil {
				return
			}
			if s := r.pathState(); (s == nil) != (test.reason == "") || s != nil && !strings.Contains(s.Error, test.reason) {
				t.Errorf("state: %+v", s)
			}
		})
	}
}
