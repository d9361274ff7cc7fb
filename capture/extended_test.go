package capture_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/diagnosis/infer"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// source returns a synthetic recording as a Source.
func source(t testing.TB, c *capturetest.Capture) capture.Source {
	t.Helper()
	src, err := capture.Options{}.NewReader(bytes.NewReader(c.Pcap(capturetest.Format{Nano: true})), "test")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func analyzeTalk(t testing.TB, talk *capturetest.ExtSession) *capture.Report {
	t.Helper()
	a := capture.NewAnalysis("test", capture.AnalysisOptions{KeepMessages: 10})
	if err := a.Analyze(source(t, talk.Capture)); err != nil {
		t.Fatal(err)
	}
	return a.Report()
}

// texts returns the lines that zrlctl decode prints, without addresses.
func texts(t testing.TB, c *capturetest.Capture, profile protocol.Profile) (lines []string) {
	t.Helper()
	tr := capture.NewTracker(capture.TrackerOptions{Profile: profile, OnEvent: func(e *capture.Event) {
		_, line, _ := strings.Cut(e.Text(), ": ")
		lines = append(lines, line)
	}})
	if err := tr.ProcessAll(source(t, c)); err != nil {
		t.Fatal(err)
	}
	return lines
}

type ext = protocol.ExtHeader

func TestExtendedEvents(t *testing.T) {
	talk := capturetest.NewExtSession(false)
	hello := protocol.AppendExtended(nil,
		&ext{Dst: 1, Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello, Session: 0xa0}, nil)
	corrupt := protocol.AppendExtended(nil, &ext{Dst: 1, Type: protocol.Data, Session: 0xa0, Number: 99, Length: 5},
		[]byte("hello"))
	corrupt[80]++
	talk.SendRaw(0, hello).SendAck(1).
		SendEager(0, 1, []byte("hello"), 1336).
		SendRendezvous(1, 1, make([]byte, 2000), 1336).
		Send(0, ext{Type: protocol.Error, Message: 2, Tag: uint32(protocol.CodeCancel)}, nil).
		Send(0, ext{Type: protocol.SendRequest, Flags: protocol.FlagRetransmit | protocol.FlagSync, Number: 7,
			Message: 3, Comm: 4, Tag: 1<<31 - 1, Length: 99999}, nil).
		Send(0, ext{Type: protocol.SendRequest, Number: 6, Message: 4}, nil).
		SendAck(1, protocol.Range{First: 6, End: 8}).
		Send(0, ext{Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello, Tag: 9},
			protocol.AppendAck(nil, &protocol.AckInfo{MessageLimit: 5})).
		Send(1, ext{Type: protocol.Ack, Call: protocol.RecvInt, Tag: 9, Length: 36}, make([]byte, 24)).
		// The payload of this packet is as long as an ordinary ACK's.
		Send(1, ext{Type: protocol.Ack, Call: protocol.RecvInt, Tag: 9, Length: 36, Offset: 24}, make([]byte, 12)).
		SendRaw(0, corrupt).SendRaw(0, corrupt[:80]).SendRaw(0, corrupt[:79])
	want := []string{
		"ACK 0→1 RECV_INT HELLO ack=0 session=00000000000000a0 to 0000000000000000, new session",
		"ACK 1→0 RECV_INT ack=1 messages<65537 eager<1048576 delay=250µs session=00000000000000b1 to " +
			"00000000000000a0, new session",
		"DATA 0→1 SEND_INT #1 msg=1 tag=5 comm=0 0..5 of 5 EAGER ack=0",
		"ACK 1→0 RECV_INT ack=2 messages<65537 eager<1048576 delay=250µs",
		"SEND_REQUEST 1→0 SEND_INT #1 msg=1 tag=5 comm=0 length=2000 ack=0",
		"CLEAR_TO_SEND 0→1 RECV_INT #2 msg=1 takes=2000 ack=2",
		"DATA 1→0 SEND_INT #2 msg=1 tag=5 comm=0 0..1336 of 2000 ack=0",
		"DATA 1→0 SEND_INT #3 msg=1 tag=5 comm=0 1336..2000 of 2000 ack=0",
		"ACK 0→1 RECV_INT ack=4 messages<65537 eager<1048576 delay=250µs",
		`ERROR 0→1 SEND_INT #3 msg=2 "cancel" ack=0`,
		"SEND_REQUEST 0→1 SEND_INT #7 msg=3 tag=2147483647 comm=4 length=99999 SYNC RETRANSMIT ack=0, retransmitted",
		"SEND_REQUEST 0→1 SEND_INT #6 msg=4 tag=0 comm=0 length=0 ack=0, out of order",
		"ACK 1→0 RECV_INT ack=4 messages<65537 eager<1048576 delay=250µs arrived=6..8",
		"ACK 0→1 RECV_INT question=9 HELLO ack=0 messages<5 eager<0 delay=0µs session=00000000000000a0 to " +
			"00000000000000b1",
		"ACK 1→0 RECV_INT report=9 0..24 of 36 ack=0",
		"ACK 1→0 RECV_INT report=9 24..36 of 36 ack=0",
		"DATA 0→1 SEND_INT #99 tag=0 comm=0 0..5 of 5 ack=0 [checksum]",
		"DATA 0→1 SEND_INT #99 tag=0 comm=0 0..0 of 5 ack=0 [length]",
		"no ZRLMPI packet [short]",
	}
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.V09, protocol.Extended} {
		if got := texts(t, talk.Capture, profile); !slices.Equal(got, want) {
			t.Errorf("%v: got\n%s\nwant\n%s", profile, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// However a stream is segmented, its packets are decoded in the same way.
func TestExtendedStream(t *testing.T) {
	build := func(stream bool, segment int) *capturetest.ExtSession {
		talk := capturetest.NewExtSession(stream)
		talk.SegmentLen = segment
		return talk.SendAck(0).SendAck(1).SendEager(0, 1, []byte("hello"), 1336).
			SendRendezvous(1, 1, make([]byte, 5000), 1336).SendRendezvous(0, 2, nil, 1336).SendEager(1, 2, nil, 1336)
	}
	datagrams := build(false, 0)
	want := texts(t, datagrams.Capture, protocol.CloudFPGA)
	sums := analyzeTalk(t, datagrams).Summary.Extended
	if len(sums) != 2 || sums[0].Complete != 2 || sums[0].Bytes != 5 || sums[1].Complete != 2 || sums[1].Bytes != 5000 {
		t.Errorf("%+v", sums)
	}
	for _, segment := range []int{0, 1, 31, 32, 33, 79, 80, 81, 1000} {
		talk := build(true, segment)
		if got := texts(t, talk.Capture, protocol.CloudFPGA); !slices.Equal(got, want) {
			t.Errorf("segments of %d: got\n%s\nwant\n%s", segment, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		r := analyzeTalk(t, talk)
		if !slices.Equal(r.Summary.Extended, sums) || !r.IsClean() {
			t.Errorf("segments of %d: %+v\n%+v", segment, r.Summary.Extended, r.Findings)
		}
	}
	// After a hole, the next complete packet is found.
	talk := build(true, 0)
	talk.Capture.Drop(9)
	got := texts(t, talk.Capture, protocol.CloudFPGA)
	for _, line := range want[9:] {
		if !slices.Contains(got, line) {
			t.Errorf("behind the hole, %s is missing in\n%s", line, strings.Join(got, "\n"))
		}
	}
	// Try a corrupt packet, and a packet that announces too many bytes.
	for _, at := range []int{100, 20 + 2} {
		talk := build(true, 0)
		talk.Capture.Edit(7, func(b []byte) []byte { b[len(b)-1336-80+at] = 0xff; return b })
		if r := analyzeTalk(t, talk); r.Summary.Extended[1].Corrupt+r.Summary.Extended[1].Bad != 1 {
			t.Errorf("byte %d: %+v", at, r.Summary.Extended)
		}
	}
}

// With segmentation offload, a datagram consists of several packets of any length.
func TestExtendedSegmentationOffload(t *testing.T) {
	talk := capturetest.NewExtSession(false).SendRendezvous(0, 1, make([]byte, 9000), 2000)
	want := texts(t, talk.Capture, protocol.CloudFPGA)
	var merged []byte
	for _, p := range talk.Capture.Packets[2:7] {
		merged = append(merged, p.Data[14+20+8:]...)
	}
	whole := capturetest.NewExtSession(false)
	whole.Capture.Packets = slices.Clone(talk.Capture.Packets[:2])
	whole.SendRaw(0, merged)
	whole.Capture.Packets = append(whole.Capture.Packets, talk.Capture.Packets[7])
	if got := texts(t, whole.Capture, protocol.CloudFPGA); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// With a short snapshot length, packets whose headers were recorded are decoded.
	whole.Capture.Truncate(14 + 20 + 8 + 2072 + 100)
	got := texts(t, whole.Capture, protocol.CloudFPGA)
	short := slices.Concat(want[:3], []string{want[3] + ", cut short by the recorder"}, want[7:])
	if !slices.Equal(got, short) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(short, "\n"))
	}
}

// A recording with a short snapshot length contains all headers, but no checksum can be verified.
func TestExtendedShortSnapshots(t *testing.T) {
	talk := capturetest.NewExtSession(false).SendRendezvous(0, 1, make([]byte, 3000), 1336)
	talk.Capture.Truncate(14 + 20 + 8 + 100)
	r := analyzeTalk(t, talk)
	if !r.IsClean() || r.Summary.Extended[0].Complete != 1 || r.Summary.Extended[0].Bytes != 3000 {
		t.Errorf("%+v\n%+v", r.Summary.Extended, r.Findings)
	}
	got := texts(t, talk.Capture, protocol.CloudFPGA)
	if !strings.Contains(got[2], "0..1336 of 3000") || !strings.HasSuffix(got[2], ", cut short by the recorder") {
		t.Errorf("got %s", got[2])
	}
}

func TestExtendedFindings(t *testing.T) {
	request := ext{Type: protocol.SendRequest, Message: 9, Tag: 7, Comm: 3, Length: 100000}
	start := func() *capturetest.ExtSession {
		return capturetest.NewExtSession(false).SendAck(0).SendAck(1) // packets 1 and 2
	}
	message := func() *capturetest.ExtSession { // packets 3 to 8: SR CTS DATA DATA DATA ACK
		return start().SendRendezvous(0, 1, make([]byte, 3000), 1336)
	}
	repeat := func(talk *capturetest.ExtSession, n int) *capturetest.ExtSession {
		frame := slices.Clone(talk.Capture.Packets[n-1].Data[14+20+8:])
		h, payload, _ := protocol.ParseExtended(frame)
		h.Flags |= protocol.FlagRetransmit
		return talk.Send(0, h, payload)
	}
	restart := func(talk *capturetest.ExtSession) *capturetest.ExtSession {
		talk.Sessions[1], talk.Numbers[1] = 0xbb, 0
		return talk.SendAck(1)
	}
	lose := func(talk *capturetest.ExtSession, n int) *capturetest.ExtSession { talk.Capture.Drop(n); return talk }
	for _, c := range []struct {
		name string
		talk *capturetest.ExtSession
		want []capture.FindingKind
		text string
		// of the direction 0→1: messages complete open retransmissions lost duplicates out-of-order corrupt sessions
		counts string
	}{
		{"nothing", message(), nil, "", "1 1 0 0 0 0 0 0 1"},
		{"eager", start().SendEager(0, 1, make([]byte, 4000), 1336), nil, "", "1 1 0 0 0 0 0 0 1"},
		{"never matched", start().Send(0, request, nil).Advance(time.Second).SendAck(1),
			[]capture.FindingKind{capture.NeverCleared},
			"rank 0 has waited 1s for CLEAR_TO_SEND from rank 1: no receive has matched message 9, tag 7, " +
				"communicator 3, 100000 bytes", "1 0 1 0 0 0 0 0 1"},
		{"two never matched", start().Send(0, request, nil).Send(0, ext{Type: protocol.SendRequest, Message: 10}, nil),
			[]capture.FindingKind{capture.NeverCleared}, "; and 1 more", "2 0 2 0 0 0 0 0 1"},
		{"canceled", start().Send(0, request, nil).Send(0, ext{Type: protocol.Error, Message: 9, Tag: 1}, nil).
			Send(1, ext{Type: protocol.Error, Call: protocol.RecvInt, Message: 9, Tag: 2}, nil), nil, "",
			"1 0 0 0 0 0 0 0 1"},
		{"too long", start().Send(0, request, nil).Send(1,
			ext{Type: protocol.Error, Call: protocol.RecvInt, Message: 9, Tag: 3}, nil),
			[]capture.FindingKind{capture.RefusedMessage},
			"rank 1 refused message 9 of rank 0: its 100000 bytes are more than it takes", "1 0 0 0 0 0 0 0 1"},
		{"data is missing", lose(message(), 6), []capture.FindingKind{capture.StillWaiting}, " for DATA from rank 0",
			"1 0 1 0 0 0 0 0 1"},
		{"lost and retransmitted", lose(repeat(message(), 6), 6), []capture.FindingKind{capture.LostPacket},
			"1 packet from rank 0 to rank 1 was retransmitted, and the original is not in the recording",
			"1 1 0 1 1 0 0 0 1"},
		{"retransmitted", repeat(repeat(message(), 6), 7), []capture.FindingKind{capture.RetransmittedPacket},
			"2 packets from rank 0 to rank 1 were retransmitted", "1 1 0 2 0 0 0 0 1"},
		{"duplicate", func() *capturetest.ExtSession { talk := message(); talk.Capture.Duplicate(6); return talk }(),
			[]capture.FindingKind{capture.DuplicatePacket}, "delivered twice", "1 1 0 0 0 1 0 0 1"},
		{"out of order", func() *capturetest.ExtSession { talk := message(); talk.Capture.Swap(6, 7); return talk }(), nil,
			"", "1 1 0 0 0 0 1 0 1"},
		{"corrupt", func() *capturetest.ExtSession {
			talk := message()
			talk.Capture.Edit(6, func(b []byte) []byte { b[len(b)-1]++; return b })
			return repeat(talk, 5)
		}(), []capture.FindingKind{capture.CorruptPacket, capture.RetransmittedPacket, capture.StillWaiting},
			"it was corrupted in transit", "1 0 1 1 0 0 0 1 1"},
		{"outside of its message",
			start().Send(0, ext{Type: protocol.Data, Message: 9, Length: 10, Offset: 8}, make([]byte, 3)),
			[]capture.FindingKind{capture.SizeMismatch},
			"8..11 of 10 ack=0: the payload does not lie in its message", "0 0 0 0 0 0 0 0 1"},
		{"end mark", start().SendRaw(0, func() []byte {
			b := protocol.AppendExtended(nil, &request, nil)
			b[28] = 0
			return b
		}()), []capture.FindingKind{capture.BadHeader}, "byte 28 is 0x00", "0 0 0 0 0 0 0 0 1"},
		{"restarted", restart(start().Send(0, request, nil)), []capture.FindingKind{capture.SessionChanged},
			"rank 1 has a new session with rank 0: it was restarted, or has given rank 0 up; 1 open " +
				"message ends", "1 0 0 0 0 0 0 0 1"},
		{"a packet of the old session", func() *capturetest.ExtSession {
			talk := restart(message())
			talk.Sessions[1] = 0xb1
			return talk.SendAck(1)
		}(), []capture.FindingKind{capture.SessionChanged}, "no message was open", "1 1 0 0 0 0 0 0 1"},
		{"close", message().Send(1, ext{Type: protocol.Error, Call: protocol.RecvInt, Tag: 4}, nil).Send(1,
			ext{Type: protocol.Error, Call: protocol.RecvInt, Tag: 4}, nil),
			[]capture.FindingKind{capture.ClosedByPeer},
			"rank 1 closes its session with rank 0: it shuts down; no message was open", "1 1 0 0 0 0 0 0 1"},
		{"the recording begins in mid-message", lose(lose(lose(message(), 5), 4), 3), nil, "", "1 1 0 0 0 0 0 0 1"},
		{"the receiver takes less",
			start().Send(0, request, nil).Send(1,
				ext{Type: protocol.ClearToSend, Call: protocol.RecvInt, Message: 9, Length: 10}, nil).
				Send(0, ext{Type: protocol.Data, Message: 9, Length: 100000}, make([]byte, 10)), nil, "",
			"1 1 0 0 0 0 0 0 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := analyzeTalk(t, c.talk)
			var kinds []capture.FindingKind
			var all []string
			for _, f := range r.Findings {
				kinds = append(kinds, f.Kind)
				all = append(all, f.Text)
			}
			if !slices.Equal(kinds, c.want) || !strings.Contains(strings.Join(all, "\n"), c.text) {
				t.Errorf("found %v\n%s\nwant %v %q", kinds, strings.Join(all, "\n"), c.want, c.text)
			}
			p := r.Summary.Extended[0]
			if got := fmt.Sprint(p.Messages, p.Complete, p.Open, p.Retransmissions, p.Lost, p.Duplicates, p.OutOfOrder,
				p.Corrupt, p.Sessions); got != c.counts || p.Src != 0 || p.Dst != 1 {
				t.Errorf("counts are %s, want %s: %+v", got, c.counts, p)
			}
			if len(r.Messages) != 0 || r.Summary.All.Messages != 0 {
				t.Errorf("the other profiles have %d messages", r.Summary.All.Messages)
			}
		})
	}
}

// Packet numbers wrap around. A number that is too old counts as seen.
func TestExtendedNumbersComeRound(t *testing.T) {
	talk := capturetest.NewExtSession(false)
	talk.Numbers[0] = 1<<32 - 3
	talk.SendRendezvous(0, 1, make([]byte, 9000), 1000)
	r := analyzeTalk(t, talk)
	if p := r.Summary.Extended[0]; !r.IsClean() || p.Complete != 1 || p.OutOfOrder != 0 {
		t.Errorf("%+v %+v", p, r.Findings)
	}
	for _, jump := range []uint32{1023, 1024, 5000, 1 << 31} {
		talk := capturetest.NewExtSession(false).SendEager(0, 1, nil, 1).
			Send(0, ext{Type: protocol.Data, Flags: protocol.FlagEager, Number: 1 + jump, Message: 2}, nil).
			Send(0, ext{Type: protocol.Data, Flags: protocol.FlagEager, Number: 1, Message: 1}, nil)
		if p := analyzeTalk(t, talk).Summary.Extended[0]; p.Duplicates < 1 {
			t.Errorf("%d behind: %+v", jump, p)
		}
	}
}

// Within a message of another profile, payload may resemble a header of the extended profile.
func TestExtendedLookalike(t *testing.T) {
	talk := capturetest.NewExtSession(false)
	looks := protocol.AppendExtended(nil, &ext{Type: protocol.Data}, nil)
	looks[24]++
	h := func(typ protocol.Type, call protocol.Call, src, dst uint32, words uint32) []byte {
		return protocol.CloudFPGA.Append(nil, protocol.Header{Src: src, Dst: dst, Type: typ, Call: call, Size: words})
	}
	talk.SendRaw(0, h(protocol.SendRequest, protocol.SendInt, 0, 1, 0)).SendRaw(1,
		h(protocol.ClearToSend, protocol.RecvInt, 1, 0, 0)).
		SendRaw(0, append(h(protocol.Data, protocol.SendInt, 0, 1, 346+20), make([]byte, 1384)...)).SendRaw(0, looks).
		SendRaw(1, h(protocol.Ack, protocol.RecvInt, 1, 0, 0))
	r := analyzeTalk(t, talk)
	if !r.IsClean() || r.Summary.All.Complete != 1 || len(r.Summary.Extended) != 0 {
		t.Errorf("%+v %+v", r.Summary, r.Findings)
	}
}

func TestExtendedEventJSON(t *testing.T) {
	talk := capturetest.NewExtSession(false).SendAck(1, protocol.Range{First: 3, End: 5}).
		Send(0, ext{Type: protocol.Error, Message: 2, Tag: 4}, nil)
	var lines []string
	tr := capture.NewTracker(capture.TrackerOptions{OnEvent: func(e *capture.Event) {
		b, err := json.Marshal(e.JSON().Extended)
		if err != nil || e.JSON().Tag != nil {
			t.Error(err)
		}
		lines = append(lines, string(b))
	}})
	if err := tr.ProcessAll(source(t, talk.Capture)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`{"acknowledged":1,"communicator":0,"tag":0,"length":0,"offset":0,"payload":20,"session":"00000000000000b1","peer_session":"00000000000000a0","message_limit":65537,"eager_limit":1048576,"delay_us":250,"ranges":[[3,5]],"new_session":true}`,
		`{"acknowledged":0,"message":2,"communicator":0,"tag":0,"code":"close","length":0,"offset":0,"payload":0,"session":"00000000000000a0","peer_session":"00000000000000b1","new_session":true}`,
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
}

// The number of open messages that the tracker follows is limited.
func TestExtendedOpenMessagesAreBounded(t *testing.T) {
	const most, more = 1 << 17, 100
	a := capture.NewAnalysis("test", capture.AnalysisOptions{})
	talk := capturetest.NewExtSession(false)
	h := ext{Dst: 1, Type: protocol.SendRequest, Session: 1, Length: 5}
	units := func(yield func(pcapng.Unit) bool) {
		var b []byte
		for n := uint32(1); n <= most+more; n++ {
			h.Number, h.Message = n, n
			b = protocol.AppendExtended(b[:0], &h, nil)
			yield(pcapng.Unit{Packet: int64(n), Time: time.Unix(int64(n), 0), Proto: pcapng.UDP, Src: talk.Address(0),
				Dst: talk.Address(1), Data: b})
		}
	}
	if err := a.Analyze(&unitSource{units: units}); err != nil {
		t.Fatal(err)
	}
	r := a.Report()
	if p := r.Summary.Extended[0]; p.Open != most || p.NotFollowed != more {
		t.Errorf("%+v", p)
	}
	if len(r.Findings) != 1 || len(r.Findings[0].Packets) > 16 {
		t.Errorf("%d findings", len(r.Findings))
	}
}

// A rank of another profile does not answer HELLO. The recording does not show why there is no answer.
func TestUnansweredHello(t *testing.T) {
	hello := protocol.AppendExtended(nil,
		&ext{Dst: 1, Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello, Session: 0xa0}, nil)
	request := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: protocol.SendRequest})
	hellos := func(n int) *capturetest.ExtSession {
		talk := capturetest.NewExtSession(false)
		for range n {
			talk.Advance(20*time.Millisecond).SendRaw(0, hello)
		}
		return talk
	}
	for name, tt := range map[string]struct {
		talk      *capturetest.ExtSession
		unstarted bool // rank 1 may not have been started
		findings  int
	}{
		"one":      {hellos(1), false, 0},
		"answered": {hellos(4).SendAck(1), false, 0},
		"silent":   {hellos(4), true, 1},
		"plain":    {hellos(4).SendRaw(1, request), false, 2},
	} {
		found := analyzeTalk(t, tt.talk).Findings
		i := slices.IndexFunc(found, func(f capture.Finding) bool {
			return strings.HasPrefix(f.Text, "4 HELLOs from rank 0 to rank 1 within 60.3ms, unanswered in this recording")
		})
		if len(found) != tt.findings || (i >= 0) != (tt.findings > 0) {
			t.Errorf("%s: %+v", name, found)
		}
		if i < 0 {
			continue
		}
		if f := found[i]; f.Kind != capture.StillWaiting || !slices.Equal(f.Packets, []int64{1, 2, 3, 4}) {
			t.Errorf("%s: %+v", name, f)
		}
		causes := map[infer.Cause]int{}
		unstarted := false
		for _, p := range found[i].Possible {
			causes[p.Cause]++
			unstarted = unstarted || strings.Contains(p.Text, "has not been started")
		}
		if causes[infer.WrongProfile] != 1 || causes[infer.PacketsBlocked] != 2 || unstarted != tt.unstarted {
			t.Errorf("%s: possible causes: %+v", name, found[i].Possible)
		}
	}
}
