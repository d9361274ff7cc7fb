package extended

import (
	"time"
)

// tcpFlow models a TCP connection that always has data to send, with CUBIC with SACK, a packet threshold of three,
// RACK's time threshold of a quarter of a round trip, delayed acknowledgements, and timeouts of at least 200 ms. Its
// window is a congestion.
type tcpFlow struct {
	b *bottleneck
	w congestion
	r rttEstimator

	segments   []tcpSegment // from base on
	base, next int
	order      uint64
	newest     uint64
	newestSent Instant
	inFlight   int
	lost       []int
	timer      Instant

	// State of the receiver.
	arrived   map[int]bool
	expected  int
	pending   int
	delayed   Instant
	delivered int64
}

type tcpSegment struct {
	state packetState
	order uint64
	sent  Instant
	again bool
}

const tcpSegmentBytes = 1448

var tcpTiming = Timing{InitialRTO: time.Second, MinRTO: 200 * time.Millisecond, MaxRTO: time.Minute}

func newTCPFlow(b *bottleneck) *tcpFlow {
	f := &tcpFlow{b: b, arrived: map[int]bool{}}
	f.w.reset()
	f.w.window, f.w.packets = 10, 10
	f.r.reset(&tcpTiming)
	return f
}

func (f *tcpFlow) begin(at Instant) { f.b.at(at, f.send) }

func (f *tcpFlow) bytes() int64 { return f.delivered }

func (f *tcpFlow) send() {
	for f.inFlight < f.w.packets {
		n := f.next
		if len(f.lost) > 0 {
			n, f.lost = f.lost[0], f.lost[1:]
			if n < f.base || f.segments[n-f.base].state != packetLost {
				continue
			}
		} else {
			f.segments = append(f.segments, tcpSegment{})
			f.next++
		}
		f.transmit(n)
	}
	f.arm()
}

func (f *tcpFlow) transmit(n int) {
	s := &f.segments[n-f.base]
	f.order++
	s.again = s.order != 0
	s.state, s.order, s.sent = packetSent, f.order, f.b.now
	f.inFlight++
	sent := f.b.now
	f.b.forth(tcpSegmentBytes+overheadTCP, func() { f.arrive(n, sent) })
}

// arm sets the timeout.
func (f *tcpFlow) arm() {
	at := f.b.now + f.r.rto
	f.timer = at
	f.b.at(at, func() {
		if f.timer != at || f.base == f.next {
			return
		}
		f.r.doublings++
		f.r.rto = min(2*f.r.rto, tcpTiming.MaxRTO)
		for i := range f.segments {
			if s := &f.segments[i]; s.state == packetSent {
				f.lose(f.base + i)
			}
		}
		f.w.onLost(f.order, f.order+1)
		f.w.collapse()
		f.w.window, f.w.packets = 1, 1
		f.send()
	})
}

func (f *tcpFlow) lose(n int) {
	f.segments[n-f.base].state = packetLost
	f.inFlight--
	f.lost = append(f.lost, n)
}

func (f *tcpFlow) arrive(n int, echo Instant) {
	if n < f.expected || f.arrived[n] {
		f.acknowledge(n, echo)
		return
	}
	f.arrived[n] = true
	f.delivered += tcpSegmentBytes
	disorder := n != f.expected || len(f.arrived) > 1
	for f.arrived[f.expected] {
		delete(f.arrived, f.expected)
		f.expected++
	}
	f.pending++
	if disorder || f.pending >= 2 {
		f.acknowledge(n, echo)
		return
	}
	at := f.b.now + 40*time.Millisecond
	f.delayed = at
	f.b.at(at, func() {
		if f.delayed == at {
			f.acknowledge(n, echo)
		}
	})
}

func (f *tcpFlow) acknowledge(n int, echo Instant) {
	f.pending, f.delayed = 0, 0
	expected := f.expected
	f.b.back(func() { f.acked(expected, n, echo) })
}

func (f *tcpFlow) acked(expected, sack int, echo Instant) {
	used := f.inFlight >= f.w.packets || f.w.slowStart() && 2*f.inFlight >= f.w.packets
	count, order := 0, uint64(0)
	ack := func(n int) {
		s := &f.segments[n-f.base]
		if s.state == packetAcked {
			return
		}
		if s.state == packetSent {
			f.inFlight--
		}
		s.state = packetAcked
		count++
		order = max(order, s.order)
		if !s.again || s.sent == echo {
			f.newest, f.newestSent = max(f.newest, s.order), max(f.newestSent, s.sent)
		}
	}
	if sack >= f.base {
		ack(sack)
	}
	for f.base < expected {
		ack(f.base)
		f.base++
		f.segments = f.segments[1:]
	}
	if count == 0 {
		return
	}
	trip := f.b.now - echo
	f.r.addSample(trip, &tcpTiming)
	f.r.doublings = 0
	if f.w.slowStart() && f.w.hyStart.addSample(trip, order, f.order+1) {
		f.w.exitSlowStart()
	}
	if used {
		f.w.onAcked(f.b.now, count, order, f.r.smoothed, 1<<20)
	} else {
		f.w.onUnusedAck(f.b.now)
	}
scan:
	for i := range f.segments {
		s := &f.segments[i]
		switch {
		case s.state != packetSent:
		case s.order < f.newest && (f.newest-s.order >= 3 || s.sent+f.r.smoothed/4 <= f.newestSent):
			f.lose(f.base + i)
			f.w.onLost(s.order, f.order+1)
		case !s.again: // later segments were sent later, or are checked when this one is acknowledged
			break scan
		}
	}
	f.send()
}
