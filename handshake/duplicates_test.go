package handshake_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var copiedMessages = flag.Int("copied-messages", 400, "number of messages in each stream of TestCopies")

// stream simulates many messages between a host and the model of a deployed node, over a network that delivers late
// copies of datagrams.
type stream struct {
	w    *world
	host *rank
	node *party
	// received are the host's receives, and expected the messages sent by the node, both in order.
	received []*simOp
	expected [][]byte
	sent     []*simOp
	got      []func() result
	// reports has, for each note that reports a possible copy, the number of receives done before it.
	reports []int
	copies  int
}

// reporting lists the events that report to a user that the network delivers copies.
var reporting = []handshake.Event{
	handshake.DeliveredDuplicate, handshake.EarlyData, handshake.SecondData, handshake.RepeatedContent,
}

func newStream(kind string, words, messages int, echo bool, content func(int) []byte) *stream {
	s := &stream{}
	rules := handshake.FPGAPeer(1)
	var end endpoint
	if kind == "cpu" {
		rules = handshake.CPUPeer()
		c := newCPU(1, 0)
		end, s.node = c, c.party()
	} else {
		f := newFPGA(1, 0)
		end, s.node = f, f.party()
	}
	s.host = newRank(hostTo(1, rules))
	for i := range messages {
		data := content(i)
		if echo {
			s.sent = append(s.sent, s.host.postSend(data))
			s.got = append(s.got, s.node.recv(words))
		}
		s.expected = append(s.expected, data)
		s.received = append(s.received, s.host.postRecv(words))
		s.node.send(data)
	}
	if echo { // the program makes its calls in turn
		for i := range s.received {
			s.received[i].behind = s.sent[i]
			if i > 0 {
				s.sent[i].behind = s.received[i-1]
			}
		}
	}
	s.host.noted = func(e handshake.Event) {
		if slices.Contains(reporting, e) {
			s.reports = append(s.reports, s.done())
		}
	}
	s.w = newWorld(s.host, end, nil)
	s.w.quiet = true
	return s
}

// done returns the number of receives that are done.
func (s *stream) done() int {
	n := s.host.recvd
	if n > 0 && !s.received[n-1].done {
		n--
	}
	return n
}

// verdict counts the messages that the host has received, how many of them were wrong, and how many of the wrong ones
// were not reported.
func (s *stream) verdict() (intact, wrong, silent, failed int, first string) {
	index := make(map[string]int, len(s.expected))
	for i, data := range s.expected {
		index[string(data)] = i
	}
	next, replaced := 0, false
	for i, r := range s.received {
		if !r.done {
			break
		}
		if r.err != nil {
			failed++
			continue
		}
		at, known := index[string(r.data)]
		if known && (at == next || replaced && at == next+1) { // the message that was replaced by another one is lost
			intact, next, replaced = intact+1, at+1, false
			continue
		}
		wrong, replaced = wrong+1, true
		if known {
			next = max(next, at+1)
		}
		reported := slices.ContainsFunc(s.reports, func(after int) bool { return after >= i-1 && after <= i+1 })
		reported = reported || i+1 < len(s.received) && s.received[i+1].err != nil
		if !reported {
			silent++
			if first == "" {
				first = fmt.Sprintf("receive %d has message %d (known %v), expected %d", i, at, known, next)
			}
		}
	}
	return intact, wrong, silent, failed, first
}

// copying returns a fault that delivers one of every one datagrams a second time, with a delay between lo and hi.
// Datagrams remain in order, with up to jitter between them.
func (s *stream) copying(rng *rand.Rand, one int, lo, hi, jitter time.Duration) fault {
	w := s.w
	var last [2]time.Duration
	return func(from, _ int, b []byte) []time.Duration {
		var late time.Duration
		if jitter > 0 {
			late = max(time.Duration(rng.Int64N(int64(jitter))), last[from]-w.now)
			last[from] = w.now + late
		}
		fate := []time.Duration{late}
		h, d := protocol.CloudFPGA.Parse(b)
		if from == 1 && (!d.OK() || h.Type == dat) && rng.IntN(one) == 0 {
			s.copies++
			fate = append(fate, late+lo+time.Duration(rng.Int64N(int64(hi-lo)+1)))
		}
		return fate
	}
}

