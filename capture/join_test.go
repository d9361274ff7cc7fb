package capture_test

import (
	"bytes"
	"context"
	"encoding/binary"
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
