package main

import (
	"log"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/udp"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// xdpPath exchanges datagrams by the engine's path past the kernel.
type xdpPath struct {
	path    *xdp.Path
	generic bool // the program runs on packets that the kernel has already put into its own buffers
	out     [3][]byte
	batch   [1]udp.Datagram
}

func openXDP(generic bool, own, peer *endpoint) transport {
	path, err := xdp.Open(own.addrPort(), []netip.AddrPort{peer.addrPort()})
	must("AF_XDP", err)
	return &xdpPath{path: path.(*xdp.Path), generic: generic}
}

func (x *xdpPath) send(payload []byte) {
	x.out[0] = payload
	if !x.path.Carries(0, payloadLen) || !x.path.Stage(0, &x.out) {
		log.Fatalf("AF_XDP cannot send: %+v", x.path.State())
	}
	for x.path.Flush() != nil { // the device is busy
	}
}

func (x *xdpPath) receive() []byte {
	for !x.path.Pending() || x.path.Receive(x.batch[:]) == 0 {
	}
	return x.batch[0].Bytes
}

func (x *xdpPath) flush() {}

// check confirms that the path carried all datagrams in the right mode, and that the kernel's UDP saw none.
func (x *xdpPath) check(total int, c counts) {
	s := x.path.State()
	if int(s.Sent) != total || int(s.Received) != total || s.Bypassed+s.Corrupt+s.Full > 0 || s.Generic != x.generic ||
		c.received != 0 || c.sent != 0 {
		log.Fatalf("AF_XDP: %d datagrams: %+v; %+v", total, s, c)
	}
}
