package diagnose_test

import (
	"container/heap"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// port is the UDP port of every rank.
const port = 2718

// cluster is a cluster in simulated time. The time begins with a second, as an engine takes 0 for never.
type cluster struct {
	rng    *rand.Rand
	now    time.Duration
	kind   *clusterKind
	nodes  []*node
	events events
	last   map[[2]netip.AddrPort]time.Duration // when the last datagram of a path arrives
	sent   int
	// fates are what the network does with a datagram, each in turn; reorder none by default.
	fates []func(d *datagram)
	// attached means that programs use the ranks of daemons. overSocket means that they use no rings, so the daemons do
	// not know in which operations they sleep.
	attached, overSocket bool
	// trigger is when the fault that was injected showed first, or 0.
	trigger time.Duration
	// suspect is when the fault of another run showed whose evidence this run may have, or 0.
	suspect time.Duration
}

// datagram is one in transit, or what has become of it.
type datagram struct {
	number   int
	from, to netip.AddrPort
	// sender and receiver are ranks; receiver is -1 if nothing is at the address.
	sender, receiver int
	kind             protocol.Type // Data also of a datagram that continues a message
	continues        bool
	bytes            []byte
	sent, arrived    time.Duration // arrived is 0 if it has not
	lost             bool
	delay            time.Duration
	copies           []time.Duration // later arrivals of copies
}

// event is something that happens at a time.
type event struct {
	at    time.Duration
	order int
	do    func()
}

type events struct {
	list []event
	made int
}

func (e *events) Len() int { return len(e.list) }
func (e *events) Less(i, j int) bool {
	a, b := &e.list[i], &e.list[j]
	return a.at < b.at || a.at == b.at && a.order < b.order
}
func (e *events) Swap(i, j int) { e.list[i], e.list[j] = e.list[j], e.list[i] }
func (e *events) Push(x any)    { e.list = append(e.list, x.(event)) }
func (e *events) Pop() any {
	last := e.list[len(e.list)-1]
	e.list = e.list[:len(e.list)-1]
	return last
}

// after calls do when some time has passed.
func (c *cluster) after(d time.Duration, do func()) {
	c.events.made++
	heap.Push(&c.events, event{c.now + d, c.events.made, do})
}

// address of a rank: each host has one rank, but those of a job on one host.
func (c *cluster) address(rank int) netip.AddrPort {
	if c.kind.job {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, 1}), uint16(port+rank))
	}
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + rank)}), port)
}

// at returns the node at an address, or nil.
func (c *cluster) at(a netip.AddrPort) *node {
	for _, n := range c.nodes {
		if n.address == a {
			return n
		}
	}
	return nil
}

// run lets everything happen until a time, or until stop reports true.
func (c *cluster) run(until time.Duration, stop func() bool) {
	for steps := 0; !stop(); steps++ {
		if steps > 2_000_000 {
			panic("the cluster does not come to rest")
		}
		at := core.Never
		if len(c.events.list) > 0 {
			at = c.events.list[0].at
		}
		var next *node
		for _, n := range c.nodes {
			if due := n.due(); due < at {
				at, next = due, n
			}
		}
		if at > until {
			break
		}
		c.now = max(c.now, at)
		if next != nil {
			next.tick()
		} else {
			heap.Pop(&c.events).(event).do()
		}
	}
	if !stop() {
		c.now = until
	}
}

// transmit puts a datagram of a node on the wire.
func (c *cluster) transmit(n *node, to netip.AddrPort, b []byte) {
	d := &datagram{number: c.sent, from: n.address, to: to, sender: n.rank, receiver: -1, bytes: slices.Clone(b),
		sent: c.now}
	d.kind, d.continues = kindOf(b)
	c.sent++
	n.seen = append(n.seen, sighting{d, c.now, true})
	for _, fate := range c.fates {
		fate(d)
	}
	if d.lost {
		return
	}
	c.deliver(d, 20*time.Microsecond+time.Duration(c.rng.IntN(20))*time.Microsecond+d.delay)
	for _, later := range d.copies {
		c.deliver(d, later)
	}
}

// deliver has a datagram arrive, in order with those that were sent before on its path unless it is delayed.
func (c *cluster) deliver(d *datagram, in time.Duration) {
	at := c.now + in
	if in < time.Millisecond {
		path := [2]netip.AddrPort{d.from, d.to}
		at = max(at, c.last[path])
		c.last[path] = at
	}
	c.after(at-c.now, func() {
		to := c.at(d.to)
		if to == nil {
			return
		}
		d.receiver, d.arrived = to.rank, c.now
		to.seen = append(to.seen, sighting{d, c.now, false})
		to.arrive(d)
	})
}

// kindOf returns the type of a datagram, and whether it continues a message.
func kindOf(b []byte) (t protocol.Type, continues bool) {
	for _, p := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		if h, defect := p.Parse(b); defect.OK() {
			return h.Type, false
		}
	}
	if h, _, defect := protocol.ParseExtended(b); defect.OK() {
		return h.Type, false
	}
	return protocol.Data, true
}

// sighting is a datagram at the interface of a node.
type sighting struct {
	*datagram
	at  time.Duration
	out bool
}

