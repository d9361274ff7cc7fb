//go:build cgo

package shm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
	"github.com/zrlmpi/zrlmpid/mpe/lease/leasetest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The communicator of the tests: its handle in C, and its numbers in messages and in collective calls.
const leasedHandle, leasedComm, leasedCalls = 0x400, 8, 9

// leasingRank is a rank whose program is written in C.
type leasingRank struct {
	*testing.T
	*mpe.Engine
	block    *lease.Block
	sequence *uint32 // in C
	// inC is the number of calls made by C code. tag is the number of the last collective call.
	inC int
}

func newLeasingRank(t *testing.T, e *mpe.Engine) *leasingRank {
	b := leasetest.NewBlock()
	return &leasingRank{T: t, Engine: e, block: b, sequence: leasetest.NewWord()}
}

// lease leases the fast path to C code. shape is nil except after a collective call.
func (r *leasingRank) lease(shape *lease.Shape) bool {
	return r.Lease(r.block, &mpe.LeaseRequest{Handle: leasedHandle, Sequence: uint64(uintptr(unsafe.Pointer(r.sequence))),
		Comm: leasedComm, CallComm: leasedCalls, Rank: r.Rank(), Members: []int{0, 1}, Peer: 1 - r.Rank(), Shape: shape})
}

// send sends a message in C if possible, and otherwise through the engine.
func (r *leasingRank) send(buf []byte, tag int) error {
	if leasetest.Send(r.block, buf, 1-r.Rank(), tag, leasedHandle) {
		r.inC++
		return nil
	}
	_, err := r.Send(r.Context(), 1-r.Rank(), buf, mpe.Options{Tag: tag, Comm: leasedComm, Datatype: protocol.Int})
	return err
}

// recv is like send. A negative tag means any. It returns the length and the tag of the message.
func (r *leasingRank) recv(buf []byte, tag int) (n, got int, err error) {
	if n, got, done := leasetest.Recv(r.block, buf, 1-r.Rank(), tag, leasedHandle); done {
		r.inC++
		return n, got, nil
	}
	st, err := r.Recv(r.Context(), 1-r.Rank(), buf, mpe.Options{Tag: max(tag, 0), AnyTag: tag < 0, Comm: leasedComm})
	return int(st.Bytes), st.Tag, err
}

// message returns the payload and the tag of message i of a rank. Some messages are too long for C code.
func message(rank, i int) (payload []byte, tag int) {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(i)))
	n := []int{0, 4, 63, lease.MaxPayload, r.IntN(lease.MaxPayload), 3 * lease.MaxPayload}[r.IntN(6)]
	payload = make([]byte, n)
	for k := range payload {
		payload[k] = byte(r.Uint32())
	}
	return payload, r.IntN(1 << 20)
}

// packetLog records the packets that an engine exchanges with a peer, and ignores acknowledgements.
type packetLog struct{ sent, received [][]byte }

func (l *packetLog) Packet(_ time.Duration, sent bool, _ int, header, payload []byte) {
	var h protocol.ExtHeader
	if h.Decode((*[protocol.ExtHeaderLen]byte)(header)); h.Type != protocol.Data {
		return
	}
	packet := fmt.Appendf(nil, "%d %d %d %d %x", h.Message, h.Comm, h.Tag, h.Length, payload)
	if sent {
		l.sent = append(l.sent, packet)
	} else {
		l.received = append(l.received, packet)
	}
}