// TestCopies simulates streams of distinct messages from a deployed node, and echoes, with late copies of every tenth
// DATA datagram. No copy replaces another message without a report. With a constant round-trip time, no message of one
// datagram is replaced at all once the Pair knows the round-trip time.
func TestCopies(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var total [5]int
	t.Run("streams", func(t *testing.T) {
		for _, kind := range []string{"fpga", "cpu"} {
			for _, words := range []int{1, 5, 346, 347, 701, 1000} {
				for _, echo := range []bool{false, true} {
					for _, jitter := range []time.Duration{0, 15 * time.Microsecond} {
						for _, late := range []time.Duration{8 * ms, 300 * ms} {
							t.Run(fmt.Sprintf("%s/%d words/echo %v/jitter %v/late %v", kind, words, echo, jitter, late),
								func(t *testing.T) {
									t.Parallel()
									n := *copiedMessages
									s := newStream(kind, words, n, echo,
										func(i int) []byte { return pattern(words, uint32(i+1)) })
									s.w.fault = s.copying(rand.New(rand.NewPCG(uint64(words), 1)), 10, 0, late, jitter)
									s.w.run(time.Duration(n) * 200 * ms)
									intact, wrong, silent, failed, first := s.verdict()
									if silent > 0 {
										t.Errorf("%d of %d wrong messages are not reported: %s; %v", silent, wrong,
											first, s.host.notes)
									}
									if jitter == 0 && words <= 346 && wrong > 1 { // one of the first eight messages
										t.Errorf("%d wrong messages; %v", wrong, s.host.notes)
									}
									if kind == "fpga" && !echo && s.host.notes[handshake.RepeatedContent] > n/10 {
										t.Errorf("%d repeated", s.host.notes[handshake.RepeatedContent])
									}
									for i, op := range s.sent {
										if g := s.got[i](); op.done && op.err == nil && !bytes.Equal(g.data, op.buf) {
											t.Fatalf("send %d succeeded, and the node has other words", i)
										}
									}
									mu.Lock()
									defer mu.Unlock()
									for i, v := range []int{intact, wrong, silent, failed, s.copies} {
										total[i] += v
									}
								})
						}
					}
				}
			}
		}
	})
	t.Logf("%d messages intact, %d wrong, %d of them not reported, %d failed; %d copies", total[0], total[1], total[2],
		total[3], total[4])
}

// TestEqualMessagesUnderLoss checks that no message is dropped because it equals an earlier one, and that few are held
// back. A program may send the same message again.
func TestEqualMessagesUnderLoss(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fpga", "cpu"} {
		for _, words := range []int{1, 346, 347} {
			for _, losses := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d words/losses %v", kind, words, losses), func(t *testing.T) {
					t.Parallel()
					const messages = 1000
					same := pattern(words, 7)
					s := newStream(kind, words, messages, false, func(int) []byte { return same })
					rng := rand.New(rand.NewPCG(uint64(words), 3))
					calm := 0 // datagrams until another one may be lost: the node retransmits three times
					s.w.fault = func(int, int, []byte) []time.Duration {
						if calm--; losses && calm < 0 && rng.IntN(50) == 0 {
							calm = 10
							return nil
						}
						return onTime
					}
					s.w.run(time.Hour)
					for i, r := range s.received {
						if !r.done || r.err != nil || !bytes.Equal(r.data, same) {
							t.Fatalf("message %d: done %v, %v; %v", i, r.done, r.err, s.host.notes)
						}
					}
					if n := s.host.notes[handshake.RepeatedContent]; n != messages-1 {
						t.Errorf("%d reported as repeated", n)
					}
					if last := s.received[messages-1].ph.Ack; !losses && last > messages*85*time.Microsecond+4*ms {
						t.Errorf("they took %v", last)
					}
				})
			}
		}
	}
}

// exchange receives a message of one word that arrives after d.
func (b *bench) exchange(d time.Duration, seed uint32) *simOp {
	op := b.postRecv(1)
	b.at(b.now+ms).gets(sreq, sInt, nil).sends(clr)
	b.at(b.now+d).gets(dat, sInt, pattern(1, seed))
	return op
}

// practised returns a host that knows the round-trip time, because it has received nine messages, each 1 ms after
// CLEAR_TO_SEND.
func practised(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	for i := range 9 {
		b.exchange(ms, uint32(i+1))
		b.sends(ack)
	}
	return b
}

