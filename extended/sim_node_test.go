package extended

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// node is a simulated rank, with a minimal engine. It matches by tag alone, in the order of posting and of Open.
type node struct {
	w      *world
	rank   int
	epochs int
	cfg    Config
	conn   *Conn
	acts   []Action

	sends   map[ID]*simSend
	posted  []*simSend // all sends, in order
	inbound map[Message]*simMessage
	waiting []*simMessage // opened, and not matched with a receive
	recvs   []*simRecv    // posted, and not matched
	all     []*simRecv    // kept for tests that ask for them
	drops   [NumReasons]int
	notes   [NumEvents]int
	report  func() []byte // makes the answers to questions, or nil
	asked   []simReport   // results of its questions
}

// simReport is the result of a question.
type simReport struct {
	at   Instant
	text string
	err  error
}

// simSend is a send.
type simSend struct {
	op       SendOp
	data     []byte
	buffered bool
	started  bool
	gone     bool // canceled before it began
	ready    int64
	done     bool
	err      error
	rests    bool
	number   uint32 // of the message, if it rests
}

// simMessage is an inbound message, from its Open.
type simMessage struct {
	name     Message
	tag      uint32
	buf      []byte
	got      int64
	arrived  bool
	lost     error
	recv     *simRecv
	accepted bool
	offered  bool
	woken    RestingMessage
	rests    bool
}

// simRecv is a receive.
type simRecv struct {
	tag     uint32
	room    int64
	message *simMessage
}

// done reports whether the receive is done, and returns its data.
func (r *simRecv) done() bool {
	return r.message != nil && (r.message.arrived || r.message.lost != nil)
}
func (r *simRecv) data() []byte {
	return r.message.buf[:min(int64(len(r.message.buf)), r.room)]
}

// send posts a message.
func (n *node) send(data []byte, op SendOp) *simSend {
	op.ID, op.Length = ID(len(n.posted)+1), int64(len(data))
	s := &simSend{op: op, data: data}
	n.sends[op.ID] = s
	n.posted = append(n.posted, s)
	n.acts = n.conn.Send(n.w.now, op, n.acts)
	n.do()
	return s
}

// recv posts a receive.
func (n *node) recv(tag uint32, room int64) *simRecv {
	r := &simRecv{tag: tag, room: room}
	for i, m := range n.waiting {
		if m.tag == tag {
			n.waiting = append(n.waiting[:i:i], n.waiting[i+1:]...)
			n.match(m, r)
			return r
		}
	}
	n.recvs = append(n.recvs, r)
	return r
}

func (n *node) match(m *simMessage, r *simRecv) {
	m.recv, r.message = r, m
	n.wake(m)
	if m.offered && n.w.fetch() && n.take(m, r.room) {
		n.acts = n.conn.AcceptFetched(n.w.now, m.name, r.room, n.acts)
	} else {
		n.acts = n.conn.Accept(n.w.now, m.name, r.room, n.acts)
	}
	m.accepted = true
	n.do()
}

// rest makes a message that is waiting for a receive rest.
func (n *node) rest(m *simMessage) {
	if n.w.rests == nil || m.recv != nil || m.offered || !n.w.rests() {
		return
	}
	if m.rests = n.conn.Rest(m.name, m.name.Number()&(refBits-1)+1); m.rests {
		n.w.print("%d   Rest message %d", n.rank, m.name.Number())
	}
}

func (n *node) wake(m *simMessage) {
	if m.rests {
		n.conn.Wake(&m.woken)
		m.rests = false
	}
}

// take copies a message from its sender, if the send is not done there.
func (n *node) take(m *simMessage, room int64) bool {
	from := n.w.nodes[1-n.rank]
	if from.conn.session.local != n.conn.session.remote || from.conn.session.remote != n.conn.session.local {
		return false
	}
	id := ID(from.conn.sends.resting.get(m.name.Number()) & refBits) // of sends: both count from 1
	if o := from.conn.sends.byNumber.get(m.name.Number()); o != nil {
		id = o.op.ID
	}
	if id == 0 || from.sends[id].op.Partial { // an incomplete message is not advertised
		return false
	}
	copy(m.buf[:min(room, int64(len(m.buf)))], from.sends[id].data)
	n.w.print("%d   takes message %d", n.rank, m.name.Number())
	return true
}

func (n *node) cancel(id ID) CancelOutcome {
	if s := n.sends[id]; s.rests {
		n.conn.WakeSend(s.number)
	}
	acts, result := n.conn.Cancel(n.w.now, id, n.acts)
	n.acts = acts
	if result == CancelDone {
		n.sends[id].gone = true
	}
	n.do()
	return result
}

// ask asks the peer for its report.
func (n *node) ask() {
	n.acts = n.conn.AskReport(n.w.now, n.acts)
	n.do()
}

