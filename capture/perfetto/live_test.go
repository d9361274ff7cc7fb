package perfetto

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// recorded returns a file with the packets of three ranks, and with queue lengths before, between and after them.
func recorded(t *testing.T) []byte {
	t.Helper()
	src, err := capture.Options{}.OpenFile(filepath.Join("..", "testdata", "captures", "ref_ring3_347.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var file bytes.Buffer
	w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
	var u pcapng.Unit
	for n := 0; src.Next(&u) == nil; n++ {
		if n == 0 {
			w.AddNote(&pcapng.QueueDepths{Time: u.Time.Add(-time.Millisecond), Rank: 1})
		}
		if err := w.WriteUnit(&u); err != nil {
			t.Fatal(err)
		}
		if n == 3 {
			w.AddNote(&pcapng.QueueDepths{Time: u.Time, Rank: 1, Posted: 3, Unexpected: 2, Sends: 1})
		}
	}
	w.AddNote(&pcapng.QueueDepths{Time: u.Time.Add(time.Second), Rank: 3, Sends: 70000})
	w.WriteEnd(&pcapng.EndRecord{Time: u.Time.Add(2 * time.Second), Comments: []string{"waiting: rank 0 waits"}})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// written returns the trace that is written for a recording.
func written(t *testing.T, recording []byte) []byte {
	t.Helper()
	a := capture.NewAnalysis("", capture.AnalysisOptions{KeepMessages: 1000, KeepTrace: 1000})
	src, err := capture.Options{OnNote: a.AddNote}.NewReader(bytes.NewReader(recording), "")
	if err == nil {
		err = a.Analyze(src)
	}
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	if err := Write(&trace, a.Report()); err != nil {
		t.Fatal(err)
	}
	return trace.Bytes()
}

// TestQueues: the trace shows the recording's queue lengths as counters, from the beginning of the recording.
func TestQueues(t *testing.T) {
	golden(t, "queues", written(t, recorded(t)))
}

// TestLive: at any time, the output is a valid trace of the messages completed so far. At the end it contains all
// messages.
func TestLive(t *testing.T) {
	file := recorded(t)
	var trace bytes.Buffer
	live := NewLive(&trace, protocol.CloudFPGA)
	var lengths []int
	src, err := capture.Options{OnNote: live.AddNote}.NewReader(bytes.NewReader(file), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := live.ProcessAll(&watched{src, func() { lengths = append(lengths, trace.Len()) }}); err != nil ||
		live.Err() != nil {
		t.Fatal(err, live.Err())
	}
	golden(t, "live", trace.Bytes())
	if n := live.Messages(); n != 6 || live.Findings() != 0 {
		t.Errorf("%d messages, %d findings", n, live.Findings())
	}
	if lengths = slices.Compact(lengths); len(lengths) < 5 {
		t.Errorf("the trace was written at %d times", len(lengths))
	}
	for _, n := range lengths {
		if open := len(opened(t, trace.Bytes()[:n])); open > 0 {
			t.Errorf("the first %d bytes have %d slices without an end", n, open)
		}
	}
}

// opened returns the tracks on which a slice has begun but not ended.
func opened(t *testing.T, trace []byte) []uint64 {
	open := map[uint64]int{}
	for _, p := range packets(t, trace) {
		if p.event != nil {
			switch p.event.kind {
			case typeBegin:
				open[p.event.track]++
			case typeEnd:
				open[p.event.track]--
			}
		}
	}
	var list []uint64
	for track, n := range open {
		if n != 0 {
			list = append(list, track)
		}
	}
	return list
}

// watched is a source that calls look before each unit.
type watched struct {
	capture.Source
	look func()
}

func (w *watched) Next(u *pcapng.Unit) error {
	w.look()
	return w.Source.Next(u)
}

// TestLiveWriteError: if the trace cannot be written, ProcessAll returns even if the recording continues.
func TestLiveWriteError(t *testing.T) {
	live := NewLive(broken{}, protocol.CloudFPGA)
	src, err := capture.Options{OnNote: live.AddNote}.NewReader(bytes.NewReader(recorded(t)), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := live.ProcessAll(src); err != nil || !errors.Is(live.Err(), errBroken) {
		t.Error(err, live.Err())
	}
}

// packetOf returns a packet of the extended profile from one rank to another.
func packetOf(ms, from, to int, h protocol.ExtHeader, payload string) pcapng.Unit {
	h.Src, h.Dst, h.Session, h.PeerSession = uint32(from), uint32(to), protocol.Session(from+7), protocol.Session(to+7)
	u := pcapng.Unit{Time: time.Unix(1000, int64(ms)*1e6).UTC(), Proto: pcapng.UDP,
		Data: protocol.AppendExtended(nil, &h, []byte(payload))}
	of := func(rank int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rank + 1)}), 2718)
	}
	u.Src, u.Dst = of(from), of(to)
	return u
}

// TestExtended: messages of the extended profile are slices. Overlapping messages are on separate tracks, and open
// messages last until the end.
func TestExtended(t *testing.T) {
	var file bytes.Buffer
	w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
	for _, u := range []pcapng.Unit{
		packetOf(0, 0, 1, protocol.ExtHeader{Type: protocol.SendRequest, Number: 1, Message: 1, Tag: 5, Length: 8}, ""),
		packetOf(1, 0, 1, protocol.ExtHeader{Type: protocol.Data, Flags: protocol.FlagEager, Number: 2, Message: 2,
			Length: 4}, "abcd"),
		packetOf(3, 1, 0, protocol.ExtHeader{Type: protocol.ClearToSend, Call: protocol.RecvInt, Number: 1, Message: 1,
			Length: 8}, ""),
		packetOf(5, 0, 1, protocol.ExtHeader{Type: protocol.Data, Number: 3, Message: 1, Tag: 5, Length: 8},
			"12345678"),
		packetOf(6, 0, 1, protocol.ExtHeader{Type: protocol.SendRequest, Number: 4, Message: 3, Length: 100}, ""),
		packetOf(9, 1, 0, protocol.ExtHeader{Type: protocol.Data, Flags: protocol.FlagEager, Number: 2, Message: 1,
			Length: 1}, "z"),
	} {
		if err := w.WriteUnit(&u); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	src, err := capture.Options{}.NewReader(&file, "")
	if err != nil {
		t.Fatal(err)
	}
	var trace bytes.Buffer
	live := NewLive(&trace, protocol.CloudFPGA)
	if err := live.ProcessAll(src); err != nil || live.Err() != nil {
		t.Fatal(err, live.Err())
	}
	golden(t, "extended", trace.Bytes())
	got := text(t, trace.Bytes())
	if n := len(opened(t, trace.Bytes())); n > 0 || live.Messages() != 4 ||
		strings.Count(got, ": 100 bytes, arrow") != 2 {
		t.Errorf("%d tracks are open, %d messages\n%s", n, live.Messages(), got)
	}
}

// TestLiveTracks: the trace ends with an error if packets claim to be from too many ranks.
func TestLiveTracks(t *testing.T) {
	live := NewLive(io.Discard, protocol.CloudFPGA)
	for rank := 0; live.Err() == nil; rank++ {
		if rank > maxTracks {
			t.Fatal("the trace goes on")
		}
		live.AddNote(&pcapng.QueueDepths{Rank: rank})
	}
	if !errors.Is(live.Err(), errTracks) {
		t.Error(live.Err())
	}
}

// TestCalls: calls are slices on a track of their rank, including calls posted before the first packet and pending
// calls. The live trace contains each call when the call ends, and pending calls at the end of the trace.
func TestCalls(t *testing.T) {
	var file bytes.Buffer
	w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
	send := packetOf(2, 0, 1,
		protocol.ExtHeader{Type: protocol.Data, Flags: protocol.FlagEager, Number: 1, Message: 1, Length: 4}, "abcd")
	if err := w.WriteUnit(&send); err != nil {
		t.Fatal(err)
	}
	at := func(ms int) time.Time { return time.Unix(1000, int64(ms)*1e6).UTC() }
	for _, c := range []pcapng.Call{
		{Time: at(1), Rank: 1, ID: 1, Name: pcapng.ReceiveCall, State: pcapng.CallPosted, Peer: -1, Tag: -1, Bytes: 100},
		{Time: at(2), Rank: 0, Name: pcapng.SendCall, State: pcapng.CallCompleted, Peer: 1, Bytes: 4},
		{Time: at(2), Rank: 1, ID: 2, Name: pcapng.ReceiveCall, State: pcapng.CallPosted, Tag: 9, Bytes: 100},
		{Time: at(3), Rank: 1, ID: 1, Name: pcapng.ReceiveCall, State: pcapng.CallCompleted, Duration: 2 * time.Millisecond,
			Bytes: 4},
		{Time: at(4), Rank: 0, ID: 2, Name: "Allreduce", State: pcapng.CallPosted, Peer: -1, Tag: 1, Bytes: 4096},
		{Time: at(7), Rank: 0, ID: 2, Name: "Allreduce", State: pcapng.CallFailed, Duration: 3 * time.Millisecond, Peer: -1,
			Tag: 1, Bytes: 4096},
	} {
		w.AddNote(&c)
	}
	w.WriteEnd(&pcapng.EndRecord{Time: at(9)})
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	golden(t, "calls", written(t, file.Bytes()))
	var trace bytes.Buffer
	live := NewLive(&trace, protocol.CloudFPGA)
	src, err := capture.Options{OnNote: live.AddNote}.NewReader(bytes.NewReader(file.Bytes()), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := live.ProcessAll(src); err != nil || live.Err() != nil {
		t.Fatal(err, live.Err())
	}
	golden(t, "calls_live", trace.Bytes())
	if n := len(opened(t, trace.Bytes())); n > 0 {
		t.Errorf("%d slices have no end", n)
	}
}

// TestOpenCallsAreBounded: memory is limited even if a file claims more and more pending calls.
func TestOpenCallsAreBounded(t *testing.T) {
	live := NewLive(io.Discard, protocol.CloudFPGA)
	for id := range int64(2 * maxOpenCalls) {
		live.AddNote(&pcapng.Call{ID: id, Name: pcapng.SendCall, State: pcapng.CallPosted})
	}
	if n := len(live.trace.calls); n != maxOpenCalls || live.Err() != nil {
		t.Error(n, live.Err())
	}
}