func TestEarlyDataIsHeldBack(t *testing.T) {
	const us = time.Microsecond
	// A little sooner than any before: held back for the rest of the round trip and 1 ms.
	b := practised(t)
	op := b.exchange(900*us, 100)
	b.sends()
	b.at(b.now + 1099*us).sends()
	b.at(b.now + us).sends(ack)
	if !op.done || op.err != nil || !bytes.Equal(op.data, pattern(1, 100)) || b.notes[handshake.EarlyData] != 1 {
		t.Fatalf("%v, %v, %v", op.done, op.err, b.notes)
	}
	// It was real, so its time is the shortest now.
	b.exchange(900*us, 101)
	b.sends(ack)

	// Much sooner: held back until the FPGA has retransmitted a lost message.
	b = practised(t)
	op = b.exchange(100*us, 3)
	b.at(b.now + 224*ms).sends()
	b.gets(dat, sInt, pattern(1, 100)).sends(ack)
	if !bytes.Equal(op.data, pattern(1, 100)) {
		t.Fatal("the copy was delivered")
	}
	// If the FPGA has no retransmission left, it is accepted.
	b = practised(t)
	op = b.exchange(100*us, 100)
	b.at(b.now + 499*ms).sends()
	b.at(b.now + 2*ms).sends(ack)
	if op.err != nil || !bytes.Equal(op.data, pattern(1, 100)) {
		t.Fatal(op.err)
	}
	// A retransmission is the message, and the shortest time is the time of the first DATA.
	b = practised(t)
	b.exchange(100*us, 100)
	b.at(b.now+225*ms).gets(dat, sInt, pattern(1, 100)).sends(ack)
	b.exchange(100*us, 101)
	b.sends(ack)
	// It was sent before the peer was cleared.
	b = practised(t)
	op = b.exchange(100*us, 3)
	b.at(b.now+113*ms).gets(sreq, sInt, nil).sends(clr)
	b.at(b.now + 600*ms).sends()
	b.gets(dat, sInt, pattern(1, 100)).sends(ack)
	if !bytes.Equal(op.data, pattern(1, 100)) {
		t.Fatal("the copy was delivered")
	}
	// Of two DATA, the one that equals an earlier message is the copy.
	b = practised(t)
	op = b.exchange(900*us, 100)
	b.at(b.now+500*us).gets(dat, sInt, pattern(1, 3)).sends()
	b.at(b.now + 600*us).sends(ack)
	if !bytes.Equal(op.data, pattern(1, 100)) {
		t.Fatal("the copy was delivered")
	}
	// It does not come too soon, but equals an earlier message: held back for a round trip.
	b = practised(t)
	op = b.exchange(ms, 3)
	b.at(b.now+500*us).gets(dat, sInt, pattern(1, 100)).sends(ack)
	if !bytes.Equal(op.data, pattern(1, 100)) {
		t.Fatal("the copy was delivered")
	}
	// It is not lost when the deadline of the receive expires.
	b = practised(t)
	cfg := b.cfg
	cfg.Timing.DataDeadline = 100 * ms
	b.pair.Reconfigure(&cfg)
	op = b.exchange(100*us, 100)
	if b.at(b.now + 101*ms).sends(ack); op.err != nil {
		t.Fatal(op.err)
	}
}

func TestEarlyFirstDatagram(t *testing.T) {
	// A late copy of the first datagram of a fragmented message precedes the real message, of which all datagrams are
	// full.
	b := practised(t)
	op := b.postRecv(1054)
	h := protocol.Header{Src: 1, Call: sInt, Type: dat, Size: 1054}
	late, data := cut(0, h, pattern(1054, 1), protocol.CPUShape()), pattern(1054, 2)
	b.at(b.now+ms).gets(sreq, sInt, nil).raw(late[0]).sends(clr)
	b.at(b.now + ms)
	for _, d := range cut(0, h, data, protocol.CPUShape()) {
		b.raw(d)
	}
	b.sends(ack)
	if !bytes.Equal(op.data, data) {
		t.Fatal("the message is mixed")
	}
	// Without the first real datagram, the copy and the rest of the real message are not a message.
	b = practised(t)
	b.postRecv(1054)
	b.at(b.now+ms).gets(sreq, sInt, nil).raw(late[0]).sends(clr)
	for _, d := range cut(0, h, data, protocol.CPUShape())[1:] {
		b.raw(d)
	}
	b.at(b.now + 224*ms).sends()
	b.gets(dat, sInt, data).sends(ack)
}