// ready reports that the first bytes of a Partial send are available.
func (n *node) ready(s *simSend, bytes int64) {
	s.ready = max(s.ready, bytes)
	n.conn.SetReady(s.op.ID, bytes)
	n.do()
}

// abort aborts a send.
func (n *node) abort(s *simSend) {
	n.acts = n.conn.Abort(n.w.now, s.op.ID, n.acts)
	n.do()
}

func (n *node) packet(b []byte) {
	if n.w.fetch != nil && n.w.fetch() {
		n.acts = n.conn.PacketAdvertised(n.w.now, b, n.acts)
	} else {
		n.acts = n.conn.Packet(n.w.now, b, n.acts)
	}
	n.do()
}

func (n *node) tick() {
	n.acts = n.conn.Tick(n.w.now, n.acts)
	n.do()
	n.acts = n.conn.Flush(n.w.now, n.acts)
	n.do()
	if at, ok := n.conn.Deadline(); ok && at <= n.w.now {
		n.w.fail("%d: after Tick and Flush the deadline is still %v", n.rank, at)
	}
}

func (n *node) flush() {
	n.acts = n.conn.Flush(n.w.now, n.acts)
	n.do()
}

// do executes the actions of an event, including the ones added by Accept.
func (n *node) do() {
	if err := n.conn.check(); err != nil {
		n.w.fail("%d: %v", n.rank, err)
	}
	acts := n.acts
	n.acts = nil
	for i := range acts {
		n.carryOut(&acts[i])
	}
	if n.acts == nil {
		n.acts = acts[:0]
	}
	n.restSends()
}

// restSends makes all sends that are waiting for a receive rest.
func (n *node) restSends() {
	if n.w.rests == nil {
		return
	}
	for i, s := range n.posted {
		if s.done || s.rests || s.gone || !n.w.rests() {
			continue
		}
		if s.number, s.rests = n.conn.RestSend(s.op.ID, uint32(i+1)); s.rests {
			n.w.print("%d   RestSend send %d, message %d", n.rank, s.op.ID, s.number)
		}
	}
}

// wakeSend is the function set by SetWakeSend.
func (n *node) wakeSend(ref uint32) (SendOp, Instant) {
	s := n.posted[ref-1]
	if !s.rests {
		n.w.fail("%d: send %d is woken, and does not rest", n.rank, s.op.ID)
	}
	s.rests = false
	return s.op, n.w.now
}

func (n *node) carryOut(a *Action) {
	w := n.w
	switch a.Kind {
	case Transmit, TransmitAck:
		payload := a.Payload
		if a.Kind == Transmit && a.Length > 0 {
			s := n.sends[a.ID]
			if s == nil || s.done {
				w.fail("%d: Transmit for send %d, which is done", n.rank, a.ID)
				return
			}
			if a.Header.Flags&protocol.FlagEager != 0 && !s.buffered {
				w.fail("%d: send %d was not Buffered", n.rank, a.ID)
			}
			if s.op.Partial && a.Offset+a.Length > s.ready {
				w.fail("%d: Transmit of %d bytes of send %d, of which there are %d", n.rank, a.Offset+a.Length, a.ID,
					s.ready)
			}
			s.started = true
			payload = s.data[a.Offset : a.Offset+a.Length]
		}
		if b := protocol.AppendExtended(nil, &a.Header, payload); w.mtu == 0 || len(b) <= w.mtu ||
			a.Kind == Transmit && len(payload) > n.conn.Payload() {
			w.transmit(n.rank, b)
		}
	case AskLink:
		n.conn.LinkLimit(w.link)
	case Buffered:
		n.sends[a.ID].buffered = true
		w.print("%d   Buffered send %d", n.rank, a.ID)
	case ClearedToSend:
		if s := n.sends[a.ID]; !s.op.Partial || s.done {
			w.fail("%d: ClearedToSend for send %d", n.rank, a.ID)
		}
	case SendDone:
		s := n.sends[a.ID]
		if s.done || s.gone || s.rests {
			w.fail("%d: SendDone for send %d twice, or while it rests", n.rank, a.ID)
		}
		s.done, s.err = true, a.Err
		w.print("%d   SendDone send %d%s", n.rank, a.ID, because(a.Err))
	case RestingSendsDone:
		for _, s := range n.posted {
			if s.rests {
				s.done, s.err, s.rests = true, a.Err, false
			}
		}
	case Open:
		w.print("%d   Open message %d: %d bytes, tag=%d comm=%d%s", n.rank, a.Message.Number(), a.Length, a.Tag, a.Comm,
			iff(a.Eager, ", eager"))
		n.open(a)
	case Copy, Arrived, Lost:
		n.progress(a)
	case LostRests:
		n.lostRests(a)
	case Drop:
		n.drops[a.Reason]++
		w.print("%d   Drop %v", n.rank, a.Reason)
	case Note:
		n.notes[a.Event]++
		w.print("%d   Note %v%s", n.rank, a.Event, iff(a.Header.Type != 0, fmt.Sprintf(" #%d", a.Header.Number)))
	case Question:
		if n.report != nil {
			w.at(w.now, n.rank, func() { // a report takes some time
				n.acts = n.conn.AnswerReport(n.report(), n.acts)
				n.do()
			})
		}
	case Report:
		if a.Err != nil && a.Payload != nil {
			w.fail("%d: a report of %d bytes, and %v", n.rank, len(a.Payload), a.Err)
		}
		n.asked = append(n.asked, simReport{w.now, string(a.Payload), a.Err})
	default:
		w.fail("%d: action %v", n.rank, a.Kind)
	}
}

