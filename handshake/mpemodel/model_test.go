package mpemodel

import (
	"errors"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestCallErrors(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name string
		err  error
		want error
	}{
		{"negative rank", r.Send(0, -1, nil, protocol.Int), ErrRank},
		{"rank 64", r.Recv(0, 64, 1, protocol.Int), ErrRank},
		{"longest receive and one more", r.Recv(0, 0, maxCount+1, protocol.Int), ErrCount},
		{"long receive", r.Recv(0, 0, 1<<32-1, protocol.Int), ErrCount},
		{"longest call", r.checkCall("send to", 0, maxCount), nil},
		{"first call", r.Recv(0, 0, 600_000, protocol.Int), nil},
		{"second call", r.Send(0, 0, nil, protocol.Int), ErrBusy},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, c.err, c.want)
		}
	}
	if !r.Busy() {
		t.Error("not busy")
	}
	for _, rank := range []int{-1, 64} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("New took rank %d", rank)
				}
			}()
			New(Config{Rank: rank})
		}()
	}
}

// TestFragmentsAreTheFPGAShape compares the queue's behavior with the Shape of package protocol, over three whole
// periods of the fragmentation.
func TestFragmentsAreTheFPGAShape(t *testing.T) {
	for _, split := range []bool{false, true} {
		shape := protocol.FPGAShape(!split)
		for words := range uint32(3 * 708) {
			r := &rig{Model: New(Config{Rank: 1, Peers: []int{0}, SplitTail: split}), t: t}
			r.send(0, modeltest.PatternWords(0, 1, int(words)))
			r.TakePackets()
			r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0))
			var all []byte
			total := shape.PayloadBytes(words)
			out := r.TakePackets()
			for i, p := range out {
				want := int(shape.PayloadAt(max(int64(len(all))-protocol.HeaderLen, 0), total))
				if i == 0 {
					want += protocol.HeaderLen
				}
				if len(p.Bytes) != want {
					t.Fatalf("%d words, datagram %d: %d bytes, want %d", words, i, len(p.Bytes), want)
				}
				all = append(all, p.Bytes...)
			}
			if len(all) != protocol.HeaderLen+int(total) || int64(len(out)) != shape.NumDatagrams(words) {
				t.Fatalf("%d words: %d bytes in %d datagrams", words, len(all), len(out))
			}
			want := append(modeltest.Header(protocol.Data, 1, 0, words),
				modeltest.EncodeWords(modeltest.PatternWords(0, 1, int(words)))...)
			if !slices.Equal(all[:len(want)], want) {
				t.Fatalf("%d words: the bytes differ", words)
			}
		}
	}
}

func TestPaddingBetweenDatagramsShiftsTheData(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 400)
	b := modeltest.Message(0, 1, words)
	all := slices.Concat(b...)
	// The first datagram ends in the middle of a line: 101 words.
	cutAt := protocol.HeaderLen + 101*protocol.WordLen
	r := begin(t, 400)
	r.in(0, all[:cutAt], all[cutAt:])
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(slices.Concat(words[:101], []uint32{0}, words[101:399]))
}

func TestFloatNeverMatchesInt(t *testing.T) {
	r := newRig(t)
	if err := r.Recv(0, 0, 1, protocol.Float); err != nil {
		t.Fatal(err)
	}
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut()
	request := modeltest.Header(protocol.SendRequest, 0, 1, 0)
	request[16] = byte(protocol.SendFloat)
	clear := modeltest.Header(protocol.ClearToSend, 1, 0, 0)
	clear[16] = byte(protocol.RecvFloat)
	r.in(0, request)
	r.wantOut(clear)
}

