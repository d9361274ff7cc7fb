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

// cluster is a cluster in simulated time. The clock starts at 1 s because an engine takes time 0 for never.
type cluster struct {
	rng    *rand.Rand
	now    time.Duration
	kind   *clusterKind
	nodes  []*node
	events events
	last   map[[2]netip.AddrPort]time.Duration // arrival time of the last datagram on each path
	sent   int
	// fates lists the functions that the network applies to each datagram in turn. They may lose, delay, copy or change
	// it.
	fates []func(d *datagram)
	// attached means that programs use the ranks of daemons. overSocket means that they attach without rings, so the
	// daemons do not know in which operations the programs sleep.
	attached, overSocket bool
	// asksBefore, if not nil, is a rank that questions the others before the fault takes effect.
	asksBefore *node
	// trigger is the time at which the injected fault first took effect, or 0.
	trigger time.Duration
	// suspect is the trigger of another run whose evidence this run is meant to reproduce, or 0.
	suspect time.Duration
}

// datagram is a sent datagram and its fate.
type datagram struct {
	number   int
	from, to netip.AddrPort
	// sender and receiver are ranks. receiver is -1 until a node receives the datagram.
	sender, receiver int
	kind             protocol.Type // also Data for a datagram that continues a message
	continues        bool
	bytes            []byte
	sent, arrived    time.Duration // arrived is 0 until the datagram is received
	lost             bool
	delay            time.Duration
	copies           []time.Duration // arrival times of copies, relative to sending
}

// event is a function to be called at a time.
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

// after calls do after d has passed.
func (c *cluster) after(d time.Duration, do func()) {
	c.events.made++
	heap.Push(&c.events, event{c.now + d, c.events.made, do})
}

// address returns the address of a rank. Each rank has its own host, unless the cluster is a job, which runs on one
// host.
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

// run executes events until the given time, or until stop returns true.
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

// deliver schedules the arrival of a datagram after in. Datagrams of a path arrive in order, except after a delay of at
// least 1 ms.
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

// sighting is a datagram as seen at the interface of a node.
type sighting struct {
	*datagram
	at  time.Duration
	out bool
}

// node is a rank, including its host and its program.
type node struct {
	c       *cluster
	rank    int
	kind    nodeKind
	address netip.AddrPort
	// ranks is the node's rank map: the addresses of all ranks as this node knows them.
	ranks []netip.AddrPort
	// driver is an engine, or the model of a deployed node.
	driver
	program *program
	// stopped means that a signal stopped the process. gone means that it has exited or was never started.
	stopped, gone bool
	deaf          bool       // its host drops all received packets because the socket's buffer is full
	otherProfile  int        // 1 + the rank that this node addresses with the wrong profile, or 0
	seen          []sighting // packets seen since the process started
	starts        int
}

// driver runs the protocol of a node.
type driver interface {
	datagram(from int, d *datagram)
	due() time.Duration
	tick()
	// begin starts a call of the program. The driver calls done when the call returns.
	begin(s *step, done func(err error))
}

// nodeKind is the software or hardware that implements a rank.
type nodeKind uint8

const (
	host    nodeKind = iota // a rank that a daemon provides to programs, or a rank of a job
	standin                 // a daemon's stand-in for an FPGA
	fpga                    // the model of the FPGA's MPE
	cpu                     // the model of upstream's library
)

func (k nodeKind) String() string { return []string{"host", "standin", "fpga", "cpu"}[k] }

// ours reports whether the node runs zrlmpid.
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

// rankOf returns the rank at an address in the node's rank map, or core.UnknownPeer.
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

// restart restarts the node and its program.
func (n *node) restart() {
	n.gone, n.stopped, n.seen = false, false, nil
	n.make()
	n.program.restart()
}

// make creates the engine or the model of a node.
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
	// kinds lists the kind of each rank. Rank 0 is always a host.
	kinds    []nodeKind
	extended bool
	// job means that all ranks are processes of one job on one host.
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

// start starts all nodes that are not marked as gone.
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

// peerKind returns the kind that a rank has in this node's rank map.
func (n *node) peerKind(rank int) state.Kind {
	switch n.c.nodes[rank].kind {
	case fpga:
		return state.KindFPGA
	case cpu:
		return state.KindCPU
	}
	return state.KindSoftware
}

// fill returns a message of the given number of words.
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