func TestSecondDataIsReported(t *testing.T) {
	for _, tt := range []struct {
		name           string
		first, second  uint32 // the messages received; 1 to 9 were received before
		event, noEvent handshake.Event
	}{
		{"a copy was delivered", 3, 100, handshake.DeliveredDuplicate, handshake.SecondData},
		{"a copy came later", 100, 3, 0, handshake.SecondData},
		{"both are new", 100, 101, handshake.SecondData, handshake.DeliveredDuplicate},
		{"both are old", 3, 4, handshake.SecondData, handshake.DeliveredDuplicate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := practised(t)
			b.exchange(ms, tt.first)
			b.at(b.now + 3*ms).sends(ack) // one that equals another is held back briefly
			b.gets(dat, sInt, pattern(1, tt.second)).sends()
			if tt.event != 0 && b.notes[tt.event] != 1 || b.notes[tt.noEvent] != 0 {
				t.Errorf("noted %v", b.notes)
			}
		})
	}
	// More payload than the message has.
	b := practised(t)
	b.postRecv(1000)
	b.at(b.now+ms).gets(sreq, sInt, nil).at(b.now+ms).gets(dat, sInt, pattern(1000, 1)).sends(clr, ack)
	b.raw(make([]byte, 1200))
	if b.notes[handshake.SecondData] != 1 {
		t.Errorf("noted %v", b.notes)
	}
}

// TestLateLongDatagram: an FPGA sends 347 words in one datagram of 1424 bytes. The rest of 701 words after the first
// datagram, with padding, has the same length.
func TestLateLongDatagram(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	data := pattern(701, 1)
	h := protocol.Header{Src: 1, Call: sInt, Type: dat}
	h.Size = 701
	message := cut(0, h, data, protocol.FPGAShape(true))
	h.Size = 347
	late := cut(0, h, pattern(347, 2), protocol.FPGAShape(true))[0]
	op := b.postRecv(701)
	b.at(ms).gets(sreq, sInt, nil).raw(message[0]).raw(late).sends(clr)
	b.dropped(handshake.ReasonLength, 1)
	b.at(226 * ms)
	for _, d := range message {
		b.raw(d)
	}
	b.sends(ack)
	if len(late) != 1424 || !bytes.Equal(op.data, data) {
		t.Fatalf("%d bytes, %v", len(late), op.err)
	}
}

func TestEarlyAckIsHeldBack(t *testing.T) {
	ready := func() *bench {
		b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
		for i := range 9 {
			b.postSend(pattern(1, uint32(i)))
			b.at(b.now+ms).gets(clr, rInt, nil).at(b.now+ms).gets(ack, rInt, nil).sends(sreq, dat)
		}
		return b
	}
	send := func(b *bench) *simOp {
		op := b.postSend(pattern(1, 100))
		b.at(b.now+ms).gets(clr, rInt, nil).sends(sreq, dat)
		b.at(b.now+100*time.Microsecond).gets(ack, rInt, nil)
		return op
	}
	// The FPGA has received nothing of the message: the ACK was a copy.
	b := ready()
	op := send(b)
	b.at(b.now+112*ms).gets(clr, rInt, nil).at(b.now + ms).sends(dat)
	if op.done {
		t.Fatal("a late copy of an ACK was believed")
	}
	b.at(b.now+ms).gets(ack, rInt, nil)
	if !op.done || op.err != nil || b.notes[handshake.EarlyAck] != 1 {
		t.Fatalf("%v, %v, %v", op.done, op.err, b.notes)
	}
	// The real ACK arrives.
	b = ready()
	if op = send(b); op.done {
		t.Fatal("believed at once")
	}
	if b.at(b.now+ms).gets(ack, rInt, nil); !op.done || op.err != nil {
		t.Fatal("the real one is not believed")
	}
	// Nothing contradicts the ACK.
	b = ready()
	if op = send(b); op.done {
		t.Fatal("believed at once")
	}
	if b.at(b.now + 276*ms); !op.done || op.err != nil {
		t.Fatalf("it is not believed at all: %v", op.err)
	}
}

