package extended

import (
	"fmt"
	"math/bits"
)

// check verifies the invariants between two events.
func (c *Conn) check() error {
	if now := c.deadline(); !c.changed && c.deadlineValid && now != c.nextDeadline {
		return fmt.Errorf("the deadline is %v, and not %v, though nothing has changed", now, c.nextDeadline)
	}
	for _, err := range []error{c.checkFlight(), c.checkSends(), c.checkRecvs()} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *Conn) checkFlight() error {
	f := &c.path.flight
	if f.outstanding() > maxWindow || f.outstanding() > len(f.ring) {
		return fmt.Errorf("%d packets outstanding in a ring of %d", f.outstanding(), len(f.ring))
	}
	counts := map[packetState]int{}
	flying := map[*outbound]int{}
	var bytes int64
	var oldest *packet
	carriers, again := 0, 0
	for n := f.base; n != f.nextNumber; n++ {
		p := f.packetAt(n)
		if p.header.Number != n {
			return fmt.Errorf("slot %d holds packet %d", n, p.header.Number)
		}
		counts[p.state]++
		if p.state == packetSent {
			bytes += p.bytesInFlight()
			if p.bytesInFlight() > 0 {
				carriers++
			}
			if p.retransmissions > 0 {
				again++
			}
			if oldest == nil || p.order < oldest.order {
				oldest = p
			}
		}
		if p.message != nil {
			if p.state == packetAcked {
				return fmt.Errorf("packet %d is acknowledged and has a message", n)
			}
			flying[p.message]++
		}
	}
	beyond := 0
	for _, word := range f.ackedBits {
		beyond += bits.OnesCount64(word)
	}
	if beyond != counts[packetAcked] {
		return fmt.Errorf("%d packets beyond the first are acknowledged, but %d are noted", counts[packetAcked], beyond)
	}
	if f.outstanding() > 0 && f.packetAt(f.base).state == packetAcked {
		return fmt.Errorf("the first packet %d is acknowledged", f.base)
	}
	if f.count != counts[packetSent] || f.bytes != bytes {
		return fmt.Errorf("%d packets in flight, %d bytes; counted are %d and %d", counts[packetSent], bytes, f.count,
			f.bytes)
	}
	if most := int64(c.cfg.WindowBytes); bytes > most && c.path.pacer == (pacer{}) && carriers > 1 {
		return fmt.Errorf("%d bytes in flight, %d are allowed", bytes, most)
	}
	if p := f.oldest(); p != oldest {
		return fmt.Errorf("the oldest packet in flight is %v, not %v", oldest, p)
	}
	counts[packetSent] = again
	for state, l := range map[packetState]*list{packetSent: &f.retransmitted, packetLost: &f.lost} {
		if int(l.count) != counts[state] {
			return fmt.Errorf("%d packets in the list of %d, but %d are in that state", l.count, state, counts[state])
		}
		var order uint64
		for i, n := int32(0), l.first; i < l.count; i++ {
			p := f.packetAt(n)
			if p.state != state || state == packetSent && p.retransmissions == 0 || p.header.Number != n {
				return fmt.Errorf("packet %d is in the list of %d, in state %d", n, state, p.state)
			}
			if state == packetSent && p.order <= order {
				return fmt.Errorf("packet %d is not in the order of transmission", n)
			}
			if i == l.count-1 && n != l.last {
				return fmt.Errorf("the list of %d ends with %d, not %d", state, n, l.last)
			}
			order, n = p.order, p.next
		}
	}
	for m := c.sends.first; m != nil; m = m.next {
		if m.unackedPackets != flying[m] {
			return fmt.Errorf("message %d has %d packets in flight, not %d", m.number, flying[m], m.unackedPackets)
		}
		delete(flying, m)
	}
	if len(flying) > 0 {
		return fmt.Errorf("packets of %d completed messages are in flight", len(flying))
	}
	return nil
}

func (c *Conn) checkSends() error {
	s := &c.sends
	count, begun, numbered, queued := 0, 0, 0, false
	var before *outbound
	for m := s.first; m != nil; m = m.next {
		count++
		if m.prev != before {
			return fmt.Errorf("send %d: broken list", m.op.ID)
		}
		before = m
		queued = queued || m == s.queued
		if queued != (m.state == Queued) {
			return fmt.Errorf("send %d is in state %v after a queued one", m.op.ID, m.state)
		}
		if !queued {
			begun++
		}
		if s.find(m.op.ID) != m || (s.byID.get(m.op.ID) == nil) != (m == s.newest) {
			return fmt.Errorf("send %d is not found by its ID", m.op.ID)
		}
		if m.state >= WaitClear {
			numbered++
			if s.byNumber.get(m.number) != m {
				return fmt.Errorf("message %d is not found by its number", m.number)
			}
		}
		if m.bytesAcked > m.bytesSent || m.bytesSent > m.bytesToSend || m.bytesToSend > m.op.Length {
			return fmt.Errorf("message %d: %d acknowledged of %d sent of %d of %d", m.number, m.bytesAcked, m.bytesSent,
				m.bytesToSend,
				m.op.Length)
		}
	}
	if err := s.checkResting(); err != nil {
		return err
	}
	if before != s.last || count != int(s.count) || begun != int(s.begunSends) || s.named() != count ||
		int(s.byNumber.count) != numbered {
		return fmt.Errorf("%d sends, %d begun, %d numbered; counted are %d, %d, %d and %d",
			count, begun, numbered, s.count, s.begunSends, s.named(), s.byNumber.count)
	}
	return nil
}

