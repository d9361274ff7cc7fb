package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// places derives two recordings from one. The first is as recorded by the host that sent the first packet, with the
// original times; the second is as recorded by the other host.
type places struct {
	c *capturetest.Capture
	// offset is the time by which the second clock is ahead. drift is its rate difference.
	offset time.Duration
	drift  float64
	// delay is the minimum delay of packets. jitter is the maximum additional delay.
	delay, jitter time.Duration
	// notHere lists the packets missing from the first recording, and notThere the packets missing from the second.
	notHere, notThere []int
	anonymous         bool // IP packets have no identifications
}

// Offsets of the identification and the source of an IPv4 packet in a frame.
const ipID, ipSrc = 14 + 4, 14 + 12

func (p places) split(tb testing.TB) (here, there *capturetest.Capture) {
	tb.Helper()
	here, there = capturetest.New(capturetest.Ethernet), capturetest.New(capturetest.Ethernet)
	random := rand.New(rand.NewPCG(1, 2))
	source, start := p.c.Packets[0].Data[ipSrc:ipSrc+4], p.c.Packets[0].Time
	for i, packet := range p.c.Packets {
		if p.anonymous {
			packet.Data = bytes.Clone(packet.Data)
			clear(packet.Data[ipID : ipID+2])
		}
		delay := p.delay
		if p.jitter > 0 {
			delay += time.Duration(random.Int64N(int64(p.jitter)))
		}
		if !bytes.Equal(packet.Data[ipSrc:ipSrc+4], source) {
			delay = -delay
		}
		if !slices.Contains(p.notHere, i+1) {
			here.Packets = append(here.Packets, packet)
		}
		if !slices.Contains(p.notThere, i+1) {
			at := packet.Time.Add(delay)
			packet.Time = at.Add(p.offset + time.Duration(float64(at.Sub(start))*p.drift))
			there.Packets = append(there.Packets, packet)
		}
	}
	for _, c := range []*capturetest.Capture{here, there} {
		slices.SortStableFunc(c.Packets, func(a, b capturetest.Packet) int { return a.Time.Compare(b.Time) })
	}
	return here, there
}

// files writes recordings to a folder.
func files(tb testing.TB, recordings map[string][]byte) (dir string) {
	tb.Helper()
	dir = tb.TempDir()
	for name, b := range recordings {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

// joined joins recordings and analyzes the result.
func joined(tb testing.TB, paths ...string) *capture.Report {
	tb.Helper()
	src, err := capture.Options{}.OpenFiles(context.Background(), paths)
	if err != nil {
		tb.Fatal(err)
	}
	defer src.Close()
	a := capture.NewAnalysis("test", capture.AnalysisOptions{KeepMessages: 1000})
	if err := a.Analyze(src); err != nil {
		tb.Fatal(err)
	}
	return a.Report()
}

// join joins the two recordings and analyzes the result.
func (p places) join(tb testing.TB) *capture.Report {
	tb.Helper()
	here, there := p.split(tb)
	nano := capturetest.Format{Nano: true}
	dir := files(tb, map[string][]byte{"here.pcap": here.Pcap(nano), "there.pcap": there.Pcap(nano)})
	return joined(tb, filepath.Join(dir, "here.pcap"), filepath.Join(dir, "there.pcap"))
}

// near checks that two messages are equal, except that their phases may differ by up to 50 µs.
func near(t *testing.T, got, want capture.Message) {
	t.Helper()
	for _, phase := range []struct{ got, want **float64 }{
		{&got.Phases.RequestToClear, &want.Phases.RequestToClear}, {&got.Phases.ClearToData, &want.Phases.ClearToData},
		{&got.Phases.DataToAck, &want.Phases.DataToAck}, {&got.Phases.Total, &want.Phases.Total},
	} {
		g, w := *phase.got, *phase.want
		if (g == nil) != (w == nil) || g != nil && math.Abs(*g-*w) > 50e-6 {
			t.Errorf("message %d: phases %+v, want %+v", got.ID, got.Phases, want.Phases)
		}
		*phase.got, *phase.want = nil, nil
	}
	if math.Abs(got.Start-want.Start) > 50e-6 {
		t.Errorf("message %d starts at %v, want %v", got.ID, got.Start, want.Start)
	}
	got.Start = want.Start
	if !reflect.DeepEqual(got, want) {
		t.Errorf("message %+v, want %+v", got, want)
	}
}

// deployedCaptures returns complete recordings of deployed nodes.
func deployedCaptures(t *testing.T) map[string]*capturetest.Capture {
	t.Helper()
	paths, err := filepath.Glob("testdata/captures/*.pcap")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	all := map[string]*capturetest.Capture{}
	for _, path := range paths {
		c, err := capturetest.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".pcap")] = c
	}
	return all
}

