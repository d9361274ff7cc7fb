package capture

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// checkStream checks that the units contain the bytes sent, at positions determined by the units' gaps.
func checkStream(t *testing.T, sent []byte, units []pcapng.Unit) (got, gaps int) {
	t.Helper()
	at := 0
	for i, u := range units {
		if u.Restart != (i == 0) || u.Proto != pcapng.TCP || u.Src != addrA || u.Dst != addrB {
			t.Fatalf("unit %d of %d: %+v", i, len(units), u)
		}
		if u.Gap < 0 || u.Truncated < 0 || len(u.Data)+u.Truncated == 0 {
			t.Fatalf("unit %d: gap %d, %d bytes, truncated %d", i, u.Gap, len(u.Data), u.Truncated)
		}
		at += u.Gap
		gaps += u.Gap
		if at+len(u.Data) > len(sent) || !bytes.Equal(u.Data, sent[at:at+len(u.Data)]) {
			t.Fatalf("unit %d: wrong bytes at %d", i, at)
		}
		at += len(u.Data) + u.Truncated
		got += len(u.Data)
	}
	return got, gaps
}

// A stream whose segments are reordered, retransmitted and partly lost is restored, with gaps exactly where nothing was
// recorded.
func TestReassemblyProperty(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		sent := pattern(1 + r.IntN(20000))
		first := r.Uint32() // sequence numbers wrap in some
		if seed%3 == 0 {
			first = uint32(-r.IntN(len(sent)))
		}
		var segments []capturetest.Segment
		lost := make([]bool, len(sent)) // by byte
		for at := 0; at < len(sent); {
			n := min(1+r.IntN(1448), len(sent)-at)
			s := capturetest.Segment{Seq: first + 1 + uint32(at), Flags: capturetest.ACK, Payload: sent[at : at+n]}
			copies := 1
			switch k := r.IntN(10); {
			case seed%2 == 0 && k == 0:
				copies = 0
				for i := at; i < at+n; i++ {
					lost[i] = true
				}
			case k == 1:
				copies = 2
			}
			for range copies {
				segments = append(segments, s)
			}
			if copies > 0 && at > 0 && r.IntN(10) == 0 { // a retransmission with other segments
				from := r.IntN(at)
				to := min(at+n, from+1+r.IntN(3000))
				segments = append(segments, capturetest.Segment{Seq: first + 1 + uint32(from), Payload: sent[from:to]})
				for i := from; i < to; i++ {
					lost[i] = false
				}
			}
			at += n
		}
		for range r.IntN(len(segments) + 1) {
			i := r.IntN(len(segments))
			j := min(i+r.IntN(8), len(segments)-1)
			segments[i], segments[j] = segments[j], segments[i]
		}
		c := capturetest.New(capturetest.Raw).AddTCP(noon, addrA, addrB,
			capturetest.Segment{Seq: first, Flags: capturetest.SYN})
		for i, s := range segments {
			c.AddTCP(noon.Add(time.Duration(i)*time.Microsecond), addrA, addrB, s)
		}
		units, stats, err := readAll(t, Options{}, c.Pcap(capturetest.Format{}))
		if err != io.EOF {
			t.Fatal(err)
		}
		missing := 0
		for end := len(sent) - 1; end >= 0 && lost[end]; end-- {
			missing-- // the end of the stream is unknown
		}
		for _, l := range lost {
			if l {
				missing++
			}
		}
		got, gaps := checkStream(t, sent, units)
		want := len(sent)
		for _, l := range lost {
			if l {
				want--
			}
		}
		if got != want || gaps != missing {
			t.Fatalf("seed %d: %d bytes of %d, gaps of %d of %d bytes, %+v", seed, got, want, gaps, missing, stats)
		}
	}
}

// streamOf returns a recording of segments. Each segment is given as a range of bytes in a pattern.
func streamOf(at time.Time, seq uint32, pieces ...[2]int) *capturetest.Capture {
	c := capturetest.New(capturetest.Raw)
	sent := pattern(4096)
	for _, p := range pieces {
		c.AddTCP(at, addrA, addrB, capturetest.Segment{Seq: seq + uint32(p[0]), Payload: sent[p[0]:p[1]]})
	}
	return c
}

