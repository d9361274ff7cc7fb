package xdp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/udp"
)

// Path carries the datagrams of one rank. It implements udp.Path.
type Path struct {
	local   netip.AddrPort
	key     deviceKey
	device  *device
	slot    int
	sockets []*socket // by queue
	routes  *routes
	// filter is the packet filter whose rules the path must not bypass, or nil. filtered is set while it has rules. Only
	// the goroutine of routes uses them after OpenUnlessFiltered.
	filter   *filter
	filtered bool

	// next is the queue at which the next Receive begins. held contains, for each queue, the frames that the last
	// Receive returned.
	next int
	held [][]uint64
	// frames are the frames that Stage may use, all of the pool of the queue sender.
	frames []uint64
	sender *socket

	counters struct{ sent, received, corrupt atomic.Uint64 }
}

var _ udp.Path = (*Path)(nil)

// Open implements udp.OpenPath. It fails if no Ethernet device has the local address, another program is attached to
// the device, or the process lacks CAP_NET_RAW, CAP_NET_ADMIN or CAP_BPF.
func Open(local netip.AddrPort, peers []netip.AddrPort) (udp.Path, error) {
	p, err := open(local, peers)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// open opens a path without looking at packet filters. A path receives on all queues of its device, and sends on one,
// which depends on its slot, so that the ranks of a device share the queues.
func open(local netip.AddrPort, peers []netip.AddrPort) (_ *Path, err error) {
	p := &Path{local: local}
	defer func() {
		if err != nil {
			p.Close()
			err = fmt.Errorf("xdp: %v: %w%s", local, err, remedy(err))
		}
	}()
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening a netlink socket: %w", err)
	}
	if p.key.index, err = deviceOf(handle, local.Addr()); err == nil {
		p.key.namespace, err = currentNamespace()
	}
	if err == nil {
		p.routes, err = newRoutes(handle, p.key.index, local, peers)
	}
	if err != nil {
		handle.Close()
		return nil, err
	}
	if p.device, err = openDevice(p.key); err != nil {
		return nil, err
	}
	slot, sockets, err := p.device.open(local)
	if err != nil {
		return nil, err
	}
	p.slot, p.sockets, p.sender = slot, sockets, sockets[slot%min(p.device.transmitQueues, len(sockets))]
	for range sockets {
		p.held = append(p.held, make([]uint64, 0, heldFrames))
	}
	return p, nil
}

// remedy returns what to do about an error that the process's rights explain.
func remedy(err error) string {
	switch {
	case errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES):
		return "; AF_XDP needs CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF"
	case errors.Is(err, unix.ENOBUFS):
		return "; raise the limit of locked memory (ulimit -l, LimitMEMLOCK of systemd), or add CAP_IPC_LOCK"
	}
	return ""
}

// Carries implements udp.Path.
func (p *Path) Carries(peer, length int) bool {
	e := &p.routes.table.Load().peers[peer]
	return e.reason == "" && length <= e.limit
}

// heldFrames is the number of frames of one queue that a Receive usually returns at most.
const heldFrames = 64

// stageFrames is the number of frames that Stage takes from the pool at once.
const stageFrames = 64

// Stage implements udp.Path.
func (p *Path) Stage(peer int, parts *[3][]byte) bool {
	e := &p.routes.table.Load().peers[peer]
	s := p.sender
	if len(p.frames) == 0 {
		p.frames = s.pool.allocate(p.frames, stageFrames)
	}
	length := e.headers.len + len(parts[0]) + len(parts[1]) + len(parts[2])
	if len(p.frames) == 0 || s.transmit.space() == 0 || e.headers.len == 0 || length > frameLen {
		return false
	}
	if e.stale && !p.routes.used[peer].Swap(true) {
		p.routes.touch()
	}
	last := len(p.frames) - 1
	address := p.frames[last]
	p.frames = p.frames[:last]
	n := e.headers.build(s.pool.frame(address, frameLen), parts[0], parts[1], parts[2])
	s.transmit.put(unix.XDPDesc{Addr: address, Len: uint32(n)})
	p.counters.sent.Add(1)
	return true
}

// Flush implements udp.Path.
func (p *Path) Flush() error {
	p.sender.transmit.publish()
	return p.sender.kick()
}

// Discard implements udp.Path. The kernel may already have read the entries of the ring, so that they stay there, and
// it sends and completes the frames once the device works again. They become frames that nobody receives.
func (p *Path) Discard() (n int) {
	ring, mac := p.sender.transmit, p.routes.table.Load().mac
	for at := ring.consumer.Load(); at != ring.next; at++ {
		frame := p.sender.pool.frame(ring.entry(at).Addr, ethernetLen)
		if binary.BigEndian.Uint16(frame[2*macLen:]) == etherTypeDiscarded {
			continue
		}
		copy(frame, mac[:])
		binary.BigEndian.PutUint16(frame[2*macLen:], etherTypeDiscarded)
		n++
	}
	return n
}