// TestJoinClocks: recordings made at both ends of an exchange, with clocks that differ by 300 ms, show the same
// messages, findings and times as recordings with equal clocks, and as a single recording. This holds with and without
// IP identifications.
func TestJoinClocks(t *testing.T) {
	for name, c := range deployedCaptures(t) {
		for _, anonymous := range []bool{false, true} {
			for _, offset := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond} {
				p := places{c: c, delay: 400, jitter: 300, anonymous: anonymous}
				want := p.join(t)
				p.offset = offset
				got := p.join(t)
				single := joined(t, "testdata/captures/"+name+".pcap")
				if len(got.Messages) != len(want.Messages) || len(got.Messages) != len(single.Messages) {
					t.Fatalf("%s, %v: %d messages, want %d and %d",
						name, offset, len(got.Messages), len(want.Messages), len(single.Messages))
				}
				for i := range got.Messages {
					near(t, got.Messages[i], want.Messages[i])
					near(t, got.Messages[i], single.Messages[i])
				}
				if len(got.Findings) != len(want.Findings) || len(got.Findings) != len(single.Findings) {
					t.Errorf("%s, %v: %d findings, want %d and %d",
						name, offset, len(got.Findings), len(want.Findings), len(single.Findings))
					continue
				}
				for i, f := range got.Findings {
					w, s := want.Findings[i], single.Findings[i]
					if f.Kind != w.Kind || f.Text != w.Text || !slices.Equal(f.Packets, w.Packets) ||
						math.Abs(f.Time-w.Time) > 50e-6 {
						t.Errorf("%s, %v: %+v, want %+v", name, offset, f, w)
					}
					if f.Kind != s.Kind || !slices.Equal(f.Packets, s.Packets) {
						t.Errorf("%s, %v: %+v, want %+v of a single recording", name, offset, f, s)
					}
				}
				v := got.Joined.Vantages
				if len(v) != 2 || got.Joined.Common != int64(len(c.Packets)) || v[0].Only+v[1].Only != 0 ||
					v[1].Clock == nil ||
					math.Abs(v[1].Clock.Offset-offset.Seconds()) > 50e-6 {
					t.Errorf("%s, %v: %+v", name, offset, got.Joined)
				}
			}
		}
	}
}

var (
	host0 = netipAddr("10.0.0.1:2718")
	host1 = netipAddr("10.0.0.2:2718")
)

