package diagnose_test

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// engine is the driver of a rank of zrlmpid.
type engine struct {
	n        *node
	core     *core.Core
	deadline time.Duration // on the engine's clock
	started  time.Duration
	// pending maps outstanding operations to their done functions.
	pending map[*core.Request]func(err error)
	// networkError, if not nil, returns the error with which the host's network rejects packets to a rank, or nil.
	networkError func(rank int) error
}

func newEngine(n *node) *engine {
	e := &engine{n: n, deadline: core.Never, started: n.c.now - time.Second, pending: map[*core.Request]func(error){}}
	cfg := core.Config{Rank: n.rank, Reports: true}
	for rank := range n.c.nodes {
		p := core.Peer{Kind: n.peerKind(rank), Address: n.ranks[rank].String(), Network: core.Network{Datagrams: true}}
		if n.c.kind.extended != (n.otherProfile == rank+1) {
			p.Extended = &extended.Config{MaxPayload: 1400, Seed: uint64(n.starts)<<32 + uint64(n.rank*100+rank+1)}
		} else {
			p.Handshake = n.handshake(rank)
		}
		cfg.Peers = append(cfg.Peers, p)
	}
	e.core = core.New(cfg, e)
	return e
}

// handshake returns the configuration of the link to a rank.
func (n *node) handshake(rank int) handshake.Config {
	rules := handshake.SoftwarePeer()
	switch n.c.nodes[rank].kind {
	case fpga, standin:
		rules = handshake.FPGAPeer(uint32(rank))
	case cpu:
		rules = handshake.CPUPeer()
	}
	cfg := handshake.Config{Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules),
		MaxWords: 1 << 20}
	if n.kind == standin {
		cfg.Timing = handshake.DefaultTiming(handshake.SoftwarePeer())
		cfg.Timing.Ack.First = handshake.DeployedFPGA(uint32(n.rank)).Ack.First
		cfg.Peer = handshake.PeerRules{} // as in node.NewLink
		cfg.Shape = protocol.FPGAShape(true)
		cfg.Quirks = handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true}
	}
	return cfg
}

// now returns the time on the engine's clock, which reads 1 s when the engine starts.
func (e *engine) now() time.Duration { return e.n.c.now - e.started }

func (e *engine) event(do func()) {
	e.core.Begin(e.now())
	do()
	out := e.core.End()
	for _, r := range out.Completed {
		if done := e.pending[r]; done != nil {
			delete(e.pending, r)
			e.n.c.after(0, func() { done(r.Err) })
		}
	}
	out.Completed = out.Completed[:0]
	for _, wake := range out.Wake {
		wake()
	}
	for _, j := range out.Jobs {
		e.n.c.after(0, func() {
			err := j.Run()
			e.event(func() { e.core.JobDone(j, err) })
		})
	}
	if out.Report {
		e.n.c.after(0, func() {
			text := state.PublicOf(e.state()).Encode()
			e.event(func() { e.core.Reports.Deliver(text) })
		})
	}
	e.deadline = out.Deadline
	coalesced := out.Coalesced
	out.Clear()
	if coalesced {
		e.event(e.core.FlushCoalesced)
	}
}

func (e *engine) datagram(from int, d *datagram) {
	e.event(func() {
		e.core.ReceiveBatch(0, []core.RxPacket{{Peer: from, SourceAddr: d.from, Bytes: slices.Clone(d.bytes)}})
	})
}

func (e *engine) due() time.Duration {
	if e.deadline == core.Never {
		return core.Never
	}
	return max(e.deadline+e.started, e.n.c.now)
}

func (e *engine) tick() {
	e.event(func() { e.core.Tick([]handshake.Instant{e.now()}) })
}

func (e *engine) begin(s *step, done func(err error)) {
	r := &core.Request{Owner: e} // End only returns completed requests that have an owner
	if s.call == 0 {
		o := core.Operation{Kind: core.OpSend, Peer: s.peer, Tag: s.tag, Comm: s.comm, Buf: fill(s.words),
			Datatype: s.datatype, Blocking: true}
		if s.receives {
			o.Kind, o.Buf = core.OpRecv, make([]byte, protocol.WordLen*s.words)
		} else if s.sync {
			o.Kind = core.OpSendSync
		}
		if err := e.core.Check(&o); err != nil {
			panic(err)
		}
		e.event(func() {
			e.core.Init(r, &o)
			if !e.n.c.overSocket {
				r.AwaitedElsewhere = func() bool { return e.n.program.asleep(s) }
			}
			e.pending[r] = done
			if err := e.core.Post(r, false, true); err != nil {
				delete(e.pending, r)
				e.n.c.after(0, func() { done(err) })
			}
		})
		return
	}
	ranks := len(e.n.c.nodes)
	members := make([]int, ranks)
	for i := range members {
		members[i] = i
	}
	o := &collective.Operation{
		Call: coll.Call{Collective: s.call, Rank: e.n.rank, Ranks: ranks, Root: s.peer,
			Bytes: protocol.WordLen * s.words, Elem: protocol.WordLen},
		Members: members, Tag: s.tag, Send: fill(s.words * ranks), Recv: fill(s.words * ranks),
		Op: op.Sum, Type: op.Int32,
	}
	send, recv := o.Call.Lengths()
	o.Send, o.Recv = o.Send[:send], o.Recv[:recv]
	if err := e.core.Prepare(r, new(collective.Execution), o); err != nil {
		panic(err)
	}
	e.event(func() {
		e.pending[r] = done
		if err := e.core.StartCall(r); err != nil {
			delete(e.pending, r)
			e.n.c.after(0, func() { done(err) })
		}
	})
}

// The methods below implement core.Effects.

func (e *engine) SendHeader(peer int, header []byte) error { return e.send(peer, header) }

func (e *engine) send(peer int, b []byte) error {
	if e.networkError != nil {
		if err := e.networkError(peer); err != nil {
			return err
		}
	}
	e.n.send(peer, b)
	return nil
}

func (e *engine) SendData(peer int, _ handshake.ID, header, payload []byte) (time.Duration, bool, error) {
	limit := protocol.MaxDatagram
	b := bytes.Clone(header)
	for first := true; first || len(payload) > 0; first = false {
		n := min(limit-len(b), len(payload))
		if err := e.send(peer, append(b, payload[:n]...)); err != nil {
			return e.now(), true, err
		}
		b, payload = nil, payload[n:]
	}
	return e.now(), true, nil
}

func (e *engine) SendPackets(peer int, packets []core.Packet) (bool, error) {
	for i := range packets {
		if err := e.send(peer, append(bytes.Clone(packets[i].Header[:]), packets[i].Payload...)); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (e *engine) LongestDatagram(int) int   { return 0 }
func (e *engine) Random() uint64            { return e.n.c.rng.Uint64() }
func (e *engine) NewRequest() *core.Request { return new(core.Request) }
func (e *engine) Release(*core.Request)     {}
func (e *engine) DropQueued(int)            {}
func (e *engine) Place(core.Placement)      {}
func (e *engine) Revoke(int)                {}

var errRefused = errors.New("connection refused")
