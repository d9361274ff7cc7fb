package integration_test

import (
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/tlstest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
)

// overTLS opens every rank in this process, over TCP with mutual TLS.
func overTLS(t *testing.T, n int) []mpe.Device {
	t.Helper()
	p := newPlace(t)
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprint(p, i+1)
	}
	cfg := p.config(t, n, "control: {socket: \"\"}\ndefaults: {profile: extended, transport: tcp}\n"+
		tlstest.Section(t, addresses...))
	devices := make([]mpe.Device, n)
	for rank := range n {
		d, err := node.Open(cfg, rank, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close(ended()) })
		devices[rank] = d
	}
	return devices
}
