package capture_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// offloadedWords lists the lengths of the messages in an offloaded recording.
var offloadedWords = []uint32{1, 346, 347, 348, 702, 1000, 22000}

// offloaded returns a recording of complete messages. The kernel has coalesced up to 45 of their datagrams into one
// packet.
func offloaded(link int) *capturetest.Capture {
	c := capturetest.New(link)
	for i, words := range offloadedWords {
		c.AddMessage(time.Unix(1700000000, 0).Add(time.Duration(i)*ms), capturetest.Message{
			Src: 0, Dst: 1, From: netip.MustParseAddrPort("10.0.0.1:2718"),
			To:    netip.MustParseAddrPort("10.0.0.2:2718"),
			Words: words, Shape: protocol.CPUShape(), MaxCoalesced: capturetest.MaxOffload,
		})
	}
	return c
}

func analyzeFile(t *testing.T, file []byte) *capture.Report {
	t.Helper()
	src, err := capture.Options{}.NewReader(bytes.NewReader(file), "test")
	if err != nil {
		t.Fatal(err)
	}
	a := capture.NewAnalysis("test", capture.AnalysisOptions{KeepMessages: 1000})
	if err := a.Analyze(src); err != nil {
		t.Fatal(err)
	}
	return a.Report()
}

// expectOffloaded checks that a recording of offloaded messages shows all of them, without findings.
func expectOffloaded(t *testing.T, file []byte) {
	t.Helper()
	var want []string
	for _, words := range offloadedWords {
		want = append(want, fmt.Sprintf("0→1 %d", words))
	}
	check(t, analyzeFile(t, file), want, nil)
}

// TestOffloadAndSnapLength: the messages in a recording with truncated packets are valid, even if a packet consists of
// many datagrams or its header lacks the length.
func TestOffloadAndSnapLength(t *testing.T) {
	for _, snap := range []int{64, 68, 74, 96, 200, 1500, 1 << 17} {
		for name, link := range map[string]int{"ethernet": capturetest.Ethernet, "raw": capturetest.Raw,
			"any": capturetest.SLL} {
			t.Run(fmt.Sprintf("%s %d", name, snap), func(t *testing.T) {
				expectOffloaded(t, offloaded(link).Truncate(snap).Pcap(capturetest.Format{}))
				expectOffloaded(t, offloaded(link).Truncate(snap).Pcapng(capturetest.Format{}))
			})
		}
		t.Run(fmt.Sprintf("no length in IP and UDP headers %d", snap), func(t *testing.T) {
			c := offloaded(capturetest.Raw)
			for i := range c.Packets {
				c.Edit(i+1, func(b []byte) []byte {
					binary.BigEndian.PutUint16(b[2:], 0)
					binary.BigEndian.PutUint16(b[24:], 0)
					return b
				})
			}
			expectOffloaded(t, c.Truncate(snap).Pcap(capturetest.Format{}))
		})
	}
}

// TestTooLittleRecorded: packets that are too short to be identified are counted and do not cause findings.
func TestTooLittleRecorded(t *testing.T) {
	r := analyzeFile(t, offloaded(capturetest.Ethernet).Truncate(14+28+19).Pcap(capturetest.Format{}))
	check(t, r, nil, nil)
	if n := r.Summary.Skipped["cut_short"]; n != r.Summary.Packets || len(r.Messages) != 0 {
		t.Errorf("%d of %d packets are counted as cut short, %d messages", n, r.Summary.Packets, len(r.Messages))
	}
}

// TestWriterKeepsTheLength: when a truncated packet is written to a file, the file contains its original length.
func TestWriterKeepsTheLength(t *testing.T) {
	for _, snap := range []int{74, 1 << 17} {
		recording := offloaded(capturetest.Ethernet).Truncate(snap).Pcap(capturetest.Format{})
		src, err := capture.Options{}.NewReader(bytes.NewReader(recording), "test")
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
		var u pcapng.Unit
		for src.Next(&u) == nil {
			if err := w.WriteUnit(&u); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		expectOffloaded(t, file.Bytes())
	}
}

// TestOffloadIsSplit: a packet that consists of several datagrams yields an event for each, with the same offsets as on
// the wire. A last datagram of 1424 bytes is not split.
func TestOffloadIsSplit(t *testing.T) {
	from, to := netip.MustParseAddrPort("10.0.0.1:2718"), netip.MustParseAddrPort("10.0.0.2:2718")
	for _, tt := range []struct {
		words uint32
		shape protocol.Shape
		want  []int
	}{
		{347, protocol.CPUShape(), []int{1416, 4}},
		{1000, protocol.CPUShape(), []int{1416, 1416, 1200}},
		{347, protocol.FPGAShape(true), []int{1424}},
		{1001, protocol.FPGAShape(true), []int{1416, 1416, 1208}},
	} {
		var got []int
		tracker := capture.NewTracker(capture.TrackerOptions{OnEvent: func(e *capture.Event) {
			if e.IsData {
				got = append(got, e.Length)
			}
		}})
		c := capturetest.New(capturetest.Raw).AddMessage(time.Unix(1700000000, 0), capturetest.Message{
			Dst: 1, From: from, To: to, Words: tt.words, Shape: tt.shape, MaxCoalesced: capturetest.MaxOffload,
		}).Truncate(100)
		src, err := capture.Options{}.NewReader(bytes.NewReader(c.Pcap(capturetest.Format{})), "test")
		if err != nil {
			t.Fatal(err)
		}
		if err := tracker.ProcessAll(src); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%d words: datagrams of %v bytes, want %v; %v", tt.words, got, tt.want, err)
		}
	}
}

// TestExtendedOffloadAndSnapLength: packets of the extended profile of which no byte was recorded are not reported as
// lost or missing.
func TestExtendedOffloadAndSnapLength(t *testing.T) {
	record := func() *capturetest.ExtSession {
		talk := capturetest.NewExtSession(false)
		talk.SendAck(0).SendAck(1)
		var together []byte
		for i := range uint32(4) {
			together = protocol.AppendExtended(together, &ext{
				Dst: 1, Type: protocol.Data, Session: talk.Sessions[0], PeerSession: talk.Sessions[1], Number: i + 1,
				Message: 1,
				Flags:   protocol.FlagEager, Length: 4 * 1344, Offset: i * 1344,
			}, make([]byte, 1344))
		}
		return talk.SendRaw(0, together)
	}
	whole := analyzeTalk(t, record())
	if s := whole.Summary.Extended[0]; !whole.IsClean() || s.Complete != 1 || s.Unrecorded != 0 {
		t.Errorf("whole: %+v, %v", s, whole.Findings)
	}
	talk := record()
	talk.Capture.Truncate(158)
	r := analyzeTalk(t, talk)
	if s := r.Summary.Extended[0]; !r.IsClean() || s.Open != 1 || s.Unrecorded != 3*(protocol.ExtHeaderLen+1344) {
		t.Errorf("cut: %+v, %v", s, r.Findings)
	}
	talk.Capture.Truncate(64)
	if r := analyzeTalk(t, talk); !r.IsClean() || r.Summary.Skipped["cut_short"] != 3 {
		t.Errorf("cut in the header: %+v, %v", r.Summary, r.Findings)
	}
}
