package capture_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

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