func describe(units []pcapng.Unit) []string {
	var s []string
	for _, u := range units {
		d := fmt.Sprintf("%d:%d", u.Packet, len(u.Data))
		if u.Gap > 0 {
			d += fmt.Sprintf(" gap %d", u.Gap)
		}
		if u.Restart {
			d += " restart"
		}
		s = append(s, d)
	}
	return s
}

func expect(t *testing.T, what string, c *capturetest.Capture, want ...string) []pcapng.Unit {
	t.Helper()
	units := mustRead(t, c.Pcap(capturetest.Format{}))
	if got := describe(units); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
	return units
}

func TestReassembly(t *testing.T) {
	const seq = 1 << 31
	expect(t, "in order", streamOf(noon, seq, [2]int{0, 10}, [2]int{10, 30}, [2]int{30, 31}), "1:10 restart", "2:20",
		"3:1")
	expect(t, "retransmitted", streamOf(noon, seq, [2]int{0, 10}, [2]int{0, 10}, [2]int{5, 30}, [2]int{2, 30}),
		"1:10 restart", "3:20")
	units := expect(t, "swapped", streamOf(noon, seq, [2]int{0, 10}, [2]int{20, 30}, [2]int{30, 40}, [2]int{10, 20}),
		"1:10 restart", "4:10", "4:10", "4:10")
	checkStream(t, pattern(40), units)
	expect(t, "a hole at the end", streamOf(noon, seq, [2]int{0, 10}, [2]int{20, 30}, [2]int{30, 35}, [2]int{36, 40}),
		"1:10 restart", "2:10 gap 10", "3:5", "4:4 gap 1")
	expect(t, "overlap behind a hole",
		streamOf(noon, seq, [2]int{0, 10}, [2]int{20, 40}, [2]int{15, 25}, [2]int{20, 30}, [2]int{10, 16}),
		"1:10 restart", "5:6", "5:9", "5:15")
}

// A hole is skipped after holeAge, and the rest of the stream continues.
func TestHoleAge(t *testing.T) {
	c := streamOf(noon, 0, [2]int{0, 10}, [2]int{20, 30})
	c.AddUDP(noon.Add(holeAge), addrB, addrA, make([]byte, 5))
	c.AddUDP(noon.Add(holeAge+time.Microsecond), addrB, addrA, make([]byte, 6))
	c.AddTCP(noon.Add(holeAge+time.Second), addrA, addrB, capturetest.Segment{Seq: 10, Payload: make([]byte, 10)})
	c.AddTCP(noon.Add(holeAge+time.Second), addrA, addrB, capturetest.Segment{Seq: 30, Payload: make([]byte, 4)})
	units := expect(t, "hole", c, "1:10 restart", "3:5", "4:6", "2:10 gap 10", "6:4")
	if units[3].Time != noon {
		t.Errorf("the unit behind the gap is of %v", units[3].Time)
	}
}

func TestRestart(t *testing.T) {
	syn := func(c *capturetest.Capture, seq uint32) *capturetest.Capture {
		return c.AddTCP(noon, addrA, addrB, capturetest.Segment{Seq: seq, Flags: capturetest.SYN})
	}
	data := func(c *capturetest.Capture, seq uint32, n int) *capturetest.Capture {
		return c.AddTCP(noon, addrA, addrB, capturetest.Segment{Seq: seq, Payload: make([]byte, n)})
	}
	create := func() *capturetest.Capture { return capturetest.New(capturetest.Raw) }
	expect(t, "SYN", data(syn(create(), 99), 100, 10), "2:10 restart")
	expect(t, "SYN twice", data(syn(syn(create(), 99), 99), 100, 10), "3:10 restart")
	expect(t, "SYN again behind the data", data(syn(data(syn(create(), 99), 100, 10), 99), 110, 5), "2:10 restart",
		"4:5")
	expect(t, "new connection", data(syn(data(syn(create(), 99), 100, 10), 5000), 5001, 7), "2:10 restart",
		"4:7 restart")
	expect(t, "the first segment is missing", data(syn(create(), 99), 120, 10), "2:10 gap 20 restart")
	expect(t, "a hole in the old connection", data(syn(data(data(syn(create(), 99), 100, 10), 120, 3), 5000), 5001, 7),
		"2:10 restart", "3:3 gap 10", "5:7 restart")
	expect(t, "old hole, new data in the SYN",
		data(data(create(), 100, 10), 120, 3).AddTCP(noon, addrA, addrB,
			capturetest.Segment{Seq: 9, Flags: capturetest.SYN, Payload: []byte("abc")}),
		"1:10 restart", "2:3 gap 10", "3:3 restart")
	expect(t, "new connection without SYN", data(data(create(), 100, 10), 1<<30, 7), "1:10 restart", "2:7 restart")
	expect(t, "back without SYN", data(data(create(), 1<<30, 10), 100, 7), "1:10 restart", "2:7 restart")
}