// exchange records messages from rank 0 to rank 1 and back, 1 to 2 ms apart. Each message has five packets; its DATA
// has two datagrams.
func exchange(messages int) *capturetest.Capture {
	c := capturetest.New(capturetest.Ethernet)
	at := time.Unix(1700000000, 0)
	for i := range messages {
		m := capturetest.Message{
			Src: 0, Dst: 1, From: host0, To: host1, Words: uint32(698 + i%3), Shape: protocol.CPUShape(),
		}
		if i%2 == 1 {
			m.Src, m.Dst, m.From, m.To = 1, 0, host1, host0
		}
		c.AddMessage(at, m)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for i := range c.Packets {
		c.Packets[i].Time = at
		binary.BigEndian.PutUint16(c.Packets[i].Data[ipID:], uint16(i+1))
		at = at.Add(ms + time.Duration(random.Int64N(int64(ms))))
	}
	return c
}

// send appends a packet of a message from rank 0 to rank 1.
func send(c *capturetest.Capture, at time.Duration, typ protocol.Type, words uint32, payload ...byte) {
	h := protocol.Header{Src: 0, Dst: 1, Call: protocol.SendInt, Type: typ, Size: words}
	from, to := host0, host1
	if typ == protocol.ClearToSend || typ == protocol.Ack {
		h.Src, h.Dst, h.Call, from, to = 1, 0, protocol.RecvInt, host1, host0
	}
	c.AddUDP(time.Unix(1700000001, 0).Add(at), from, to, append(protocol.CloudFPGA.Append(nil, h), payload...))
}

// TestJoinLost: a packet recorded only at its sender was lost on the way. If several packets have the same bytes, the
// finding names the right one.
func TestJoinLost(t *testing.T) {
	const before = 10 * 5 // packets of the exchange
	sr, cts, data, ack := protocol.SendRequest, protocol.ClearToSend, protocol.Data, protocol.Ack
	type packet struct {
		at   time.Duration
		typ  protocol.Type
		lost bool
	}
	for name, tt := range map[string]struct {
		packets  []packet
		want     string
		complete bool
	}{
		"first request": {
			[]packet{{0, sr, true}, {100 * ms, sr, false}, {101 * ms, cts, false}, {102 * ms, data, false},
				{103 * ms, ack, false}},
			"SEND_REQUEST (packet 51) was lost between here.pcap and there.pcap; 1 packet was retransmitted", true,
		},
		"second request": { // with a late answer
			[]packet{{0, sr, false}, {100 * ms, sr, true}, {101 * ms, cts, false}, {102 * ms, data, false},
				{103 * ms, ack, false}},
			"SEND_REQUEST (packet 52) was lost between here.pcap and there.pcap; 1 packet was retransmitted", true,
		},
		"clear": {
			[]packet{{0, sr, false}, {1 * ms, cts, true}, {100 * ms, sr, false}, {101 * ms, cts, false},
				{102 * ms, data, false}, {103 * ms, ack, false}},
			"CLEAR_TO_SEND (packet 52) was lost between there.pcap and here.pcap; 2 packets were retransmitted", true,
		},
		"data": {
			[]packet{{0, sr, false}, {1 * ms, cts, false}, {2 * ms, data, true}, {102 * ms, data, true},
				{302 * ms, data, false}, {303 * ms, ack, false}},
			"DATA (packets 53, 54) were lost between here.pcap and there.pcap; 2 packets were retransmitted", true,
		},
		"ack": {
			[]packet{{0, sr, false}, {1 * ms, cts, false}, {2 * ms, data, false}, {3 * ms, ack, true},
				{102 * ms, data, false},
				{103 * ms, ack, false}},
			"ACK (packet 54) was lost between there.pcap and here.pcap; 2 packets were retransmitted", true,
		},
		"all": {
			[]packet{{0, sr, false}, {1 * ms, cts, true}, {100 * ms, sr, true}, {200 * ms, sr, false},
				{201 * ms, cts, true}},
			"CLEAR_TO_SEND (packets 52, 55) were lost between there.pcap and here.pcap; SEND_REQUEST (packet 53) was " +
				"lost between here.pcap and there.pcap; " +
				"3 packets were retransmitted", false,
		},
	} {
		for _, offset := range []time.Duration{0, 300 * ms} {
			p := places{c: exchange(10), delay: 40 * time.Microsecond, jitter: 10 * time.Microsecond, offset: offset}
			// Both recordings continue after the lost packet.
			for i, packet := range tt.packets {
				send(p.c, packet.at, packet.typ, 1, map[bool][]byte{true: {1, 2, 3, 4}}[packet.typ == data]...)
				switch {
				case !packet.lost:
				case packet.typ == cts || packet.typ == ack:
					p.notHere = append(p.notHere, before+i+1)
				default:
					p.notThere = append(p.notThere, before+i+1)
				}
			}
			p.c.AddMessage(time.Unix(1700000005, 0), capturetest.Message{
				Src: 2, Dst: 3, Words: 1, Shape: protocol.CPUShape(),
				From: netip.AddrPortFrom(host0.Addr(), 2720), To: netip.AddrPortFrom(host1.Addr(), 2721),
			})
			r := p.join(t)
			i := slices.IndexFunc(r.Findings, func(f capture.Finding) bool { return f.Kind == capture.LostPacket })
			if i < 0 || !strings.HasSuffix(r.Findings[i].Text, "message 11 from rank 0 to rank 1: "+tt.want) {
				t.Errorf("%s, %v: %+v, want %q", name, offset, r.Findings, tt.want)
			}
			if m := r.Messages[10]; m.Complete != tt.complete {
				t.Errorf("%s: %+v", name, m)
			}
			lost := int64(len(p.notHere) + len(p.notThere))
			if len(r.Joined.Missing) == 0 || r.Joined.Packets-r.Joined.Common != lost {
				t.Errorf("%s: %+v", name, r.Joined)
			}
		}
	}
}

// TestJoinEnd: a packet that is missing after the last packet of a recording was lost if, according to the file, the
// recording ended later.
func TestJoinEnd(t *testing.T) {
	p := places{c: exchange(10), delay: 40 * time.Microsecond, offset: 300 * ms, notThere: []int{50}} // an ACK
	here, there := p.split(t)
	end := there.Packets[48].Time.Add(2 * time.Second)
	dir := files(t, map[string][]byte{
		"here": here.Pcap(capturetest.Format{Nano: true}), "there": ended(t, there, 0, end),
		"short": ended(t, there, 0, time.Time{}),
	})
	const want = "message 10 from rank 1 to rank 0: ACK (packet 50) was lost between here and there"
	r := joined(t, filepath.Join(dir, "here"), filepath.Join(dir, "there"))
	if len(r.Findings) != 1 || r.Findings[0].Text != want {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
	if r = joined(t, filepath.Join(dir, "here"), filepath.Join(dir, "short")); len(r.Findings) > 0 {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
}

// after analyzes packets of a message from rank 0 to rank 1. An exchange precedes them, and an exchange between another
// pair follows.
func after(t *testing.T, packets []sentPacket) *capture.Report {
	t.Helper()
	p := places{c: exchange(10), delay: 3 * time.Microsecond, offset: 300 * ms}
	for _, packet := range packets {
		send(p.c, packet.at, packet.typ, 1)
		n := len(p.c.Packets)
		binary.BigEndian.PutUint16(p.c.Packets[n-1].Data[ipID:], uint16(n))
		switch {
		case !packet.lost:
		case packet.typ == protocol.ClearToSend || packet.typ == protocol.Ack:
			p.notHere = append(p.notHere, n)
		default:
			p.notThere = append(p.notThere, n)
		}
	}
	p.c.AddMessage(time.Unix(1700000009, 0), capturetest.Message{
		Src: 2, Dst: 3, Words: 1, Shape: protocol.CPUShape(),
		From: netip.AddrPortFrom(host0.Addr(), 2720), To: netip.AddrPortFrom(host1.Addr(), 2721),
	})
	return p.join(t)
}

type sentPacket struct {
	at   time.Duration
	typ  protocol.Type
	lost bool
}

// TestJoinWaits: two recordings together show whether an expected packet was lost or never sent.
func TestJoinWaits(t *testing.T) {
	sr, cts := protocol.SendRequest, protocol.ClearToSend
	for want, packets := range map[string][]sentPacket{
		"SEND_REQUEST arrived (packet 52, in there.pcap), and no answer was sent: rank 1 has not posted": {
			{0, sr, false}, {200 * ms, sr, false},
		},
		"for CLEAR_TO_SEND from rank 1: no SEND_REQUEST arrived: SEND_REQUEST (packets 51, 52) were lost": {
			{0, sr, true}, {200 * ms, sr, true},
		},
		"for DATA from rank 0: CLEAR_TO_SEND (packet 52) was lost between there.pcap and here.pcap": {
			{0, sr, false}, {200 * ms, cts, true},
		},
	} {
		r := after(t, packets)
		if last := r.Findings[len(r.Findings)-1]; !strings.Contains(last.Text, want) {
			t.Errorf("%s, want %q", last.Text, want)
		}
	}
	// A repeated packet is a retransmission although it follows soon enough to be a copy.
	r := after(t, []sentPacket{{0, sr, false}, {20 * ms, sr, false}, {21 * ms, cts, false}})
	if r.Messages[10].Retransmissions != 1 || strings.Contains(fmt.Sprint(r.Findings), "arrived twice") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestJoinDropped: if a recorder reports dropped packets, packets missing from its recording are not reported as lost.
func TestJoinDropped(t *testing.T) {
	here, there := places{c: exchange(10), delay: 40 * time.Microsecond, offset: 300 * ms, notThere: []int{50}}.split(t)
	dir := files(t, map[string][]byte{
		"here": here.Pcap(capturetest.Format{Nano: true}), "there": ended(t, there, 1,
			there.Packets[48].Time.Add(time.Second)),
	})
	r := joined(t, filepath.Join(dir, "here"), filepath.Join(dir, "there"))
	if len(r.Findings) > 0 || r.Joined.Vantages[1].Dropped != 1 {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
}

// ended returns a recording as a file that contains its end time and the number of lost packets.
func ended(t *testing.T, c *capturetest.Capture, lost uint64, end time.Time) []byte {
	t.Helper()
	var file bytes.Buffer
	w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
	src, err := capture.Options{}.NewReader(bytes.NewReader(c.Pcap(capturetest.Format{Nano: true})), "")
	if err != nil {
		t.Fatal(err)
	}
	var u pcapng.Unit
	for src.Next(&u) == nil {
		if err := w.WriteUnit(&u); err != nil {
			t.Fatal(err)
		}
	}
	if !end.IsZero() {
		w.WriteEnd(&pcapng.EndRecord{Time: end, LostPackets: lost})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestJoinDatagramLost: in a message of several datagrams, the finding contains the number of the lost one.
func TestJoinDatagramLost(t *testing.T) {
	p := places{c: exchange(10), delay: 3 * time.Microsecond, offset: 300 * ms, notThere: []int{24}}
	again := slices.Clone(p.c.Packets[22:24]) // DATA of message 5, not acknowledged yet
	for i := range p.c.Packets[24:] {
		p.c.Packets[24+i].Time = p.c.Packets[24+i].Time.Add(200 * ms)
	}
	for i := range again {
		again[i].Time = again[i].Time.Add(150 * ms)
		again[i].Data = bytes.Clone(again[i].Data)
		binary.BigEndian.PutUint16(again[i].Data[ipID:], uint16(1000+i))
	}
	p.c.Packets = slices.Insert(p.c.Packets, 24, again...)
	r := p.join(t)
	const want = "message 5 from rank 0 to rank 1: a datagram of DATA (packet 24) was lost between here.pcap and " +
		"there.pcap; " +
		"1 packet was retransmitted"
	if f := r.Findings; len(f) != 1 || f[0].Kind != capture.LostPacket || !strings.HasPrefix(f[0].Text, want) {
		t.Errorf("%+v", r.Findings)
	}
}

// TestJoinUnrecordedTail: a datagram of an acknowledged message that is missing at its destination is reported as
// unrecorded, although the message's last datagram made it appear lost.
func TestJoinUnrecordedTail(t *testing.T) {
	c := capturetest.New(capturetest.Ethernet)
	for i := range 3 {
		c.AddMessage(time.Unix(1700000000, int64(i)*1e7), capturetest.Message{
			Src: 0, Dst: 1, From: host0, To: host1, Words: uint32(1000 + i), Shape: protocol.CPUShape(),
		})
	}
	r := places{c: c, delay: 3 * time.Microsecond, offset: 300 * ms, notThere: []int{10}}.join(t)
	if len(r.Findings) != 1 || r.Findings[0].Text != "there.pcap lacks 1 packet that arrived, as answers show" {
		t.Errorf("%+v", r.Findings)
	}
}

// TestJoinUnrecorded: if a packet is missing from the recording at its destination but was answered, it is reported as
// unrecorded and not as lost.
func TestJoinUnrecorded(t *testing.T) {
	p := places{c: exchange(10), delay: 3 * time.Microsecond, offset: 300 * ms}
	// A SEND_REQUEST, DATA, two continuation datagrams and a CLEAR_TO_SEND.
	p.notThere, p.notHere = []int{21, 23, 34, 44}, []int{32}
	r := p.join(t)
	if len(r.Findings) != 2 || r.Summary.All.Complete != 10 {
		t.Fatalf("%+v, %+v", r.Summary.All, r.Findings)
	}
	for _, want := range []string{
		"here.pcap lacks 1 packet that arrived, as answers show",
		"there.pcap lacks 4 packets that arrived, as answers show",
	} {
		if !slices.ContainsFunc(r.Findings, func(f capture.Finding) bool { return f.Text == want }) {
			t.Errorf("%+v, want %q", r.Findings, want)
		}
	}
}

// TestJoinCopy: if a packet was received more often than it was sent, the network made a copy, however late the copy
// arrives. Retransmissions are not copies.
func TestJoinCopy(t *testing.T) {
	p := places{c: exchange(10), delay: 40 * time.Microsecond, offset: 300 * ms}
	request := p.c.Packets[40] // of message 9
	request.Time = request.Time.Add(300 * ms)
	p.c.Packets = append(p.c.Packets, request)
	for _, last := range exchange(2).Packets {
		last.Time = last.Time.Add(5 * time.Second)
		p.c.Packets = append(p.c.Packets, last)
	}
	p.notHere = []int{51}
	r := p.join(t)
	if len(r.Messages) != 12 || len(r.Findings) != 1 || r.Findings[0].Kind != capture.DuplicatePacket ||
		!strings.Contains(r.Findings[0].Text, "arrived twice at there.pcap: its copy was made behind here.pcap") {
		t.Errorf("%d messages, %+v", len(r.Messages), r.Findings)
	}
	// Without identifications, the copy may also be a packet that is missing from the first recording.
	p.anonymous = true
	if r := p.join(t); strings.Contains(fmt.Sprint(r.Findings), "copy was made") {
		t.Errorf("%+v", r.Findings)
	}
}

// TestJoinRotated: rotated files from two vantage points are grouped correctly, whatever their order.
func TestJoinRotated(t *testing.T) {
	for _, anonymous := range []bool{false, true} {
		testJoinRotated(t, anonymous)
	}
}

func testJoinRotated(t *testing.T, anonymous bool) {
	t.Helper()
	p := places{c: exchange(40), delay: 20 * time.Microsecond, jitter: 10 * time.Microsecond, offset: 300 * ms}
	p.anonymous = anonymous
	want := p.join(t)
	here, there := p.split(t)
	recordings := map[string][]byte{}
	var names []string
	rotate := func(name string, c *capturetest.Capture, n int) {
		for i, part := range slices.Collect(slices.Chunk(c.Packets, n)) {
			one := capturetest.New(capturetest.Ethernet)
			one.Packets = part
			file := fmt.Sprintf("%s%d", name, i)
			names = append(names, file)
			recordings[file] = one.Pcap(capturetest.Format{Nano: true})
			if i == 1 {
				recordings[file] = capturetest.Gzip(recordings[file])
			}
		}
	}
	rotate("here", here, 77)
	rotate("there", there, 91)
	dir := files(t, recordings)
	random := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		var paths []string
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		r := joined(t, paths...)
		if v := r.Joined.Vantages; len(v) != 2 || len(v[0].Files)+len(v[1].Files) != len(names) ||
			r.Joined.Common != int64(len(p.c.Packets)) {
			t.Fatalf("%v: %+v", names, r.Joined)
		}
		if len(r.Findings) > 0 || len(r.Messages) != len(want.Messages) {
			t.Errorf("%v: %d messages, %+v", names, len(r.Messages), r.Findings)
		}
	}
	slices.Sort(names)
	var paths []string
	for _, name := range names[:3] {
		paths = append(paths, filepath.Join(dir, name))
	}
	if r := joined(t, paths...); len(r.Joined.Vantages) != 1 || len(r.Messages) != 40 || len(r.Findings) > 0 {
		t.Errorf("of one place: %+v, %d messages, %+v", r.Joined, len(r.Messages), r.Findings)
	}
}

// TestJoinDrift: the drift of a clock that runs 50 ppm fast is compensated.
func TestJoinDrift(t *testing.T) {
	p := places{c: exchange(4000), delay: 40 * time.Microsecond, jitter: 10 * time.Microsecond, offset: 300 * ms}
	p.drift = 50e-6
	r := p.join(t)
	if len(r.Findings) > 0 || r.Joined.Common != int64(len(p.c.Packets)) {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
	if c := r.Joined.Vantages[1].Clock; c == nil || math.Abs(c.Drift-50e-6) > 1e-6 {
		t.Errorf("%+v", c)
	}
}

// TestJoinOneDirection: the uncertainty is unknown if clocks are compared by packets that travel in one direction only.
func TestJoinOneDirection(t *testing.T) {
	p := places{c: exchange(10), delay: 40 * time.Microsecond, offset: 300 * ms}
	for i, packet := range p.c.Packets {
		if packet.Data[14+15] == 2 { // from 10.0.0.2
			p.notHere = append(p.notHere, i+1)
		}
	}
	r := p.join(t)
	c := r.Joined.Vantages[1].Clock
	if c == nil || c.Uncertainty != nil || math.Abs(c.Offset-0.3) > 50e-6 {
		t.Errorf("%+v", c)
	}
	const want = "none of the 25 packets from 10.0.0.2:2718 to 10.0.0.1:2718 in there.pcap is in here.pcap"
	if o := r.Joined.OneWay; len(o) != 1 || o[0].In != "there.pcap" || len(r.Joined.Missing) > 0 ||
		len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Text, want) {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
}

// TestJoinPieces: two recordings can be joined even if one host's kernel coalesces datagrams and the other recording
// truncates packets.
func TestJoinPieces(t *testing.T) {
	at := time.Unix(1700000000, 0)
	offloaded, plain := capturetest.New(capturetest.Ethernet), capturetest.New(capturetest.Ethernet)
	for i := range 10 {
		m := capturetest.Message{
			Src: 0, Dst: 1, From: host0, To: host1, Words: uint32(5000 + i), Shape: protocol.CPUShape(), MaxCoalesced: 45,
		}
		offloaded.AddMessage(at, m)
		m.MaxCoalesced = 1
		plain.AddMessage(at.Add(3*time.Microsecond), m)
		at = at.Add(10 * ms)
	}
	for _, snap := range []int{64, 1500} {
		dir := files(t, map[string][]byte{
			"a": offloaded.Pcap(capturetest.Format{}), "b": plain.Truncate(snap).Pcap(capturetest.Format{}),
		})
		r := joined(t, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
		v := r.Joined.Vantages
		if len(r.Findings) > 0 || r.Summary.All.Complete != 10 || v[0].Only+v[1].Only > 0 {
			t.Errorf("snapshots of %d bytes: %+v, %+v, %+v", snap, r.Joined, r.Findings, r.Summary.All)
		}
	}
}

// TestJoinExtended: UDP packets of the extended profile are matched like others, and the finding names a lost
// packet. TCP segments from both recordings form one stream, however the stream is segmented.
func TestJoinExtended(t *testing.T) {
	talk := func(stream bool, segment int) *capturetest.Capture {
		talk := capturetest.NewExtSession(stream)
		talk.SegmentLen = segment
		talk.SendAck(0).SendAck(1)
		for i := range 20 {
			talk.SendEager(i%2, uint32(i/2+1), bytes.Repeat([]byte{byte(i)}, 3000), 1000)
		}
		return talk.Capture
	}
	p := places{c: talk(false, 0), delay: 40 * time.Microsecond, offset: 300 * ms, notThere: []int{4}}
	r := p.join(t)
	const want = "1 packet from rank 0 to rank 1 was lost between here.pcap and there.pcap"
	if f := r.Findings; len(f) == 0 || f[0].Kind != capture.LostPacket || f[0].Text != want || f[0].Packets[0] != 4 {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
	here, _ := places{c: talk(true, 700)}.split(t)
	_, there := places{c: talk(true, 1448), delay: 40 * time.Microsecond}.split(t)
	dir := files(t, map[string][]byte{"a": here.Pcap(capturetest.Format{}), "b": there.Pcap(capturetest.Format{})})
	one := joined(t, filepath.Join(dir, "a"))
	both := joined(t, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	if len(both.Findings) > 0 || !reflect.DeepEqual(one.Summary.Extended, both.Summary.Extended) {
		t.Errorf("%+v, %+v, want %+v", both.Findings, both.Summary.Extended, one.Summary.Extended)
	}
}

// TestJoinTruncated: a truncated or corrupt file is joined up to the damage, and the other files completely. No packet
// after the damage is reported as lost.
func TestJoinTruncated(t *testing.T) {
	here, there := places{c: exchange(10), delay: 3 * time.Microsecond, offset: 300 * ms}.split(t)
	b := there.Pcap(capturetest.Format{Nano: true})
	dir := files(t, map[string][]byte{
		"a": here.Pcap(capturetest.Format{Nano: true}), "b": b[:len(b)/2], "c": []byte("something else"),
	})
	a, cut := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	r := joined(t, a, cut)
	if len(r.Findings) > 0 || r.Summary.All.Complete != 10 ||
		!strings.Contains(r.Summary.Truncated, "b: recording is cut off at byte") ||
		r.Joined.Vantages[0].Only == 0 || r.IsClean() {
		t.Errorf("%+v, %+v, %q", r.Joined, r.Findings, r.Summary.Truncated)
	}
	for _, paths := range [][]string{{a, filepath.Join(dir, "c")}, {a, filepath.Join(dir, "d")}, {a, "-"}} {
		if _, err := (capture.Options{}).OpenFiles(context.Background(), paths); err == nil {
			t.Errorf("%v was opened", paths)
		}
	}
}

// TestJoinTrail checks the line printed by decode for a packet of joined recordings.
func TestJoinTrail(t *testing.T) {
	here, there := places{c: exchange(10), delay: 3 * time.Microsecond, offset: 300 * ms, notThere: []int{24}}.split(t)
	nano := capturetest.Format{Nano: true}
	dir := files(t, map[string][]byte{"a": here.Pcap(nano), "b": there.Pcap(nano)})
	paths := []string{filepath.Join(dir, "b"), filepath.Join(dir, "a")}
	src, err := capture.Options{}.OpenFiles(context.Background(), paths)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var texts []string
	var lines []capture.JSONEvent
	tracker := capture.NewTracker(capture.TrackerOptions{OnEvent: func(e *capture.Event) {
		texts, lines = append(texts, e.Text()), append(lines, e.JSON())
	}})
	if err := tracker.ProcessAll(src); err != nil {
		t.Fatal(err)
	}
	if len(texts) != 50 || !strings.HasSuffix(texts[0], ", message 1, a:1, b:1 +3.0 µs") ||
		!strings.HasSuffix(texts[23], ", a:24, lost before b") {
		t.Errorf("%d lines, %q, %q", len(texts), texts[0], texts[23])
	}
	if l := lines[25]; l.Fate != pcapng.FateDelivered.String() || len(l.Seen) != 2 ||
		l.Seen[0].Packet+l.Seen[1].Packet != 25+26 {
		t.Errorf("%+v", l)
	}
}

func netipAddr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }
