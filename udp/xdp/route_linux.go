package xdp

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// refreshInterval is the interval at which the tables are read even if the kernel has announced no change: it does not
// announce all of them, such as routing rules. Tests shorten it.
var refreshInterval = 5 * time.Second

const (
	// announcementPause is the pause after an announcement. Meanwhile, the kernel collects further ones.
	announcementPause = time.Millisecond
	// readPause is the pause after the tables were read, as a multiple of the time that this took, up to maxReadPause.
	readPause    = 9
	maxReadPause = 100 * time.Millisecond
)

// table contains what the kernel knows about the peers of a rank, in rank order.
type table struct {
	mac   [macLen]byte // of the device
	peers []entry
}

// entry describes how to reach a peer.
type entry struct {
	// reason is the reason why the path does not carry datagrams to the peer, or "".
	reason string
	// unresolved is set if the reason is that the kernel does not know the hardware address of the next hop.
	unresolved bool
	// local is set if the reason is that the peer has an address of this host.
	local   bool
	headers headers
	// limit is the maximum length of a datagram in bytes.
	limit int
	// stale is set if the kernel has not confirmed the neighbour for some time. It does so when somebody uses it.
	stale bool
}

// routes keeps the table of a rank up to date.
type routes struct {
	device int
	local  netip.AddrPort
	// handle asks the kernel in the network namespace in which it was opened.
	handle *netlink.Handle
	// mu is held while peers and table are stored.
	mu    sync.Mutex
	peers atomic.Pointer[[]netip.AddrPort]
	table atomic.Pointer[table]
	// used is set for a peer when a datagram is sent to a stale neighbour.
	used []atomic.Bool
	// recheck returns the reason why the path must not carry anything. It may be nil. filtered is its last result.
	recheck  atomic.Pointer[func() error]
	filtered error
	changed  chan struct{}
	done     chan struct{} // closed by close
	ended    chan struct{} // closed when follow returns
}

// deviceOf returns the index of the device that has an address.
func deviceOf(handle *netlink.Handle, local netip.Addr) (int, error) {
	addresses, err := handle.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return 0, fmt.Errorf("listing the addresses of this host: %w", err)
	}
	for _, a := range addresses {
		if ip, ok := netip.AddrFromSlice(a.IP); ok && ip.Unmap() == local.Unmap() {
			return a.LinkIndex, nil
		}
	}
	return 0, fmt.Errorf("no device has the address %v", local)
}

// newRoutes reads the tables, and follows their changes until close.
func newRoutes(handle *netlink.Handle, device int, local netip.AddrPort, peers []netip.AddrPort) (*routes, error) {
	r := &routes{device: device, local: local, handle: handle, used: make([]atomic.Bool, len(peers)),
		changed: make(chan struct{}, 1), done: make(chan struct{}), ended: make(chan struct{})}
	r.peers.Store(&peers)
	if err := r.subscribe(); err != nil {
		close(r.done)
		return nil, err
	}
	r.read()
	go r.follow()
	return r, nil
}

// subscribe makes every change of the kernel's tables set changed.
func (r *routes) subscribe() error {
	s, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_IPV4_ROUTE,
		unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR)
	if err != nil {
		return fmt.Errorf("subscribing to changes of the routes: %w", err)
	}
	go func() {
		<-r.done
		s.Close()
	}()
	go func() {
		for {
			if _, _, err := s.Receive(); errors.Is(err, os.ErrClosed) {
				return
			}
			r.touch() // also after an error: ENOBUFS means that announcements were lost
			// Many announcements, or an error that persists, must not cost a processor.
			time.Sleep(announcementPause)
		}
	}()
	return nil
}

// touch makes the goroutine read the tables soon.
func (r *routes) touch() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// follow reads the tables after every change. It also reads them periodically: no change announces that a used
// neighbour has become stale, or that the packet filter has rules.
func (r *routes) follow() {
	defer close(r.ended)
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		select {
		case <-r.done:
			return
		case <-r.changed:
		case <-ticker.C:
			r.checkFilter()
		}
		start := time.Now()
		r.read()
		select {
		case <-r.done:
		case <-time.After(min(readPause*time.Since(start), maxReadPause)):
		}
	}
}

// checkFilter calls recheck. Like read, only one goroutine at a time calls it.
func (r *routes) checkFilter() {
	if recheck := r.recheck.Load(); recheck != nil {
		r.filtered = (*recheck)()
	}
}

// read reads the kernel's tables. It asks the kernel to confirm stale neighbours that are used.
func (r *routes) read() {
	peers := r.peers.Load()
	t := r.readTable(*peers)
	if r.filtered != nil {
		mac := t.mac
		t = unusable(len(*peers), r.filtered.Error())
		t.mac = mac
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.peers.Load() == peers { // otherwise move has touched r
		r.table.Store(t)
	}
}

// readTable makes a table from the kernel's current links, routes and neighbours. If the device has failed, the table
// carries no peer.
func (r *routes) readTable(peers []netip.AddrPort) *table {
	l, err := r.handle.LinkByIndex(r.device)
	if err == nil && len(l.Attrs().HardwareAddr) != macLen {
		err = errors.New("it has no Ethernet address")
	}
	if err != nil {
		t := unusable(len(peers), fmt.Sprintf("the device is not available: %v", err))
		if last := r.table.Load(); last != nil {
			t.mac = last.mac // frames may still arrive
		}
		return t
	}
	t := &table{mac: [macLen]byte(l.Attrs().HardwareAddr), peers: make([]entry, len(peers))}
	neighbours, _ := r.handle.NeighList(r.device, netlink.FAMILY_ALL) // without neighbours, no peer is resolved
	for i, peer := range peers {
		t.peers[i] = r.lookUp(l.Attrs(), peer, neighbours)
		if t.peers[i].stale && r.used[i].Swap(false) {
			r.confirm(&t.peers[i], peer, neighbours)
		}
	}
	return t
}

// unusable returns a table of n peers that the path does not carry for the same reason.
func unusable(n int, reason string) *table {
	t := &table{peers: make([]entry, n)}
	for i := range t.peers {
		t.peers[i].reason = reason
	}
	return t
}

// Usable states of a neighbour. In the stale states, the kernel uses the address while it confirms it.
const (
	confirmedStates = netlink.NUD_REACHABLE | netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_DELAY |
		netlink.NUD_PROBE
	usableStates = confirmedStates | netlink.NUD_STALE
)

// lookUp returns how to reach a peer.
func (r *routes) lookUp(device *netlink.LinkAttrs, peer netip.AddrPort, neighbours []netlink.Neigh) entry {
	if peer.Addr().Unmap().Is4() != r.local.Addr().Unmap().Is4() {
		return entry{reason: "its address belongs to another version of IP"}
	}
	route, err := r.route(peer.Addr())
	switch {
	case err != nil:
		return entry{reason: fmt.Sprintf("no route: %v", err)}
	case route.Type == unix.RTN_LOCAL:
		return entry{reason: "it has an address of this host", local: true}
	case route.Type != unix.RTN_UNICAST:
		return entry{reason: "its address is not that of one host"}
	case route.LinkIndex != r.device:
		return entry{reason: fmt.Sprintf("its route leads through another device than %s", device.Name)}
	case route.Encap != nil:
		return entry{reason: "its route leads through a tunnel"}
	}
	hop := nextHop(route, peer.Addr())
	n := findNeighbour(neighbours, hop)
	if n == nil || n.State&usableStates == 0 || len(n.HardwareAddr) != 6 {
		return entry{reason: fmt.Sprintf("the kernel has not resolved the next hop %v", hop), unresolved: true}
	}
	mtu := device.MTU
	if route.MTU > 0 {
		mtu = min(mtu, route.MTU)
	}
	e := entry{headers: newHeaders(r.local, peer, device.HardwareAddr, n.HardwareAddr)}
	e.limit = min(mtu+ethernetLen, maxFrame) - e.headers.len
	e.stale = n.State&confirmedStates == 0
	return e
}

// route returns the route that a datagram takes to an address.
func (r *routes) route(to netip.Addr) (*netlink.Route, error) {
	all, err := r.handle.RouteGetWithOptions(to.AsSlice(), &netlink.RouteGetOptions{SrcAddr: r.local.Addr().AsSlice()})
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("the kernel returned %d routes", len(all))
	}
	return &all[0], nil
}

// nextHop returns the address of the router, or that of the peer itself.
func nextHop(route *netlink.Route, peer netip.Addr) netip.Addr {
	gateway := route.Gw
	if via, ok := route.Via.(*netlink.Via); ok {
		gateway = via.Addr
	}
	if hop, ok := netip.AddrFromSlice(gateway); ok {
		return hop.Unmap()
	}
	return peer.Unmap()
}

func findNeighbour(list []netlink.Neigh, hop netip.Addr) *netlink.Neigh {
	for i := range list {
		if ip, ok := netip.AddrFromSlice(list[i].IP); ok && ip.Unmap() == hop {
			return &list[i]
		}
	}
	return nil
}

// confirm makes the kernel check whether a neighbour is still there, as it does when a socket uses it.
func (r *routes) confirm(e *entry, peer netip.AddrPort, neighbours []netlink.Neigh) {
	route, err := r.route(peer.Addr())
	if err != nil {
		return // the next read finds no route
	}
	n := findNeighbour(neighbours, nextHop(route, peer.Addr()))
	if n == nil {
		return
	}
	use := netlink.Neigh{LinkIndex: r.device, IP: n.IP, Flags: netlink.NTF_USE}
	if err := r.handle.NeighSet(&use); err != nil {
		*e = entry{reason: fmt.Sprintf("the kernel cannot confirm its neighbour %v: %v", n.IP, err)}
	}
}

// move changes the addresses of the peers. Until the next read, the path carries nothing, so that no datagram reaches
// the old address of a peer.
func (r *routes) move(peers []netip.AddrPort) {
	t := unusable(len(peers), "its address has just changed")
	r.mu.Lock()
	t.mac = r.table.Load().mac
	r.peers.Store(&peers)
	r.table.Store(t)
	r.mu.Unlock()
	r.touch()
}

func (r *routes) close() {
	close(r.done)
	<-r.ended
	r.handle.Close()
}
