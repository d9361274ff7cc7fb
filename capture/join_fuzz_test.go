package capture

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// FuzzJoin joins arbitrary files. Joining must not panic, hang or exceed the memory limits, and the counts must be
// consistent.
func FuzzJoin(f *testing.F) {
	for _, c := range recordings(f) {
		c.Packets = c.Packets[:6]
		whole := c.Pcap(capturetest.Format{})
		for i := range c.Packets {
			c.Packets[i].Time = c.Packets[i].Time.Add(300e6)
		}
		f.Add(whole, c.Pcapng(capturetest.Format{}))
		f.Add(whole, c.Drop(2).Truncate(64).Pcap(capturetest.Format{}))
	}
	c := capturetest.New(capturetest.Ethernet)
	for i := range 3 {
		c.AddTCP(noon, addrA, addrB, capturetest.Segment{Seq: uint32(i * 20), Payload: pattern(10)})
		c.AddUDP(noon, addrA, addrB, make([]byte, 5000))
	}
	f.Add(c.Pcap(capturetest.Format{}), c.Pcap(capturetest.Format{}))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, first, second []byte) {
		var paths []string
		for i, b := range [][]byte{first, second} {
			path := filepath.Join(dir, string(rune('a'+i)))
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		before := allocated()
		s, err := Options{AllPorts: true}.OpenFiles(context.Background(), paths)
		if err != nil {
			return
		}
		defer s.Close()
		tracker := NewTracker(TrackerOptions{OnEvent: func(e *Event) {
			if e.Text() == "" {
				t.Fatalf("%+v", e)
			}
			e.JSON()
		}})
		var u pcapng.Unit
		number := int64(0)
		for err = s.Next(&u); err == nil; err = s.Next(&u) {
			if number++; u.Packet != number || u.Gap < 0 || u.Truncated < 0 {
				t.Fatalf("%+v is unit %d", u, number)
			}
			if u.Proto == pcapng.UDP && (u.Trail == nil || len(u.Trail.Sightings) == 0 ||
				(u.Trail.Fate == pcapng.FateLost) != (u.Trail.From != "" && u.Trail.Fate != pcapng.FateCopied)) {
				t.Fatalf("%+v", u.Trail)
			}
			tracker.ProcessUnit(&u)
		}
		tracker.Finish()
		var cut *TruncatedError
		var format *FormatError
		if !errors.Is(err, io.EOF) && !errors.As(err, &cut) && !errors.As(err, &format) {
			t.Fatalf("untyped error %v", err)
		}
		j := s.Stats().Joined
		var seen int64
		for _, v := range j.Vantages {
			seen += v.Packets
		}
		if j.Common > j.Packets || j.Packets > seen+number {
			t.Fatalf("%d units, %+v", number, j)
		}
		if n := allocated() - before; n > 64<<20+16*uint64(len(first)+len(second)) {
			t.Fatalf("%d bytes allocated for files of %d and %d", n, len(first), len(second))
		}
	})
}