func TestShellDropsWhatItsTableLacks(t *testing.T) {
	r := newRig(t)
	r.recv(0, 1)
	for _, from := range []int{-1, 1, 3} {
		r.in(from, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	}
	r.in(0, nil)
	r.wantOut()
	if r.Dropped() != 4 {
		t.Errorf("%d dropped, want 4", r.Dropped())
	}
	r = newRig(t)
	r.send(3, []uint32{1})
	r.after(5000 * ms)
	r.wantOut()
	r.wantState("WAIT4CLEAR")
}

func TestHeaderCheck(t *testing.T) {
	for name, c := range map[string]struct {
		change   func(b []byte)
		deferred bool
	}{
		"as is":         {func([]byte) {}, true},
		"start mark":    {func(b []byte) { b[3] = 0 }, false},
		"tag":           {func(b []byte) { b[18] = 1 }, false},
		"reserved":      {func(b []byte) { b[27] = 1 }, false},
		"end mark":      {func(b []byte) { b[28] = 0 }, false},
		"rank 64":       {func(b []byte) { b[8] = 64 }, false},
		"unknown call":  {func(b []byte) { b[16] = 77 }, true},
		"unknown type":  {func(b []byte) { b[17] = 0 }, true},
		"no SEND_INT":   {func(b []byte) { b[16] = byte(protocol.Barrier) }, true},
		"ERROR":         {func(b []byte) { b[17] = byte(protocol.Error) }, true},
		"size in it":    {func(b []byte) { b[12] = 1 }, true},
		"other address": {func(b []byte) { b[4] = 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.send(0, []uint32{1})
			b := modeltest.Header(protocol.SendRequest, 2, 1, 0)
			c.change(b)
			r.in(2, b)
			if _, deferred := r.cache.lookup(2); deferred != c.deferred {
				t.Errorf("deferred %v, want %v", deferred, c.deferred)
			}
			r.wantState("WAIT4CLEAR")
		})
	}
}

// A CLEAR_TO_SEND that was deferred because it seemed to come from elsewhere is found when the MPE searches for it
// after the timeout.
func TestDeferredClearToSendIsFoundAfterTheTimeout(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1, 2})
	r.in(2, modeltest.Header(protocol.ClearToSend, 0, 1, 0))
	r.after(112 * ms)
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0))
	r.after(1 * ms)
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0), modeltest.Message(1, 0, []uint32{1, 2})[0])
}

func TestIdleDatagramsWaitInTheFIFO(t *testing.T) {
	r := newRig(t)
	r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut()
	r.recv(0, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	r.in(0, modeltest.Message(0, 1, []uint32{1})[0])
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.recv(2, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0))
}

func newBoundedRig(t *testing.T) *rig {
	return &rig{Model: New(Config{Rank: 1, Peers: []int{0, 2}, FIFOBytes: 2048}), t: t}
}

// The deployed FIFO fits one large datagram and a little more; the shell holds back one more and drops the others.
func TestBoundedFIFO(t *testing.T) {
	r := newBoundedRig(t)
	big := make([]byte, protocol.MaxDatagram)
	r.in(2, big, big, big)
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	if r.Dropped() != 2 {
		t.Errorf("%d dropped, want 2", r.Dropped())
	}
	if n := len(r.Model.in.words); n != 128 {
		t.Errorf("%d words in the FIFO, want 128", n)
	}
	r.recv(0, 1000)
	r.wantState("WAIT4REQ")
	// A message larger than the FIFO passes while the MPE reads.
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.in(0, modeltest.Message(0, 1, modeltest.PatternWords(0, 0, 1000))...)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0), modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(modeltest.PatternWords(0, 0, 1000))
}

// Datagrams of one word leave their sources in the FIFO, until it is full: the FPGA is deaf.
func TestEatenDatagramsFillTheFIFOOfSources(t *testing.T) {
	r := newBoundedRig(t)
	r.recv(0, 1)
	for range 31 {
		r.in(0, make([]byte, 8), make([]byte, 8))
	}
	r.wantState("WAIT4REQ")
	r.wantWedged("")
	r.in(0, make([]byte, 8), make([]byte, 8))
	r.wantWedged("source ranks is full")
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut()
	r.wantState("WAIT4REQ")
}

// A datagram much longer than its message fills the FIFO after the MPE.
func TestEndlessDatagramBlocksTheReceiver(t *testing.T) {
	r := begin(t, 2)
	r.in(0, append(modeltest.Message(0, 1, []uint32{1, 2})[0], make([]byte, 16*(dataFIFOWords+1))...))
	r.wantOut()
	r.wantState("RECV_DATA_RD")
	r.wantWedged("data FIFO is full")
}

// If the data FIFO is exactly full after a message, the next receive has no timeout, because the mark of failure would
// not fit.
func TestFullDataFIFOStopsTheTimeout(t *testing.T) {
	r := begin(t, 2)
	r.in(0, append(modeltest.Message(0, 1, []uint32{1, 2})[0], make([]byte, 8+wordLen*dataFIFOWords)...))
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.recv(0, 2)
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	r.after(5000 * ms)
	r.wantOut()
	r.wantWedged("no timeout is left")
	// The DATA itself makes the dequeuer continue.
	r.in(0, modeltest.Message(0, 1, []uint32{3, 4})[0])
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer([]uint32{0, 0})
}