func TestTruncatedSegments(t *testing.T) {
	c := streamOf(noon, 0, [2]int{0, 100}, [2]int{50, 150}, [2]int{200, 300}, [2]int{150, 200}).Truncate(40 + 60)
	units := mustRead(t, c.Pcap(capturetest.Format{}))
	checkStream(t, pattern(300), units)
	var s []string
	for _, u := range units {
		s = append(s, fmt.Sprint(len(u.Data), "+", u.Truncated))
	}
	if want := []string{"60+40", "10+40", "50+0", "60+40"}; !slices.Equal(s, want) {
		t.Errorf("%q, want %q", s, want)
	}
}

// The memory for streams is limited, whether they have holes or not.
func TestReassemblyBounds(t *testing.T) {
	r := newReassembler()
	var u pcapng.Unit
	units := 0
	popAll := func() {
		for r.pop(&u) {
			units++
		}
	}
	piece := make([]byte, 1000)
	const streams, each = 40, 3000
	for i := range streams * each {
		f := tcpFlow{netip.AddrPortFrom(addrA.Addr(), uint16(i%streams)), addrB}
		seq := uint32(i / streams * 2000) // every second piece is missing
		if r.addSegment(f, tcpSegment{seq: seq, data: piece, time: noon}, false, &u) == gotUnit {
			units++
		}
		popAll()
		if r.heldBytes > maxHeldTotal {
			t.Fatalf("%d bytes are held", r.heldBytes)
		}
		if s := r.streams[f]; s.heldBytes > maxHeldStream {
			t.Fatalf("%d bytes of a stream are held", s.heldBytes)
		}
	}
	if r.heldBytes < maxHeldTotal/2 {
		t.Errorf("only %d bytes are held: the test reaches no bound", r.heldBytes)
	}
	r.skipAll()
	popAll()
	if r.heldBytes != 0 || r.holes.Len() != 0 || units != streams*each {
		t.Errorf("%d bytes in %d streams are held at the end; %d units of %d", r.heldBytes, r.holes.Len(), units,
			streams*each)
	}

	r = newReassembler()
	for i := range maxStreams + 100 {
		a := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		r.addSegment(tcpFlow{netip.AddrPortFrom(a, 2718), addrB}, tcpSegment{data: piece[:1]}, false, &u)
	}
	oldest := tcpFlow{netip.AddrPortFrom(netip.MustParseAddr("10.0.0.99"), 2718), addrB}
	if len(r.streams) != maxStreams || r.recent.Len() != maxStreams || r.streams[oldest] != nil {
		t.Errorf("%d streams, %d in order", len(r.streams), r.recent.Len())
	}
}

// Evicting a stream delivers its held segments.
func TestEvictionDelivers(t *testing.T) {
	r := newReassembler()
	var u pcapng.Unit
	f := tcpFlow{addrA, addrB}
	r.addSegment(f, tcpSegment{seq: 0, data: []byte("a")}, false, &u)
	r.addSegment(f, tcpSegment{seq: 5, data: []byte("bc"), packet: 2}, false, &u)
	r.evict(r.streams[f])
	if !r.pop(&u) || u.Gap != 4 || string(u.Data) != "bc" || u.Packet != 2 || r.heldBytes != 0 || r.holes.Len() != 0 {
		t.Errorf("%+v, %d held", u, r.heldBytes)
	}
}