// TestLeasedMessages checks that the messages of programs in C arrive, whether C code or the engine sends and receives
// them, and that counters and recorders see both alike.
func TestLeasedMessages(t *testing.T) {
	const messages = 4000
	var logs [2]packetLog
	_, engines := enginesWith(t, true, func(rank int, p *mpe.Peer) { p.Recorder = &logs[rank] })
	var ranks [2]*leasingRank
	for i, e := range engines {
		ranks[i] = newLeasingRank(t, e)
	}
	failed := make(chan error, 2)
	for _, r := range ranks {
		go func() { failed <- r.exchange(messages) }()
	}
	for range ranks {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range ranks {
		if r.inC < messages/2 {
			t.Errorf("rank %d: C code made only %d of %d calls", i, r.inC, 2*messages)
		}
		sentBytes := 0
		for k := range messages {
			payload, _ := message(i, k)
			sentBytes += len(payload)
		}
		var got state.PeerCounters
		r.PeerCounters(1-i, func(c *state.PeerCounters) { got = *c })
		if got.Sent != messages || got.Received != messages || got.SentBytes != uint64(sentBytes) {
			t.Errorf("rank %d counts %d messages of %d bytes sent, %d received: want %d of %d bytes", i, got.Sent,
				got.SentBytes, got.Received, messages, sentBytes)
		}
	}
	for i := range logs {
		if sent, received := logs[i].sent, logs[1-i].received; !reflect.DeepEqual(sent, received) || len(sent) < messages {
			t.Errorf("rank %d recorded %d packets sent, and its peer %d packets received, or they differ", i, len(sent),
				len(received))
		}
	}
}

// exchange sends and receives messages in turn. Both ranks may be up to a few messages ahead of each other.
func (r *leasingRank) exchange(messages int) error {
	buf := make([]byte, 4*lease.MaxPayload)
	random := rand.New(rand.NewPCG(uint64(r.Rank()), 1))
	for sent, received := 0, 0; received < messages; {
		if sent < messages && (sent-received < 3 || random.IntN(2) == 0) && sent-received < 20 {
			payload, tag := message(r.Rank(), sent)
			if err := r.send(payload, tag); err != nil {
				return fmt.Errorf("rank %d, send %d: %w", r.Rank(), sent, err)
			}
			sent++
			r.lease(nil)
			continue
		}
		payload, tag := message(1-r.Rank(), received)
		asked, space := tag, buf[:max(len(payload), random.IntN(lease.MaxPayload))]
		if random.IntN(3) == 0 {
			asked = -1
		}
		n, got, err := r.recv(space, asked)
		if err != nil || got != tag || !bytes.Equal(space[:n], payload) {
			return fmt.Errorf("rank %d, receive %d: %d bytes with tag %d, want %d with tag %d: %v", r.Rank(), received, n,
				got, len(payload), tag, err)
		}
		received++
		if received%16 != 0 {
			r.lease(nil)
		}
	}
	return nil
}

// TestLeasedWhileOthersUseTheEngine checks that other goroutines can use the engine while C code waits for messages.
func TestLeasedWhileOthersUseTheEngine(t *testing.T) {
	_, engines := engines(t, true)
	var ranks [2]*leasingRank
	for i, e := range engines {
		ranks[i] = newLeasingRank(t, e)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, e := range engines {
				e.Snapshot()
				e.PollOnce()
				e.Waits(0)
			}
		}
	}()
	failed := make(chan error, 2)
	for _, r := range ranks {
		go func() { failed <- r.exchange(1000) }()
	}
	for range ranks {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
}

// TestLeasedCalls checks that collective calls have the same results whether C code or the engine makes them, and that
// both count them.
func TestLeasedCalls(t *testing.T) {
	const calls = 1500
	_, engines := engines(t, true)
	failed := make(chan error, 2)
	var ranks [2]*leasingRank
	for i, e := range engines {
		ranks[i] = newLeasingRank(t, e)
		go func() { failed <- ranks[i].callAll(calls) }()
	}
	for range engines {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range ranks {
		if r.inC < calls/5 {
			t.Errorf("rank %d: C code made only %d of %d calls", i, r.inC, calls)
		}
		counted := uint64(0)
		r.Counters(func(c *state.RankCounters) {
			for _, n := range c.Collectives {
				counted += n.Calls
			}
		}, func(*state.PeerCounters) {})
		if counted != calls {
			t.Errorf("rank %d counts %d calls, not %d", i, counted, calls)
		}
	}
}

// callAll makes random collective calls, the same on both ranks.
func (r *leasingRank) callAll(calls int) error {
	shared, own := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, uint64(r.Rank())))
	var c leasedCall
	for i := range calls {
		if i%8 == 0 {
			c = leasedCall{of: uint32(1 + shared.IntN(6)), root: shared.IntN(2), n: []int{8, 64, 1024}[shared.IntN(3)],
				o: lease.Operations[shared.IntN(len(lease.Operations))], elem: lease.Elements[shared.IntN(6)]}
			if _, err := op.Lookup(c.o, c.elem); err != nil {
				c.elem = op.Int32
			}
		}
		c.seed = shared.Uint64()
		c.algorithm = "" // the first calls of some kinds use messages
		if i%8 < 3 && shared.IntN(2) == 0 {
			c.algorithm = coll.Algorithms(collective.Leased(&lease.Shape{Call: c.of}))[0].Name
		}
		if err := r.call(&c, own.IntN(8) == 0); err != nil {
			return fmt.Errorf("rank %d, call %d (%+v): %w", r.Rank(), i, c, err)
		}
	}
	return nil
}

