package mpemodel

import (
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestReplayCoversAllCaptures checks that no capture is left out.
func TestReplayCoversAllCaptures(t *testing.T) {
	var names []string
	for _, r := range replays() {
		names = append(names, r.name)
	}
	modeltest.CheckCoverage(t, names)
}

// TestReplay replaces the FPGA in every capture by the model: it must send the recorded packets, byte for byte, in
// order and in time, and the program must get the recorded words.
func TestReplay(t *testing.T) {
	for _, r := range replays() {
		t.Run(r.name, func(t *testing.T) {
			packets := modeltest.ReadCapture(t, r.name)
			if len(packets) == 0 {
				t.Fatal("the capture is empty")
			}
			if r.programs == nil && r.unplayable == "" {
				wantNoFPGA(t, packets)
			}
			if r.clock != 0 {
				for i := range packets {
					packets[i].At = time.Duration(float64(packets[i].At) * r.clock)
				}
			}
			for rank, calls := range r.programs {
				p := r.play(t, rank, calls, packets)
				if p.m.Busy() != r.busy {
					t.Errorf("rank %d: busy %v at the end, state %s", rank, p.m.Busy(), p.m.State())
				}
				if p.next != len(calls) {
					t.Errorf("rank %d: made %d calls of %d", rank, p.next, len(calls))
				}
			}
		})
	}
}

// wantNoFPGA checks that no rank pads DATA or sends longer datagrams than a CPU: the capture has no part for the model.
func wantNoFPGA(t *testing.T, packets []modeltest.RecordedPacket) {
	t.Helper()
	for i, p := range packets {
		h, err := protocol.CloudFPGA.Decode(p.Bytes)
		if err != nil {
			continue
		}
		cpu := min(protocol.HeaderLen+int(h.Size)*protocol.WordLen, protocol.MaxDatagram)
		if len(p.Bytes) != cpu {
			t.Errorf("packet %d (%v) has %d bytes, a CPU sends %d: which rank is the FPGA?", i, h, len(p.Bytes), cpu)
		}
	}
}

// player runs a program on a model.
type player struct {
	t     *testing.T
	m     *Model
	calls []mpiCall
	next  int
}

// proceed makes the calls that are possible now.
func (p *player) proceed(now time.Duration) {
	p.t.Helper()
	for !p.m.Busy() {
		if p.next > 0 && p.calls[p.next-1].recv {
			words, overrun, done := p.m.Result()
			if d := modeltest.Diff(words, p.calls[p.next-1].words); d != "" || overrun || !done {
				p.t.Errorf("call %d: done %v, overrun %v; %s", p.next-1, done, overrun, d)
			}
		}
		if p.next == len(p.calls) {
			return
		}
		c := p.calls[p.next]
		p.next++
		var err error
		if c.recv {
			err = p.m.Recv(now, c.peer, uint32(len(c.words)), protocol.Int)
		} else {
			err = p.m.Send(now, c.peer, c.words, protocol.Int)
		}
		if err != nil {
			p.t.Fatal(err)
		}
		if p.m.Busy() {
			return
		}
	}
}

func (r replay) play(t *testing.T, rank int, calls []mpiCall, packets []modeltest.RecordedPacket) *player {
	t.Helper()
	p := &player{t: t, calls: calls, m: New(Config{
		Rank:      rank,
		Peers:     slices.DeleteFunc([]int{0, 1, 2}, func(x int) bool { return x == rank }),
		SplitTail: r.split,
	})}
	if r.from == 0 {
		p.proceed(0)
	}
	var want []modeltest.RecordedPacket
	for i, rec := range packets {
		if p.next == 0 && rec.At >= r.from {
			p.proceed(r.from)
		}
		p.m.Tick(rec.At)
		if rec.From == rank {
			want = append(want, rec)
		}
		if rec.To == rank && !slices.Contains(r.undelivered, i) {
			p.m.Datagram(rec.At, rec.From, rec.Bytes)
			if r.from <= rec.At {
				p.proceed(rec.At)
			}
		}
	}
	r.compare(t, rank, p.m.TakePackets(), want)
	return p
}

func (r replay) compare(t *testing.T, rank int, got []Packet, want []modeltest.RecordedPacket) {
	t.Helper()
	slack := r.slack
	if slack == 0 {
		slack = 5 * ms
	}
	for _, i := range slices.Backward(r.unrecorded) {
		got = slices.Delete(got, i, i+1)
	}
	modeltest.CompareCapture(t, rank, sent(got), want, slack)
}

// TestWhichDatagramWasDropped shows the reasoning about loss_mid_to_fpga_corrupts: all three datagrams of the first
// DATA were recorded, and no packet shows which one the FPGA missed. Only a missing continuation corrupts data, as in
// the capture's name, and "mid" in the name is the second of the three. If the third one were missing, the next message
// would have been corrupted as well.
func TestWhichDatagramWasDropped(t *testing.T) {
	first, second := modeltest.PatternWords(0, 0, 1000), modeltest.PatternWords(1, 0, 1000)
	header := modeltest.DecodeWords(modeltest.Header(protocol.Data, 0, 1, 1000))
	for _, c := range []struct {
		dropped int
		buffers [2][]uint32
	}{
		{2, [2][]uint32{first, second}},
		{3, [2][]uint32{slices.Concat(first[:346], first[700:], header, first[:346]), second}},
		{4, [2][]uint32{
			slices.Concat(first[:700], header, first[:292]),
			slices.Concat(first[292:346], second[:946]),
		}},
	} {
		r := replay{undelivered: []int{c.dropped}}
		calls := []mpiCall{{true, 0, c.buffers[0]}, {true, 0, c.buffers[1]}}
		p := r.play(t, 1, calls, modeltest.ReadCapture(t, "loss_mid_to_fpga_corrupts"))
		if p.m.Busy() || p.next != 2 {
			t.Errorf("dropped %d: %d calls made, state %s", c.dropped, p.next, p.m.State())
		}
	}
}
