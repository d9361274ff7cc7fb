package bench

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
)

// configure writes a configuration for ranks that communicate over the link. It calls Configure with the link's
// settings.
func (l *link) configure(file, control string, n int) error {
	if l.path == "" {
		return Configure(file, l.profile, l.transport, control, n)
	}
	options := fmt.Sprintf("{profile: %s, transport: %s, path: %s}", l.profile, l.transport, l.path)
	return writeConfig(file, control, hostAddresses[:n], options)
}

// Configure writes a configuration for n ranks on this machine, with unique addresses and free ports. If control is not
// empty, the configuration is for a daemon.
func Configure(file, profile, transport, control string, n int) error {
	addresses := make([]netip.AddrPort, n)
	for rank, ip := range loopback(n) {
		port, err := freePort(transport, ip)
		if err != nil {
			return err
		}
		addresses[rank] = netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port))
	}
	return writeConfig(file, control, addresses, fmt.Sprintf("{profile: %s, transport: %s}", profile, transport))
}

// writeConfig writes a configuration for ranks with the given addresses and options of their links.
func writeConfig(file, control string, addresses []netip.AddrPort, options string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "control: {socket: %q}\nhttp: {listen: \"\"}\nranks:\n", control)
	for rank, address := range addresses {
		fmt.Fprintf(&b, "  - {rank: %d, address: \"%v\", run: host}\n", rank, address)
	}
	fmt.Fprintf(&b, "defaults: %s\n", options)
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