// leasedCall is a collective call of bytes.
type leasedCall struct {
	of      uint32
	root, n int
	o       op.Op
	elem    op.Type
	seed    uint64
	// algorithm is the name of an algorithm that C code does not know, or "".
	algorithm string
}

// input returns the contribution of a rank.
func (c *leasedCall) input(rank int) []byte {
	r := rand.New(rand.NewPCG(c.seed, uint64(rank)))
	n := c.n
	if c.of == lease.Alltoall {
		n *= 2
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32() % 4)
		if c.seed%4 == 0 { // many NaNs, if the elements are reals
			b[i] = []byte{0x7f, 0xff}[b[i]%2]
		}
	}
	return b
}

// result returns what a rank has afterwards, or nil if it gets nothing.
func (c *leasedCall) result(rank int) []byte {
	a, b := c.input(0), c.input(1)
	switch c.of {
	case lease.Bcast:
		return c.input(c.root)
	case lease.Reduce, lease.Allreduce:
		if c.of == lease.Reduce && rank != c.root {
			return nil
		}
		f, err := op.Lookup(c.o, c.elem)
		if err != nil {
			panic(err)
		}
		f(b, a, b)
		return b
	case lease.Allgather:
		return append(a, b...)
	case lease.Alltoall:
		return append(a[rank*c.n:][:c.n:c.n], b[rank*c.n:][:c.n]...)
	}
	return nil
}

// call makes a call in C if possible, unless engine is set, and checks its result.
func (r *leasingRank) call(c *leasedCall, engine bool) error {
	send, recv := c.input(r.Rank()), make([]byte, 2*c.n)
	shape := lease.Shape{Comm: leasedHandle, Call: c.of, Type: leasetest.Byte, Count: int64(c.n)}
	x := collective.Operation{
		Call:    coll.Call{Collective: collective.Leased(&shape), Rank: r.Rank(), Ranks: 2, Bytes: c.n, Elem: 1},
		Members: []int{0, 1}, Comm: leasedCalls, Send: send, Recv: recv,
	}
	x.Algorithm, engine = c.algorithm, engine || c.algorithm != ""
	var done bool
	switch c.of {
	case lease.Barrier:
		shape.Type, shape.Count, x.Call.Bytes = 0, 0, 0
		done = !engine && leasetest.Barrier(r.block, leasedHandle)
	case lease.Bcast:
		shape.Root, x.Call.Root, x.Send, x.Recv = uint32(c.root), c.root, nil, recv[:c.n]
		if r.Rank() == c.root {
			copy(recv, send)
		}
		done = !engine && leasetest.Bcast(r.block, recv[:c.n], c.root, leasedHandle)
	case lease.Reduce, lease.Allreduce:
		root := -1
		if c.of == lease.Reduce {
			root, shape.Root, x.Call.Root = c.root, uint32(c.root), c.root
		}
		size := c.elem.Size()
		shape.Type, shape.Op, shape.Count = leasetest.Handle(c.elem), uint64(c.o), int64(c.n/size)
		x.Op, x.Type, x.Call.Elem = c.o, c.elem, size
		done = !engine && leasetest.Reduce(r.block, send, recv, c.elem, c.o, root, leasedHandle)
	default:
		done = !engine && leasetest.Blocks(r.block, c.of, send, recv, c.n, leasedHandle)
	}
	if done {
		r.inC++
	} else {
		*r.sequence++
		x.Tag = int(*r.sequence)
		o, err := r.StartCollective(&x)
		if err != nil {
			return err
		}
		if _, err := o.Await(r.Context()); err != nil {
			return err
		}
		o.Free()
	}
	if want := c.result(r.Rank()); !bytes.Equal(recv[:len(want)], want) {
		return fmt.Errorf("in C: %t: %x, want %x", done, recv[:len(want)], want)
	}
	r.lease(&shape)
	return nil
}