// Receive implements udp.Path.
func (p *Path) Receive(batch []udp.Datagram) (n int) {
	t := p.routes.table.Load()
	for range p.sockets {
		queue := p.next
		if p.next++; p.next == len(p.sockets) {
			p.next = 0
		}
		if len(p.held[queue]) > 0 {
			p.sockets[queue].pool.refill(p.held[queue])
			p.held[queue] = p.held[queue][:0]
		}
		n += p.receive(queue, t.mac, batch[n:])
	}
	return n
}

// receive stores datagrams of one queue in batch and returns their number. It takes at most as many frames as batch has
// entries, and returns corrupt ones to the kernel at once: otherwise, a flood of them could use up all frames while the
// caller, who has received nothing, has no reason to call again.
func (p *Path) receive(queue int, mac [macLen]byte, batch []udp.Datagram) (n int) {
	s := p.sockets[queue]
	taken := false
	for range batch {
		if !s.receive.available() {
			break
		}
		taken = true
		descriptor := s.receive.take()
		held := append(p.held[queue], descriptor.Addr)
		payload, from, defect := parse(s.pool.frame(descriptor.Addr, descriptor.Len), mac, p.device.localSenders)
		if defect != sound {
			p.counters.corrupt.Add(1)
			s.pool.refill(held[len(held)-1:])
			continue
		}
		p.held[queue] = held
		p.counters.received.Add(1)
		batch[n] = udp.Datagram{Bytes: payload, From: from, After: p.after(s, descriptor.Addr)}
		n++
	}
	if taken {
		s.receive.release()
	}
	return n
}

// after returns the number of bypassed datagrams that arrived before a frame. In the driver's mode, whose frames are
// not stamped, no message consists of both kinds of datagrams, and all bypassed ones are returned first.
func (p *Path) after(s *socket, address uint64) uint64 {
	if !p.device.generic {
		return p.Bypassed()
	}
	return binary.NativeEndian.Uint64(s.pool.frame(address-stampLen, stampLen)) - p.device.passedBefore[p.slot]
}

// Pending implements udp.Path.
func (p *Path) Pending() bool {
	for _, s := range p.sockets {
		if s.receive.available() {
			return true
		}
	}
	return false
}

// Bypassed implements udp.Path.
func (p *Path) Bypassed() uint64 { return p.device.passed(p.slot) }

// State implements udp.Path.
func (p *Path) State() state.Path {
	s := state.Path{
		Device: p.device.name, Driver: p.device.driver, Generic: p.device.generic, ZeroCopy: p.device.pools[0].zero,
		Queues: len(p.sockets), Sent: p.counters.sent.Load(), Received: p.counters.received.Load(),
		Bypassed: p.Bypassed(), Corrupt: p.counters.corrupt.Load(),
	}
	for _, socket := range p.sockets {
		s.Full += socket.full()
	}
	peers := *p.routes.peers.Load()
	for peer, e := range p.routes.table.Load().peers {
		if e.reason != "" && peers[peer] != p.local {
			s.ByKernel = append(s.ByKernel, state.PathRefusal{Peer: peer, Reason: e.reason, Unresolved: e.unresolved,
				Local: e.local})
		}
	}
	return s
}

// Coalescing implements udp.Path.
func (p *Path) Coalescing() udp.Coalescing {
	switch {
	case !p.device.generic:
		return udp.CoalesceAny
	case p.device.driver == vethDriver:
		return udp.CoalesceAlways
	}
	return udp.CoalesceNever
}

// Descriptors implements udp.Path.
func (p *Path) Descriptors() []int {
	all := make([]int, len(p.sockets))
	for i, s := range p.sockets {
		all[i] = s.fd
	}
	return all
}

// Move implements udp.Path.
func (p *Path) Move(peers []netip.AddrPort) { p.routes.move(peers) }

// Close implements udp.Path.
func (p *Path) Close() {
	if p.routes != nil {
		p.routes.close() // before the slot is given to another rank
	}
	if p.filter != nil {
		p.filter.close()
	}
	if p.sockets != nil {
		for queue, held := range p.held {
			p.sockets[queue].pool.refill(held)
		}
		p.sender.pool.release(p.frames)
		p.device.closeSlot(p.slot, p.local, p.sockets)
	}
	if p.device != nil {
		p.device.release(p.key)
	}
}