// node is a rank, with its host and its program.
type node struct {
	c       *cluster
	rank    int
	kind    nodeKind
	address netip.AddrPort
	// ranks is its map of ranks: the addresses of all, and of which kind it takes them.
	ranks []netip.AddrPort
	// driver runs its core, or the model of a deployed node.
	driver
	program *program
	// stopped: its process is, by a signal. gone: it has ended, or never begun.
	stopped, gone bool
	deaf          bool       // its host drops what arrives: its socket's buffer is full
	otherProfile  int        // the rank for which it is configured with the other profile, plus one; 0 is none
	seen          []sighting // by its present process
	starts        int
}

// driver is what a node consists of.
type driver interface {
	datagram(from int, d *datagram)
	due() time.Duration
	tick()
	// begin begins a call of the program, whose end calls done.
	begin(s *step, done func(err error))
}

// nodeKind is what runs at a rank.
type nodeKind uint8

const (
	host    nodeKind = iota // a daemon's rank for programs, or a rank of a job
	standin                 // a daemon's stand-in for an FPGA
	fpga                    // the model of the FPGA's MPE
	cpu                     // the model of upstream's library
)

func (k nodeKind) String() string { return []string{"host", "standin", "fpga", "cpu"}[k] }

// ours reports whether the node is one of zrlmpid.
func (k nodeKind) ours() bool { return k == host || k == standin }

func (n *node) due() time.Duration {
	if n.stopped || n.gone {
		return core.Never
	}
	return n.driver.due()
}

func (n *node) arrive(d *datagram) {
	switch {
	case n.gone || n.deaf:
	case n.stopped: // for good
	default:
		n.driver.datagram(n.rankOf(d.from), d)
	}
}

// rankOf returns the rank that the node's map has at an address, or core.UnknownPeer.
func (n *node) rankOf(a netip.AddrPort) int {
	for rank, at := range n.ranks {
		if rank != n.rank && (at == a || n.kind == cpu && at.Addr() == a.Addr()) {
			return rank
		}
	}
	return core.UnknownPeer
}

// send sends a datagram to a rank.
func (n *node) send(rank int, b []byte) { n.c.transmit(n, n.ranks[rank], b) }

// kill ends the process of a node.
func (n *node) kill() {
	n.gone = true
	n.program.ended = true
}

// restart starts the node again, with its program from the beginning.
func (n *node) restart() {
	n.gone, n.stopped, n.seen = false, false, nil
	n.make()
	n.program.restart()
}

// make makes the core or the model of a node.
func (n *node) make() {
	n.starts++
	switch n.kind {
	case fpga:
		n.driver = newFPGA(n)
	case cpu:
		n.driver = newCPU(n)
	default:
		n.driver = newEngine(n)
	}
}

// clusterKind is a kind of cluster.
type clusterKind struct {
	name string
	// kinds are the least and the most nodes: the first is always a host.
	kinds    []nodeKind
	extended bool
	// job: all ranks are processes of one job on one host.
	job bool
}

var clusterKinds = []clusterKind{
	{name: "fpga", kinds: []nodeKind{host, fpga, fpga}},
	{name: "cpu", kinds: []nodeKind{host, cpu, cpu}},
	{name: "mixed", kinds: []nodeKind{host, fpga, cpu}},
	{name: "standin", kinds: []nodeKind{host, standin, standin}},
	{name: "cloudfpga", kinds: []nodeKind{host, host, host}},
	{name: "extended", kinds: []nodeKind{host, host, host, host}, extended: true},
	{name: "job", kinds: []nodeKind{host, host, host}, extended: true, job: true},
}

func newCluster(seed uint64, k *clusterKind) *cluster {
	c := &cluster{rng: rand.New(rand.NewPCG(seed, 41)), now: time.Second, kind: k,
		last: map[[2]netip.AddrPort]time.Duration{}}
	c.attached = !k.job && c.rng.IntN(2) == 0
	c.overSocket = c.attached && seed/uint64(len(clusterKinds))%4 == 0
	for rank, kind := range k.kinds {
		c.nodes = append(c.nodes, &node{c: c, rank: rank, kind: kind, address: c.address(rank)})
	}
	for _, n := range c.nodes {
		for rank := range c.nodes {
			n.ranks = append(n.ranks, c.address(rank))
		}
		n.program = &program{node: n}
	}
	return c
}

// start starts all nodes, but those that are not to be.
func (c *cluster) start() {
	for _, n := range c.nodes {
		n.make()
	}
	for _, n := range c.nodes {
		if !n.gone {
			n.program.restart()
		}
	}
}

// peerKind is of which kind a rank takes another one.
func (n *node) peerKind(rank int) state.Kind {
	switch n.c.nodes[rank].kind {
	case fpga:
		return state.KindFPGA
	case cpu:
		return state.KindCPU
	}
	return state.KindSoftware
}

// fill makes the words of a message.
func fill(words int) []byte {
	b := make([]byte, protocol.WordLen*words)
	for i := range words {
		binary.LittleEndian.PutUint32(b[i*protocol.WordLen:], uint32(i))
	}
	return b
}

func (d *datagram) String() string {
	return fmt.Sprintf("%v %d→%v %v, %d bytes", d.sent, d.sender, d.to, d.kind, len(d.bytes))
}
