package capture

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// FuzzSource reads arbitrary files. Reading must not panic, hang or exceed the memory limits, and the counts must be
// consistent.
func FuzzSource(f *testing.F) {
	for _, c := range recordings(f) {
		c.Packets = c.Packets[:6]
		f.Add(c.Pcap(capturetest.Format{}))
		f.Add(c.Pcapng(capturetest.Format{BigEndian: true}))
	}
	c := capturetest.New(capturetest.Ethernet)
	for i := range 3 {
		at := noon.Add(time.Duration(i) * time.Second)
		c.AddIP(at, inVXLAN(capturetest.UDP(addrA, addrB, pattern(40)), vtepB))
		c.AddIP(at, capturetest.Fragments(capturetest.UDP(addrA, addrB, pattern(100)), uint32(i), 40)...)
		c.AddIP(at, capturetest.Fragments(capturetest.UDP(addrA6, addrB6, pattern(100)), uint32(i), 40)...)
		c.AddTCP(at, addrA, addrB, capturetest.Segment{Seq: uint32(i * 20), Payload: pattern(10)})
		c.Add(at, capturetest.Frame(capturetest.Ethernet, capturetest.UDP(addrA, addrB, nil), 1, 2))
	}
	f.Add(c.Pcap(capturetest.Format{Nano: true}))
	f.Add(c.Pcapng(capturetest.Format{}))
	for _, z := range squeezed(f, c.Pcap(capturetest.Format{})) {
		f.Add(z)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		before := allocated()
		s, err := Options{AllPorts: true}.NewReader(bytes.NewReader(file), "fuzz")
		if err != nil {
			var cut *TruncatedError
			var format *FormatError
			if !errors.As(err, &cut) && !errors.As(err, &format) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		var u pcapng.Unit
		var units, bytes int64
		for err = s.Next(&u); err == nil; err = s.Next(&u) {
			units++
			bytes += int64(len(u.Data))
			if u.Gap < 0 || u.Truncated < 0 || u.Packet < 1 || !u.Src.IsValid() || !u.Dst.IsValid() ||
				(u.Proto != pcapng.UDP && u.Proto != pcapng.TCP) {
				t.Fatalf("%+v", u)
			}
		}
		stats := s.Stats()
		var skipped int64
		for _, n := range stats.Skipped {
			skipped += n
		}
		if stats.Units != units || units > stats.Packets || skipped+units > stats.Packets ||
			(units > 0 && bytes > stats.Bytes) {
			t.Fatalf("%d units of %d bytes, %+v", units, bytes, stats)
		}
		var cut *TruncatedError
		var format *FormatError
		if !errors.Is(err, io.EOF) && !errors.As(err, &cut) && !errors.As(err, &format) {
			t.Fatalf("untyped error %v", err)
		}
		// Memory for the window, the decompressor, and fragments of 64 KiB.
		bound := uint64(16 << 20)
		if z := s.(*source).format; z == "xz" || z == "zstd" {
			bound += 6*maxWindow + maxWindowPerByte*uint64(len(file))
		}
		if n := allocated() - before; n > bound {
			t.Fatalf("%d bytes allocated for a file of %d", n, len(file))
		}
	})
}
