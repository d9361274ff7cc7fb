package xdp_test

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// BenchmarkOtherTraffic measures traffic of a device that the program leaves to the kernel: without the program, and
// with it in each mode. Each iteration transfers 1 MiB, or is a round trip.
func BenchmarkOtherTraffic(b *testing.B) {
	for _, kind := range []struct {
		name string
		run  func(b *testing.B, h *hosts)
	}{
		{"stream/tcp4", func(b *testing.B, h *hosts) { benchmarkStream(b, h, false) }},
		{"stream/tcp6", func(b *testing.B, h *hosts) { benchmarkStream(b, h, true) }},
		{"trip/udp4", func(b *testing.B, h *hosts) { benchmarkTrips(b, h, false, 32, nil) }},
		{"trip/udp6", func(b *testing.B, h *hosts) { benchmarkTrips(b, h, true, 32, nil) }},
		{"trip/fragments", func(b *testing.B, h *hosts) { benchmarkTrips(b, h, false, 6000, nil) }},
		{"trip/arp", func(b *testing.B, h *hosts) {
			var handle *netlink.Handle
			var eth0 netlink.Link
			var err error
			h[0].Do(func() {
				if handle, err = netlink.NewHandle(unix.NETLINK_ROUTE); err == nil {
					eth0, err = handle.LinkByName("eth0")
				}
			})
			if err != nil {
				b.Fatal(err)
			}
			defer handle.Close()
			peer := netlink.Neigh{LinkIndex: eth0.Attrs().Index, IP: address(1, 0, false).Addr().AsSlice()}
			benchmarkTrips(b, h, false, 32, func() error { return handle.NeighDel(&peer) })
		}},
		{"trip/icmp", benchmarkICMP},
	} {
		for _, mode := range []string{"none", "generic", "native", "none, GRO"} {
			b.Run(fmt.Sprintf("%s/%s", kind.name, mode), func(b *testing.B) {
				h := newHosts(b)
				if mode == "native" || mode == "none, GRO" {
					h.useDriverMode(b)
					h[0].IP("link set eth0 mtu 1500")
					h[1].IP("link set eth0 mtu 1500")
				}
				h.resolve(b, false)
				h.resolve(b, true)
				if mode == "generic" || mode == "native" {
					m := newMap(b, false)
					for rank := range h {
						h[rank].Do(func() {
							p, err := xdp.Open(m.Addr(rank), []netip.AddrPort{m.Addr(0), m.Addr(1)})
							if err != nil {
								b.Error(err)
								return
							}
							b.Cleanup(p.Close)
						})
					}
				}
				kind.run(b, h)
			})
		}
	}
}

// benchmarkStream sends a stream from host 0 to host 1.
func benchmarkStream(b *testing.B, h *hosts, v6 bool) {
	var listener net.Listener
	var conn net.Conn
	var err error
	h[1].Do(func() { listener, err = net.Listen("tcp", address(1, 9, v6).String()) })
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	h[0].Do(func() { conn, err = net.Dial("tcp", address(1, 9, v6).String()) })
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		c, err := listener.Accept()
		if err == nil {
			_, err = io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{c}, make([]byte, 1<<18))
		}
		done <- err
	}()
	buffer := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := conn.Write(buffer); err != nil {
			b.Fatal(err)
		}
	}
	conn.Close()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

// benchmarkTrips measures round trips of datagrams of a port without a rank. before is called before each one.
func benchmarkTrips(b *testing.B, h *hosts, v6 bool, length int, before func() error) {
	var conns [2]*net.UDPConn
	for i := range conns {
		var err error
		h[i].Do(func() {
			conns[i], err = net.DialUDP("udp", net.UDPAddrFromAddrPort(address(i, 9, v6)),
				net.UDPAddrFromAddrPort(address(1-i, 9, v6)))
		})
		if err != nil {
			b.Fatal(err)
		}
		defer conns[i].Close()
	}
	go func() {
		buffer := make([]byte, length)
		for {
			n, err := conns[1].Read(buffer)
			if err != nil {
				return
			}
			_, _ = conns[1].Write(buffer[:n])
		}
	}()
	buffer := make([]byte, length)
	for b.Loop() {
		if before != nil {
			if err := before(); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := conns[0].Write(buffer); err != nil {
			b.Fatal(err)
		}
		if n, err := conns[0].Read(buffer); n != length || err != nil {
			b.Fatal(n, err)
		}
	}
}

// benchmarkICMP measures round trips that the kernel of host 1 answers.
func benchmarkICMP(b *testing.B, h *hosts) {
	var conn net.Conn
	var err error
	h[0].Do(func() { conn, err = net.Dial("ip4:icmp", address(1, 0, false).Addr().String()) })
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	request := []byte{8, 0, 0xf7, 0xff, 0, 0, 0, 0} // an echo request with its checksum
	buffer := make([]byte, 100)
	for b.Loop() {
		if _, err := conn.Write(request); err != nil {
			b.Fatal(err)
		}
		if _, err := conn.Read(buffer); err != nil {
			b.Fatal(err)
		}
	}
}