// TestCombine checks that C code combines numbers as package op does, also special ones.
func TestCombine(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	special := map[op.Type][]uint64{
		op.Float32: {0, 1 << 31, 0x7f800000, 0xff800000, 0x3f800000, 0xbf800000},
		op.Float64: {0, 1 << 63, 0x7ff0000000000000, 0xfff0000000000000, 0x3ff0000000000000},
	}
	for _, o := range lease.Operations {
		for _, elem := range lease.Elements {
			f, err := op.Lookup(o, elem)
			if err != nil {
				continue
			}
			size := elem.Size()
			from, into := make([]byte, 64*size), make([]byte, 64*size)
			for i := range 64 {
				for _, b := range [][]byte{from, into} {
					v := random.Uint64()
					if s := special[elem]; len(s) > 0 && i%2 == 0 {
						v = s[random.IntN(len(s))]
					}
					for k := range size {
						b[i*size+k] = byte(v >> (8 * k))
					}
				}
			}
			want := make([]byte, len(into))
			f(want, from, into)
			leasetest.Combine(o, elem, from, into)
			if elem != op.Float32 && elem != op.Float64 && !bytes.Equal(into, want) {
				t.Errorf("%v of %v: %x, want %x", o, elem, into, want)
			}
			for i := 0; i < len(want); i += size { // any NaN is as good as another
				if !bytes.Equal(into[i:i+size], want[i:i+size]) && !(isNaN(elem, into[i:]) && isNaN(elem, want[i:])) {
					t.Errorf("%v of %v: %x, want %x", o, elem, into[i:i+size], want[i:i+size])
				}
			}
		}
	}
}

// isNaN reports whether b begins with a NaN.
func isNaN(t op.Type, b []byte) bool {
	switch t {
	case op.Float32:
		f := *(*float32)(unsafe.Pointer(&b[0]))
		return f != f
	case op.Float64:
		f := *(*float64)(unsafe.Pointer(&b[0]))
		return f != f
	}
	return false
}

// FuzzLeasedRing checks that C code reads the same packets from a ring as package shm, whatever the ring contains, and
// nothing outside of it.
func FuzzLeasedRing(f *testing.F) {
	var w [MinRing]byte
	out := writer{ring: w[:], head: new(atomic.Uint64)}
	header := protocol.ShortHeader{SessionDigest: 1, Number: 1, Message: 1, Comm: leasedComm, Tag: 3}
	out.putShort(&header, []byte("hello"))
	f.Add(w[:256], uint16(0), uint16(16))
	f.Add(w[:256], uint16(1), uint16(3))
	f.Fuzz(func(t *testing.T, content []byte, at, space uint16) {
		ring := guarded(t, MinRing)
		copy(ring, content)
		pos := uint64(at) % (MinRing / recordAlign) * recordAlign
		head := wordAt(guarded(t, pageLen))
		b := leasetest.NewBlock()
		defer leasetest.Free(b)
		b.State, b.Polls = lease.Leased, 1
		b.Comms[0] = lease.Comm{Handle: leasedHandle, Number: leasedComm, MayRecv: 1, Ranks: 2}
		b.Comms[0].Peers[1] = 1
		p := &b.Peers[0]
		p.IsLeased = 1
		p.Recvs = lease.Recvs{Digest: 1, Number: 1, Message: 1, Packets: 1, Bytes: lease.MaxPayload}
		p.Link = lease.Link{In: address(&ring[0]), Size: MinRing, InHead: address(head), InPos: pos}
		buf := make([]byte, space%(lease.MaxPayload+1))
		n, tag, done := leasetest.Recv(b, buf, 1, -1, leasedHandle)

		r := reader{ring: ring, head: head, pos: pos}
		var payload remotePayload
		packet, err := r.nextInto(&payload)
		var h protocol.ShortHeader
		expected := err == nil && packet != nil && payload.isShort
		if expected {
			h.Decode((*[protocol.ShortHeaderLen]byte)(packet))
			packet = packet[protocol.ShortHeaderLen:]
			expected = h.SessionDigest == 1 && h.Number == 1 && h.Message == 1 && h.Comm == leasedComm &&
				int32(h.Acknowledged) <= 0 && len(packet) <= len(buf)
		}
		if done != expected || done && (tag != int(h.Tag) || !bytes.Equal(buf[:n], packet) || p.Link.InPos != r.pos) {
			t.Errorf("C code: %t, %d bytes with tag %d, next at %d; want %t, %d bytes with tag %d, next at %d", done, n, tag,
				p.Link.InPos, expected, len(packet), h.Tag, r.pos)
		}
		if !done && b.Events != 0 || b.State != lease.Leased {
			t.Errorf("C code left %d events and the state %d", b.Events, b.State)
		}
	})
}

// guarded returns memory after which nothing is mapped.
func guarded(t *testing.T, n int) []byte {
	mem, err := unix.Mmap(-1, 0, n+pageLen, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		err = unix.Mprotect(mem[n:], unix.PROT_NONE)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(mem) })
	return mem[:n]
}