func (n *node) open(a *Action) {
	if n.inbound[a.Message] != nil {
		n.w.fail("%d: message %x was opened twice", n.rank, a.Message)
		return
	}
	if a.Advertised && (a.Eager || n.w.fetch == nil) {
		n.w.fail("%d: message %x is advertised", n.rank, a.Message)
	}
	m := &simMessage{name: a.Message, tag: a.Tag, buf: make([]byte, a.Length), offered: a.Advertised}
	m.woken = RestingMessage{Message: a.Message, Comm: a.Comm, Tag: a.Tag, Length: a.Length, Datatype: a.Datatype,
		Since: n.w.now}
	n.inbound[a.Message] = m
	for i, r := range n.recvs {
		if r.tag == m.tag {
			n.recvs = append(n.recvs[:i:i], n.recvs[i+1:]...)
			n.match(m, r)
			return
		}
	}
	n.waiting = append(n.waiting, m)
	if !a.Eager {
		n.rest(m)
	}
}

// lostRests loses all resting messages that are not complete.
func (n *node) lostRests(a *Action) {
	for _, m := range slices.Clone(n.waiting) {
		if m.rests && !m.arrived {
			n.progress(&Action{Kind: Lost, Message: m.name, Ref: m.name.Number()&(refBits-1) + 1, Err: a.Err})
		}
	}
}

func (n *node) progress(a *Action) {
	m := n.inbound[a.Message]
	if m == nil || m.arrived || m.lost != nil {
		n.w.fail("%d: %v for message %x, which is not open", n.rank, a.Kind, a.Message)
		return
	}
	switch a.Kind {
	case Copy:
		m.got += int64(len(a.Payload))
		if a.Offset+int64(len(a.Payload)) > int64(len(m.buf)) || m.got > int64(len(m.buf)) {
			n.w.fail("%d: Copy to %d..%d of message %x of %d bytes, with %d in all",
				n.rank, a.Offset, a.Offset+int64(len(a.Payload)), a.Message, len(m.buf), m.got)
			return
		}
		copy(m.buf[a.Offset:], a.Payload)
	case Arrived:
		m.arrived = true
		n.rest(m)
		n.w.print("%d   Arrived message %d: %d bytes", n.rank, a.Message.Number(), m.got)
	case Lost:
		if (a.Ref != 0) != m.rests || m.rests && a.Ref != m.name.Number()&(refBits-1)+1 {
			n.w.fail("%d: Lost message %d has ref %d", n.rank, a.Message.Number(), a.Ref)
		}
		m.lost = a.Err
		n.w.print("%d   Lost message %d%s", n.rank, a.Message.Number(), because(a.Err))
		for i, o := range n.waiting {
			if o == m {
				n.waiting = append(n.waiting[:i:i], n.waiting[i+1:]...)
				break
			}
		}
	}
}

func because(err error) string { return iff(err != nil, fmt.Sprintf(": %v", err)) }

func iff(ok bool, s string) string {
	if ok {
		return s
	}
	return ""
}

// pattern returns n bytes that differ for every message and position, so that every mix-up is detected.
func pattern(n int, seed uint64) []byte {
	r := random(seed*2654435761 + 1)
	b := make([]byte, 0, n+8)
	for len(b) < n {
		x := r.nextUint64()
		b = append(b, byte(x), byte(x>>8), byte(x>>16), byte(x>>24), byte(x>>32), byte(x>>40), byte(x>>48), byte(x>>56))
	}
	return b[:n]
}

// intact reports whether a receive got the beginning of a message.
func intact(r *simRecv, data []byte) error {
	switch {
	case !r.done():
		return fmt.Errorf("the receive of tag %d has not ended", r.tag)
	case r.message.lost != nil:
		return r.message.lost
	case !bytes.Equal(r.data(), data[:min(int64(len(data)), r.room)]):
		return fmt.Errorf("the message of tag %d, %d bytes, differs from the %d bytes sent", r.tag, len(r.data()),
			len(data))
	}
	return nil
}
