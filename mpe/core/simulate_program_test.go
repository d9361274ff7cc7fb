package core

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// posted is an operation of a program.
type posted struct {
	rank int
	op   Operation
	at   handshake.Instant
	// cancel is the time at which its caller's deadline expires; Never if it has none.
	cancel handshake.Instant
	r      *Request
	id     uint32 // of the message of a send
	ended  bool
	// before is an operation that must end before this one is posted, or nil.
	before *posted
	// call is a collective call, and want its result; they replace op and id.
	call *collective.Operation
	want []byte
	// revoke means that the operation is cancelled at the time cancel, if it still can be.
	revoke bool
	// probe is the pending probe of a receive, or nil. The operation receives the message found.
	probe   *Probe
	woken   bool // the probe
	waiting bool
	found   Status
	// event is an event of the rank, in place of op. gone means that the event ends the rank's operations. lost
	// means that the operation was pending at such an event, or that the event is over.
	event      func(o *posted)
	gone, lost bool
	// group identifies operations that belong together, such as a send and its receive.
	group int
}

// over reports whether the operation is done, or never will be.
func (o *posted) over() bool { return o.lost || o.r != nil && o.r.Done }

// messageID returns the ID of a message: its first word, or 0 for an empty message.
func messageID(b []byte) uint32 {
	if len(b) == 0 {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

// fill writes the content of a message, which its ID determines.
func fill(b []byte, id uint32) {
	rng := rand.New(rand.NewPCG(uint64(id), 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	if len(b) > 0 {
		binary.LittleEndian.PutUint32(b, id)
	}
}

// newProgram returns the program of a seed. Programs with odd seeds have short messages, no deadlines, and a third
// of the losses, so that all of their operations must succeed unless an FPGA takes part.
func newProgram(t *testing.T, k kind, seed uint64) *program {
	strict := seed%2 == 1
	if strict {
		k.net.loss /= 3
	}
	p := &program{kind: k, world: newCores(t, seed, k.ranks, k.net, k.peer, k.nodes...), strict: strict}
	for _, e := range p.cores {
		if e != nil {
			e.cfg.Observer = watcher{p}
		}
	}
	p.trace = func(what string, d datagram) {
		if d.kind == RxPayload {
			return
		}
		text := fmt.Sprintf("%d bytes", len(d.bytes))
		if h, err := protocol.CloudFPGA.Decode(d.bytes); k.ordered && err == nil {
			text = h.String() + ", " + text
		} else if x, _, defect := protocol.ParseExtended(d.bytes); !k.ordered && defect.OK() {
			text = fmt.Sprintf("%v, %s", x, text)
		}
		p.note("%s %d→%d: %s", what, d.from, d.to, text)
	}
	span := []time.Duration{time.Millisecond, 50 * time.Millisecond, 2 * time.Second}[p.rng.IntN(3)]
	when := func() handshake.Instant { return time.Duration(p.rng.Int64N(int64(span))) }
	deadline := func(rank int, at handshake.Instant) handshake.Instant {
		if strict || k.fpga && rank == 1 || p.node(rank) != nil || p.rng.IntN(12) > 0 { // an FPGA cannot cancel
			return Never
		}
		return at + when()
	}
	for id := range uint32(5 + p.rng.IntN(30)) {
		from := p.rng.IntN(k.ranks)
		to := (from + 1 + p.rng.IntN(k.ranks-1)) % k.ranks
		switch {
		case k.nodes != nil && from != 0:
			to = 0
		case k.oneWay:
			from, to = 0, 1+p.rng.IntN(k.ranks-1)
		}
		sizes := []int{1, 2, 3, 90, 346, 347, 348, 700, 1061, 5000, 40_000}
		switch {
		case k.oneWay:
			sizes = sizes[:5]
		case strict:
			sizes = sizes[:9]
		}
		words := sizes[p.rng.IntN(len(sizes))]
		if k.nodes != nil && to != 1 && p.rng.IntN(8) == 0 {
			words = 0 // an FPGA sends empty messages, but cannot receive them
		}
		b := make([]byte, 4*words)
		fill(b, id+1)
		send := Operation{Kind: OpSend, Peer: to, Buf: b}
		recv := Operation{Kind: OpRecv, Peer: from, Buf: make([]byte, 4*40_000)}
		if !k.ordered {
			if p.rng.IntN(4) == 0 && !k.oneWay {
				send.Kind = OpSendSync
			}
			send.Tag, send.Comm = p.rng.IntN(3), uint32(p.rng.IntN(3))
			recv.Tag, recv.Comm = send.Tag, send.Comm
			if send.Comm == 2 { // all of its receives are from any source
				recv.Peer, recv.Tag = AnySource, AnyTag
			}
		}
		at, there := when(), when()
		s := &posted{rank: from, op: send, at: at, cancel: deadline(from, at), id: id + 1, group: int(id)}
		if p.node(to) != nil {
			s.cancel = Never // the receive of the FPGA has the size of this message
		}
		if s.cancel != Never && !k.ordered {
			s.revoke = p.rng.IntN(2) == 0
		}
		p.posted = append(p.posted, s,
			&posted{rank: to, op: recv, at: there, cancel: deadline(to, there), group: int(id)})
	}
	if k.collective {
		p.addCalls(when)
	}
	if k.floods {
		p.addFloods(when)
	}
	if !k.ordered && !strict {
		p.addProbes(when)
	}
	if !strict {
		if k.restarts {
			p.addEvents(p.crash, true, when)
		}
		if k.closes {
			p.addEvents(p.close, true, when)
		}
		if k.changes {
			p.addEvents(p.change, false, when)
		}
	}
	p.all = p.nextGroup()
	return p
}

// floodTag is the tag of a flood, and afterFlood the ID of the message that follows it, with the next tag.
const (
	floodTag   = 5
	afterFlood = 2000
)

// addFloods adds messages from rank 0 that are not received until the end, and then one message with a posted
// receive. If the peer has too little memory for them, some are refused; otherwise none is refused.
func (p *program) addFloods(when func() handshake.Instant) {
	group, at := p.nextGroup(), when()
	words := 1 + p.rng.IntN(6)
	count := []int{20, 150}[p.rng.IntN(2)]
	p.refuses = count > 120
	for i := range count {
		b := make([]byte, 4*words)
		fill(b, uint32(1000+i))
		send := Operation{Kind: OpSend, Peer: 1, Tag: floodTag, Buf: b}
		if p.rng.IntN(8) == 0 {
			send.Kind = OpSendSync
		}
		p.posted = append(p.posted, &posted{rank: 0, op: send, at: at, cancel: Never, id: uint32(1000 + i),
			group: group})
	}
	b := make([]byte, 4)
	fill(b, afterFlood)
	p.posted = append(p.posted,
		&posted{rank: 0, op: Operation{Kind: OpSend, Peer: 1, Tag: floodTag + 1, Buf: b}, at: at, cancel: Never,
			id: afterFlood, group: group},
		&posted{rank: 1, op: Operation{Kind: OpRecv, Peer: 0, Tag: floodTag + 1, Buf: make([]byte, 4)}, at: when(),
			cancel: Never, group: group})
}

// addProbes adds probes of ranks, and receives of the messages that they find.
func (p *program) addProbes(when func() handshake.Instant) {
	for range p.rng.IntN(4) {
		at := when()
		m := Match{Source: AnySource, Tag: p.rng.IntN(3), Comm: uint32(p.rng.IntN(3))}
		o := &posted{
			rank: p.rng.IntN(p.ranks), at: at, cancel: Never, group: p.nextGroup(),
			op: Operation{Kind: OpRecv, Peer: AnySource, Tag: m.Tag, Comm: m.Comm, Buf: make([]byte, 4*40_000)},
		}
		o.probe = &Probe{Match: m, Wake: func() { o.woken = true }}
		p.posted = append(p.posted, o)
	}
}

// addEvents adds an event for some ranks. gone means that it ends the rank's operations.
func (p *program) addEvents(event func(o *posted), gone bool, when func() handshake.Instant) {
	for range 1 + p.rng.IntN(3) {
		p.posted = append(p.posted,
			&posted{rank: p.rng.IntN(p.ranks), at: when(), event: event, gone: gone, cancel: Never,
				group: p.nextGroup()})
	}
}

// chain makes the operations of deployed nodes, and of a stand-in for one, blocking, and gives the receives
// of nodes the sizes of the messages.
func (p *program) chain() {
	byTime := func(ops []*posted) []*posted {
		slices.SortStableFunc(ops, func(a, b *posted) int { return cmp.Compare(a.at, b.at) })
		return ops
	}
	for rank := range p.ports {
		isNode := p.node(rank) != nil
		if !isNode && !(p.fpga && rank == 1) {
			continue
		}
		var sends []*posted
		for _, o := range p.posted {
			if o.rank == 0 && o.op.Kind != OpRecv && o.op.Peer == rank {
				sends = append(sends, o)
			}
		}
		byTime(sends)
		var last *posted
		for _, o := range byTime(p.of(rank)) {
			o.before, last = last, o
			if isNode && o.op.Kind == OpRecv {
				o.op.Buf = make([]byte, len(sends[0].op.Buf))
				sends = sends[1:]
			}
		}
	}
}

// of returns the operations of a rank.
func (p *program) of(rank int) (ops []*posted) {
	for _, o := range p.posted {
		if o.rank == rank {
			ops = append(ops, o)
		}
	}
	return ops
}

// nextGroup returns an unused group number.
func (p *program) nextGroup() int { return p.posted[len(p.posted)-1].group + 1 }

// addCalls adds some collective calls of all ranks, in the same order.
func (p *program) addCalls(when func() handshake.Instant) {
	last := make([]*posted, p.ranks)
	for number := range 1 + p.rng.IntN(6) {
		call := coll.Call{
			Collective: []coll.Collective{coll.Barrier, coll.Bcast, coll.Allreduce, coll.Allgather,
				coll.Alltoall}[p.rng.IntN(5)],
			Ranks: p.ranks, Root: p.rng.IntN(p.ranks), Elem: 8,
			Bytes: 8 * []int{1, 2, 100, 3000, 40_000}[p.rng.IntN(5)],
		}
		if call.Collective == coll.Bcast {
			call.OrderForm = coll.OrderForm(p.rng.IntN(int(coll.OrderByLeft) + 1))
		}
		user, group, algorithm := p.rng.IntN(2) == 0, p.nextGroup(), p.algorithm(&call)
		for rank := range p.ranks {
			o := newCall(call, rank, uint64(number), user)
			o.call.Members, o.call.Tag, o.call.Algorithm = members(p.ranks), number+1, algorithm
			o.at, o.cancel, o.before, o.group = when(), Never, last[rank], group
			if !p.strict && p.rng.IntN(30) == 0 {
				o.cancel = o.at + when()
			}
			p.posted = append(p.posted, o)
			last[rank] = o
		}
	}
}

// algorithm returns the name of an algorithm that can run a call, or, half the time, "".
func (p *program) algorithm(call *coll.Call) string {
	if p.rng.IntN(2) == 0 {
		return ""
	}
	var possible []string
	for _, a := range coll.Algorithms(call.Collective) {
		if c := *call; a.CheckSupport(c) == nil {
			possible = append(possible, a.Name)
		}
	}
	return possible[p.rng.IntN(len(possible))]
}

// newCall returns a rank's part of a call, with its expected result. Element i of each rank is a function of
// the rank, i and salt.
func newCall(call coll.Call, rank int, salt uint64, user bool) *posted {
	call.Rank = rank
	n := call.Bytes / 8
	vector := func(rank, to int) []byte {
		b := make([]byte, 0, call.Bytes)
		for i := range n {
			b = binary.LittleEndian.AppendUint64(b, (salt+1)*uint64(rank*call.Ranks+to+1)+uint64(i))
		}
		return b
	}
	o := &posted{rank: rank, call: &collective.Operation{Call: call, Comm: 7}}
	switch c := o.call; call.Collective {
	case coll.Barrier:
		c.Call.Bytes = 0
	case coll.Bcast:
		o.want = vector(call.Root, 0)
		c.Recv = make([]byte, call.Bytes)
		if rank == call.Root {
			copy(c.Recv, o.want)
		}
	case coll.Allreduce:
		c.Send, c.Recv, c.Type = vector(rank, 0), make([]byte, call.Bytes), op.Uint64
		if c.Op = op.Sum; user {
			c.User = func(in, inout []byte) error {
				for ; len(in) > 0; in, inout = in[8:], inout[8:] {
					binary.LittleEndian.PutUint64(inout,
						binary.LittleEndian.Uint64(inout)+binary.LittleEndian.Uint64(in))
				}
				return nil
			}
		}
		o.want = make([]byte, call.Bytes)
		for r := range call.Ranks {
			v := vector(r, 0)
			for i := range n {
				binary.LittleEndian.PutUint64(o.want[8*i:],
					binary.LittleEndian.Uint64(o.want[8*i:])+binary.LittleEndian.Uint64(v[8*i:]))
			}
		}
	case coll.Allgather:
		c.Send, c.Recv = vector(rank, 0), make([]byte, call.Ranks*call.Bytes)
		for r := range call.Ranks {
			o.want = append(o.want, vector(r, 0)...)
		}
	case coll.Alltoall:
		c.Recv = make([]byte, call.Ranks*call.Bytes)
		for r := range call.Ranks {
			c.Send = append(c.Send, vector(rank, r)...)
			o.want = append(o.want, vector(r, rank)...)
		}
	}
	return o
}
