package capture

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	return b
}

// Fragments that arrive in any order, some of them twice, yield the datagram once.
func TestFragmentsInAnyOrder(t *testing.T) {
	payload := pattern(1400)
	r := rand.New(rand.NewPCG(1, 1))
	for _, ip := range [][]byte{capturetest.UDP(addrA, addrB, payload), capturetest.UDP(addrA6, addrB6, payload)} {
		for range 300 {
			f := capturetest.Fragments(ip, 5, 8*(1+r.IntN(40)))
			n := len(f)
			// Duplicates come before the last fragment, because a later one would start another datagram.
			r.Shuffle(n, func(i, j int) { f[i], f[j] = f[j], f[i] })
			c := capturetest.New(capturetest.Raw)
			dups := 0
			for i, frag := range f {
				c.AddIP(noon, frag)
				if i < n-1 && r.IntN(4) == 0 {
					c.AddIP(noon, f[r.IntN(i+1)])
					dups++
				}
			}
			units, stats, err := readAll(t, Options{}, c.Pcap(capturetest.Format{}))
			if err != io.EOF || len(units) != 1 || !bytes.Equal(units[0].Data, payload) ||
				units[0].Packet != int64(n+dups) {
				t.Fatalf("%d fragments: %d units, %v", n, len(units), err)
			}
			if stats.Skipped["ip_fragment"] != int64(dups) {
				t.Fatalf("%d duplicates, skipped %v", dups, stats.Skipped)
			}
		}
	}
}

func TestIncompleteFragments(t *testing.T) {
	ip := capturetest.UDP(addrA, addrB, pattern(1400))
	f := capturetest.Fragments(ip, 5, 480) // 480 + 480 + 448 bytes
	head := ip[:20]
	other := capturetest.UDP(addrA, addrB, []byte("another datagram"))
	late := noon.Add(fragmentAge + time.Microsecond)
	for name, c := range map[string]struct {
		c       *capturetest.Capture
		units   int
		skipped int64
	}{
		"first is missing": {capturetest.New(101).AddIP(noon, f[1], f[2]), 0, 2},
		"last is missing":  {capturetest.New(101).AddIP(noon, f[0], f[1]), 0, 2},
		"too late":         {capturetest.New(101).AddIP(noon, f[0], f[1]).AddIP(late, f[2]), 0, 3},
		"just in time":     {capturetest.New(101).AddIP(noon, f[0], f[1]).AddIP(noon.Add(fragmentAge), f[2]), 1, 0},
		"time goes back":   {capturetest.New(101).AddIP(noon, f[0], f[1]).AddIP(noon.Add(-time.Hour), f[2]), 1, 0},
		"overlap in part": {capturetest.New(101).AddIP(noon, f[0],
			capturetest.Fragment(head, 5, 472, true, make([]byte, 488)), f[1], f[2]), 0, 4},
		"around another": {capturetest.New(101).AddIP(noon, f[1],
			capturetest.Fragment(head, 5, 472, true, make([]byte, 496)), f[0], f[2]), 0, 4},
		"within another, of other bytes": {capturetest.New(101).AddIP(noon, f[0],
			capturetest.Fragment(head, 5, 8, true, make([]byte, 8)), f[1], f[2]), 1, 1},
		"two ends": {capturetest.New(101).AddIP(noon, f[2],
			capturetest.Fragment(head, 5, 480, false, make([]byte, 100)), f[0], f[1]), 0, 4},
		"behind the end": {capturetest.New(101).AddIP(noon, f[2],
			capturetest.Fragment(head, 5, 1408, true, make([]byte, 8)), f[0], f[1]), 0, 4},
		"another source": {capturetest.New(101).AddIP(noon, f[0], f[1],
			capturetest.Fragments(capturetest.UDP(addrB, addrA, pattern(1400)), 5, 480)[2]), 0, 3},
		"another number": {capturetest.New(101).AddIP(noon, f[0], f[1], capturetest.Fragments(ip, 6, 480)[2]), 0,
			3},
		"others in between":   {capturetest.New(101).AddIP(noon, f[0], other, f[1], other, f[2]), 3, 0},
		"twice, one by one":   {capturetest.New(101).AddIP(noon, f...).AddIP(noon, f...), 2, 0},
		"first cut in pieces": {capturetest.New(101).AddIP(noon, capturetest.Fragments(ip, 7, 8)...), 1, 0},
	} {
		units, stats, err := readAll(t, Options{}, c.c.Pcap(capturetest.Format{}))
		if err != io.EOF || len(units) != c.units || stats.Skipped["ip_fragment"] != c.skipped {
			t.Errorf("%s: %d units, skipped %v, %v", name, len(units), stats.Skipped, err)
		}
	}
}

// The recorded part of a datagram ends at the first fragment that the recorder truncated.
func TestTruncatedFragments(t *testing.T) {
	payload := pattern(1400)
	f := capturetest.Fragments(capturetest.UDP(addrA, addrB, payload), 5, 480)
	c := capturetest.New(capturetest.Raw).AddIP(noon, f...).Truncate(20 + 100)
	units := mustRead(t, c.Pcap(capturetest.Format{}))
	if len(units) != 1 || !bytes.Equal(units[0].Data, payload[:92]) || units[0].Truncated != 1400-92 {
		t.Errorf("%+v", units)
	}
}

// The memory for incomplete datagrams is limited, and the oldest datagram is dropped first.
func TestFragmentBounds(t *testing.T) {
	d := &defragmenter{}
	add := func(id uint32, off int, more bool) (decodeResult, int64) {
		_, v, lost := d.addFragment(&fragment{key: fragKey{id: id}, offset: off, more: more, data: make([]byte, 8),
			length: 8},
			noon)
		return v, lost
	}
	var lost int64
	for id := range uint32(10000) {
		v, n := add(id, 65520, true)
		if v != unitPending {
			t.Fatalf("fragment %d: verdict %d", id, v)
		}
		lost += n
	}
	if len(d.pending) != maxDatagrams || len(d.free) > 1 || lost != 10000-maxDatagrams {
		t.Errorf("%d pending, %d free, %d lost", len(d.pending), len(d.free), lost)
	}
	if d.pending[0].key.id != 10000-maxDatagrams {
		t.Errorf("the oldest is %d", d.pending[0].key.id)
	}
	// Send every second piece, which makes more holes than allowed.
	spans := 0
	for off := 0; off < 16*1000; off += 16 {
		add(20000, off, true)
		spans = max(spans, len(d.pending[len(d.pending)-1].spans))
	}
	if spans != maxSpans {
		t.Errorf("up to %d holes, want %d", spans, maxSpans)
	}
}
