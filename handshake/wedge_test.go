package handshake_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var wedges = flag.Int("wedges", 5000,
	"how many random sequences of packets to give to a stand-in and to the model of the MPE")

// twins is a stand-in and a model of the MPE that get the same packets and calls.
type twins struct {
	rng     *rand.Rand
	now     time.Duration
	standIn *rank
	model   *mpemodel.Model
	log     []string
	count   int // words of the call in progress
	call    *simOp
	sends   bool
	wire    [][]byte // datagrams in transit to both
}

func newTwins(rng *rand.Rand) *twins {
	return &twins{
		rng: rng,
		standIn: newRank(handshake.Config{
			Local: 1, Remote: 0, Shape: protocol.FPGAShape(false), Timing: handshake.DeployedFPGA(1),
			Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
		}),
		model: mpemodel.New(mpemodel.Config{Rank: 1, Peers: []int{0}}),
	}
}

// step gives both the same time, call or datagram.
func (w *twins) step() {
	_, _, arriving := w.standIn.pair.ExpectedPayload()
	switch {
	case arriving: // a stand-in aborts a message after a shorter pause than an FPGA
		w.now += 20 * time.Microsecond
	case w.rng.IntN(40) == 0:
		w.now += 5 * time.Second
	default:
		w.now += []time.Duration{20 * time.Microsecond, 20 * time.Microsecond, ms, 30 * ms, 120 * ms,
			1300 * ms}[w.rng.IntN(6)]
	}
	for {
		at, ok := w.standIn.pair.Deadline()
		if !ok || at > w.now {
			break
		}
		w.standIn.tick(at)
	}
	w.model.Tick(w.now)
	switch {
	case len(w.wire) > 0 && w.rng.IntN(30) > 0:
		b := w.wire[0]
		w.wire = w.wire[1:]
		if w.rng.IntN(60) > 0 { // otherwise it is lost
			w.arrives(b)
		}
	case !w.model.Busy() && w.rng.IntN(2) == 0:
		w.calls()
	default:
		w.wire = append(w.wire, w.packets()...)
	}
	w.model.TakePackets()
	w.standIn.wire = nil
}

// arrives passes a datagram to both.
func (w *twins) arrives(b []byte) {
	w.log = append(w.log, fmt.Sprintf("%12v %s", w.now, describe(b)))
	w.standIn.datagram(w.now, b)
	w.model.Datagram(w.now, 0, b)
}

// calls starts the next call of the program.
func (w *twins) calls() {
	w.count = []int{1, 2, 3, 8, 346, 347, 349, 700, 1055}[w.rng.IntN(9)]
	w.sends = w.rng.IntN(2) == 0
	var err error
	if w.sends {
		w.call = w.standIn.postSend(pattern(w.count, 7))
		err = w.model.Send(w.now, 0, make([]uint32, w.count), protocol.Int)
	} else {
		w.call = w.standIn.postRecv(w.count)
		err = w.model.Recv(w.now, 0, uint32(w.count), protocol.Int)
	}
	if err != nil {
		panic(err)
	}
	w.log = append(w.log, fmt.Sprintf("%12v sends %v %d words", w.now, w.sends, w.count))
	w.standIn.start(w.now)
}

// packets returns the next datagrams from a peer. Most of them are packets for which the MPE is waiting; the rest are
// arbitrary.
func (w *twins) packets() [][]byte {
	control := func(t protocol.Type, c protocol.Call) [][]byte {
		if c == sInt && w.rng.IntN(20) == 0 {
			c = sFlt
		}
		return [][]byte{protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Src: 0, Call: c, Type: t})}
	}
	data := func(words int) [][]byte {
		h := protocol.Header{Dst: 1, Src: 0, Size: uint32(words), Call: protocol.SendInt, Type: protocol.Data}
		return cut(protocol.CloudFPGA, h, pattern(words, w.rng.Uint32()), protocol.CPUShape())
	}
	if w.rng.IntN(8) > 0 {
		switch {
		case !w.model.Busy():
			return control(sreq, sInt)
		case strings.HasPrefix(w.model.State(), "WAIT4REQ"):
			return control(sreq, sInt)
		case strings.HasPrefix(w.model.State(), "WAIT4CLEAR"):
			return control(clr, rInt)
		case strings.HasPrefix(w.model.State(), "WAIT4ACK"):
			return control(ack, rInt)
		default:
			return data(w.count)
		}
	}
	switch w.rng.IntN(8) {
	case 0:
		return control(sreq, sInt)
	case 1:
		return control(clr, rInt)
	case 2:
		return control(ack, rInt)
	case 3:
		return data(0)
	case 4:
		return data(w.count)
	case 5:
		return data(1)
	case 6:
		return [][]byte{pattern(1+w.rng.IntN(7), 9)}
	default:
		b := data(w.count)
		return b[len(b)-1:]
	}
}

