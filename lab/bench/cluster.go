package bench

import (
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
)

// configure writes a configuration for ranks that communicate over the link. It calls Configure with the link's
// settings.
func (l *link) configure(file, control string, n int) error {
	return Configure(file, l.profile, l.transport, control, n)
}

// Configure writes a configuration for n ranks on this machine, with unique addresses and free ports. If control is not
// empty, the configuration is for a daemon.
func Configure(file, profile, transport, control string, n int) error {
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: %q}\nhttp: {listen: \"\"}\nranks:\n", control)
	addresses := loopback(n)
	for rank, ip := range addresses {
		port, err := freePort(transport, ip)
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "  - {rank: %d, address: \"%s:%d\", run: host}\n", rank, ip, port)
	}
	fmt.Fprintf(&b, "defaults: {profile: %s, transport: %s}\n", profile, transport)
	return os.WriteFile(file, []byte(b.String()), 0o600)
}

var clusters atomic.Uint32

// loopback returns n loopback addresses that no other cluster uses, so that a free port stays free until the rank binds
// it.
func loopback(n int) []string {
	cluster := uint32(os.Getpid())<<5 + clusters.Add(1)
	addresses := make([]string, n)
	for i := range addresses {
		addresses[i] = fmt.Sprintf("127.%d.%d.%d", 64+cluster>>8&127, cluster&255, i+1)
	}
	return addresses
}

func freePort(transport, ip string) (int, error) {
	if transport == "tcp" {
		l, err := net.Listen("tcp4", ip+":0")
		if err != nil {
			return 0, err
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	c, err := net.ListenPacket("udp4", ip+":0")
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port, nil
}