// TestClearAfterDone: the peer asks again for a message that was reported as done.
func TestClearAfterDone(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rules handshake.PeerRules
		again time.Duration // after the first CLEAR_TO_SEND
		want  int
	}{
		{"fpga", handshake.FPGAPeer(1), 113 * ms, 1},
		{"cpu", handshake.CPUPeer(), 101 * ms, 1},
		{"a copy", handshake.FPGAPeer(1), 60 * ms, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, hostTo(1, tt.rules))
			op := b.postSend(pattern(1, 1))
			b.at(0).gets(clr, rInt, nil).gets(ack, rInt, nil).sends(sreq, dat)
			b.at(tt.again).gets(clr, rInt, nil).sends()
			if !op.done || b.notes[handshake.ClearAfterDone] != tt.want {
				t.Errorf("done %v, noted %v", op.done, b.notes)
			}
		})
	}
}

// TestSilentFPGA: an ACK is lost and the FPGA's next call is a receive, or the FPGA was reset.
func TestSilentFPGA(t *testing.T) {
	for _, words := range []int{1, 346, 347} {
		host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
		got := [2]func() result{dev.party().recv(words), dev.party().recv(words)}
		ops := [2]*simOp{host.postSend(pattern(words, 1)), host.postSend(pattern(words, 2))}
		newWorld(host, dev, one(1, 1, nil)).run(time.Minute)
		var te *handshake.TimeoutError
		switch {
		case words > 346: // it may just as well wait for the rest
			if !errors.Is(ops[0].err, handshake.ErrPartial) {
				t.Errorf("%d words: %v", words, ops[0].err)
			}
		case !errors.As(ops[0].err, &te) || !te.Silent || !strings.Contains(te.Error(), "was probably received"):
			t.Errorf("%d words: %v", words, ops[0].err)
		case te.Elapsed < 6675*ms || te.Elapsed > 7*time.Second:
			t.Errorf("%d words: after %v", words, te.Elapsed)
		case ops[1].err != nil || !bytes.Equal(got[1]().data, ops[1].buf):
			t.Errorf("%d words: the next message: %v", words, ops[1].err)
		}
	}
	// An FPGA that has asked as often as it can may lack the message.
	host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
	dev.party().recv(1)
	op := host.postSend(pattern(1, 1))
	newWorld(host, dev, func(from, _ int, b []byte) []time.Duration {
		if h, _ := protocol.CloudFPGA.Parse(b); from == 0 && h.Type == dat {
			return nil
		}
		return onTime
	}).run(time.Minute)
	var te *handshake.TimeoutError
	if !errors.As(op.err, &te) || te.Silent || te.Retransmissions != 3 {
		t.Error(op.err)
	}
	// With a shorter deadline, silence proves nothing.
	cfg := hostTo(1, handshake.FPGAPeer(1))
	cfg.Timing.AckDeadline = time.Second
	b := newBench(t, cfg)
	op = b.postSend(pattern(1, 1))
	b.at(0).gets(clr, rInt, nil).at(time.Minute)
	if !errors.As(op.err, &te) || te.Silent {
		t.Error(op.err)
	}
}

// TestLateRequestIsNoAck: a continuation datagram is lost, and a copy of the SEND_REQUEST of the FPGA's previous
// message arrives while the host is waiting for the ACK.
func TestLateRequestIsNoAck(t *testing.T) {
	for _, late := range []time.Duration{ms, 10 * ms, 150 * ms, 300 * ms} {
		host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
		dev.party().send(pattern(1, 1))
		got := dev.party().recv(1000)
		host.postRecv(1)
		op := host.postSend(pattern(1000, 2))
		op.behind = host.recvs[0]
		newWorld(host, dev, func(from, n int, b []byte) []time.Duration {
			switch {
			case from == 1 && n == 0:
				return []time.Duration{0, late}
			case from == 0 && len(b) == 1416 && b[0] != 0x96:
				return nil
			}
			return onTime
		}).run(time.Minute)
		if !errors.Is(op.err, handshake.ErrPartial) || got().done {
			t.Errorf("late by %v: the send ended with %v; the FPGA has the message: %v", late, op.err, got().done)
		}
	}
}