// harmed describes how the FPGA was harmed, or returns "": it waits forever, or its program has received other words
// than a stand-in's.
func (w *twins) harmed() string {
	why, wedged := w.model.Wedged()
	if wedged && !strings.Contains(why, "no timeout is left") {
		return why
	}
	words, overrun, done := w.model.Result()
	switch {
	case overrun && w.call.done && !errors.Is(w.call.err, handshake.ErrTruncated):
		return "its buffer was overrun"
	case overrun: // the stand-in's receive fails if the rest arrives
		return ""
	case w.call == nil || w.call.done == done:
	default:
		return fmt.Sprintf("its call is over: %v; that of the stand-in: %v", done, w.call.done)
	}
	if done && w.call != nil && !w.sends && w.call.err == nil {
		var got []byte
		for _, x := range words {
			got = binary.LittleEndian.AppendUint32(got, x)
		}
		if !bytes.Equal(got, w.call.buf) {
			return "its program has wrong words"
		}
	}
	return ""
}

// TestStandInSeesWhatWedgesAnFPGA: whenever packets harm the model of the MPE, a stand-in notes it.
func TestStandInSeesWhatWedgesAnFPGA(t *testing.T) {
	t.Parallel()
	noted, harmed := 0, 0
	for seed := range uint64(*wedges) {
		w := newTwins(rand.New(rand.NewPCG(seed, 3)))
		for range 200 {
			w.step()
			if w.standIn.notes[handshake.WouldWedge] > 0 {
				noted++
				break
			}
			if why := w.harmed(); why != "" {
				harmed++
				t.Errorf("sequence %d: the stand-in has not noted that a real FPGA is harmed: %s\n%s", seed, why,
					strings.Join(w.log[max(0, len(w.log)-12):], "\n"))
				break
			}
		}
		if harmed > 3 {
			return
		}
	}
	if noted == 0 || noted == *wedges {
		t.Errorf("%d of %d sequences would have wedged an FPGA: the test shows nothing", noted, *wedges)
	}
	t.Logf("%d of %d sequences would have wedged an FPGA", noted, *wedges)
}

// TestStandInOfAHost: no packets that a host sends wedge an FPGA if the network has no faults, whatever both programs
// do and however late.
func TestStandInOfAHost(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*programs) {
		rng := rand.New(rand.NewPCG(seed, 4))
		host, standIn := newRank(hostTo(1, handshake.FPGAPeer(1))), newTwins(rng).standIn
		var at, there time.Duration
		var ops []*simOp
		for i := range 2 + rng.IntN(7) {
			pauses := []time.Duration{0, 0, 0, ms, 40 * ms, 120 * ms, 1300 * ms, 5 * time.Second}
			at += pauses[rng.IntN(len(pauses))]
			there += pauses[rng.IntN(len(pauses))]
			n := []int{1, 2, 3, 300, 346, 347, 348, 349, 354, 700, 701, 1055, 2000}[rng.IntN(13)]
			from, to := host, standIn
			if rng.IntN(2) == 0 {
				from, to = standIn, host
			}
			s, r := from.postSend(pattern(n, uint32(i))), to.postRecv(n)
			ops = append(ops, s, r)
			for _, op := range []*simOp{s, r} {
				if op.after = at; op == s && from == standIn || op == r && to == standIn {
					op.after = there
				}
			}
		}
		w := newWorld(host, standIn, nil)
		w.run(10 * time.Minute)
		for i, op := range ops {
			if !op.done || op.err != nil {
				t.Errorf("program %d: operation %d: done %v, %v\n%v", seed, i, op.done, op.err, w.log)
			}
		}
		if n := standIn.notes[handshake.WouldWedge]; n > 0 {
			t.Errorf("program %d: the stand-in has noted %d packets that wedge an FPGA\n%v", seed, n, w.log)
		}
		if t.Failed() {
			return
		}
	}
}

// TestBrokenOffAtAStandIn: the rest of a message never arrives.
func TestBrokenOffAtAStandIn(t *testing.T) {
	standIn := newTwins(rand.New(rand.NewPCG(1, 1))).standIn
	host := newRank(hostTo(1, handshake.FPGAPeer(1)))
	host.postSend(pattern(2000, 1))
	standIn.postRecv(2000)
	w := newWorld(host, standIn, func(from, nth int, _ []byte) []time.Duration {
		if from == 0 && nth >= 3 {
			return nil
		}
		return onTime
	})
	w.run(time.Minute)
	if standIn.notes[handshake.WouldWedge] == 0 {
		t.Errorf("the stand-in has noted nothing\n%v", w.log)
	}
}

// TestAnswerToACancelledSend: the kernel of a stand-in may end, which cancels its send. The host that answers it later
// has made no mistake; an answer without a request is one.
func TestAnswerToACancelledSend(t *testing.T) {
	clear := protocol.CloudFPGA.Append(nil,
		protocol.Header{Src: 0, Dst: 1, Type: protocol.ClearToSend, Call: protocol.RecvInt})
	for _, cancelled := range []bool{true, false} {
		standIn := newTwins(rand.New(rand.NewPCG(1, 1))).standIn
		if cancelled {
			standIn.postSend(pattern(2, 1))
			standIn.start(0)
			if _, ok := standIn.pair.CancelSend(ms, 0, nil); !ok {
				t.Fatal("the send cannot be cancelled")
			}
		}
		standIn.datagram(2*ms, clear)
		if noted := standIn.notes[handshake.WouldWedge] > 0; noted == cancelled {
			t.Errorf("cancelled %v: noted %v", cancelled, noted)
		}
	}
}