// checkResting verifies that the resting sends can be found, and that there are no others.
func (s *sending) checkResting() error {
	if s.resting == nil {
		return nil
	}
	count := 0
	for _, r := range s.resting.slots {
		if r.value == 0 {
			continue
		}
		count++
		if s.resting.get(r.key) != r.value || s.byNumber.get(r.key) != nil || int32(r.key-s.number) >= 0 {
			return fmt.Errorf("send %d rests, and is not found, or not the only one", r.key)
		}
	}
	if count != s.resting.len() {
		return fmt.Errorf("%d sends rest; counted are %d", count, s.resting.len())
	}
	return nil
}

// named returns the number of sends that can be found by their ID.
func (s *sending) named() int {
	if s.newest != nil {
		return int(s.byID.count) + 1
	}
	return int(s.byID.count)
}

func (c *Conn) checkRecvs() error {
	r := &c.recvs
	count, waiting := 0, 0
	var before *inbound
	for m := r.first; m != nil; m = m.next {
		count++
		if m.prev != before || before != nil && int32(m.number-before.number) <= 0 ||
			int32(m.number-r.nextMessage) >= 0 {
			return fmt.Errorf("inbound %d: broken list", m.number)
		}
		before = m
		if r.find(m.number) != m || (r.byNumber.get(m.number) == nil) != (m == r.newest) {
			return fmt.Errorf("inbound %d is not found by its number", m.number)
		}
		if m.accepted {
			waiting++
			if m.isComplete() {
				return fmt.Errorf("inbound %d is accepted and complete, and still there", m.number)
			}
		}
		if m.receivedBytes > m.expectedBytes || m.expectedBytes > m.length {
			return fmt.Errorf("inbound %d: %d of %d of %d bytes", m.number, m.receivedBytes, m.expectedBytes, m.length)
		}
	}
	if q := r.resting; q != nil {
		rests := 0
		for _, s := range q.slots {
			if s.value == 0 {
				continue
			}
			rests++
			if q.get(s.key) != s.value || r.find(s.key) != nil || int32(s.key-r.nextMessage) >= 0 ||
				int32(s.key-r.floor) < 0 {
				return fmt.Errorf("message %d rests, and is not found, or not the only one", s.key)
			}
		}
		if rests != q.len() {
			return fmt.Errorf("%d messages rest; counted are %d", rests, q.len())
		}
		count += rests
	}
	if before != r.last || count != r.numOpen() || waiting != int(r.acceptedOpen) {
		return fmt.Errorf("%d inbound, %d waiting; counted are %d and %d", count, waiting, r.numOpen(), r.acceptedOpen)
	}
	if over := int32(r.matchedBytes - r.eagerBytes); over > 0 {
		return fmt.Errorf("%d bytes of eager credit more were returned than taken", over)
	}
	if waits := int(r.nextMessage - r.firstMessage - r.matched); int(r.messageWindow) < c.cfg.Messages ||
		c.cfg.CreditPool == nil && int(r.messageWindow) != c.cfg.Messages || waits > int(r.messageWindow) {
		return fmt.Errorf("%d messages wait for receives, and %d may", waits, r.messageWindow)
	}
	held, bytes, q := 0, 0, &r.heldPackets
	for _, i := range q.slots {
		if i > 0 {
			held++
		}
	}
	for i := range q.packets {
		p := &q.packets[i]
		bytes += len(p.payload)
		if n := p.header.Number; q.find(n) != p || int32(n-c.arrivals.firstMissing) < 0 || int32(n-c.arrivals.end) >= 0 {
			return fmt.Errorf("packet %d is held, but the received packets are between %d and %d", n, c.arrivals.firstMissing,
				c.arrivals.end)
		}
	}
	if held != len(q.packets) || bytes != int(q.bytes) || bytes > c.cfg.EagerBytes || len(q.free) > maxFreeBuffers ||
		q.freeBytes > maxFreeBytes {
		return fmt.Errorf("%d packets held, %d bytes; counted are %d and %d", held, bytes, len(q.packets), q.bytes)
	}
	return c.checkArrivals()
}

func (c *Conn) checkArrivals() error {
	a := &c.arrivals
	if a.end-a.firstMissing > a.window || a.hasGaps() && a.end-a.firstMissing > uint32(64*len(a.bitmap)) {
		return fmt.Errorf("packets from %d to %d were received", a.firstMissing, a.end)
	}
	set := 0
	for n := a.firstMissing; n != a.end; n++ {
		if a.has(n) {
			set++
		}
	}
	total := 0
	for _, word := range a.bitmap {
		total += bits.OnesCount64(word)
	}
	if set != total || a.firstMissing != a.end && (a.has(a.firstMissing) || !a.has(a.end-1)) {
		return fmt.Errorf("%d bits between %d and %d, %d in all", set, a.firstMissing, a.end, total)
	}
	return nil
}
