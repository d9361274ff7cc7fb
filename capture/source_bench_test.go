package capture

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// BenchmarkSource measures how fast generated recordings are decoded from memory.
func BenchmarkSource(b *testing.B) {
	var mixed bytes.Buffer
	if _, err := capturetest.Generate(&mixed, 64<<20, 1); err != nil {
		b.Fatal(err)
	}
	c := capturetest.New(capturetest.Ethernet)
	tunnel, stream := capturetest.New(capturetest.Ethernet), capturetest.New(capturetest.Ethernet)
	for i := range 100_000 {
		at := noon.Add(time.Duration(i) * time.Microsecond)
		c.AddUDP(at, addrA, addrB, make([]byte, 32))
		tunnel.AddIP(at, inVXLAN(capturetest.UDP(addrA, addrB, make([]byte, 1416)), vtepB))
		stream.AddTCP(at, addrA, addrB, capturetest.Segment{Seq: uint32(i * 1448), Payload: make([]byte, 1448)})
	}
	for _, k := range []struct {
		name string
		file []byte
	}{
		{"mixed", mixed.Bytes()},
		{"headers", c.Pcap(capturetest.Format{})},
		{"headers/pcapng", c.Pcapng(capturetest.Format{})},
		{"vxlan", tunnel.Pcap(capturetest.Format{})},
		{"tcp", stream.Pcap(capturetest.Format{})},
		{"mixed/gzip", capturetest.Gzip(mixed.Bytes()[:8<<20])},
	} {
		b.Run(k.name, func(b *testing.B) {
			b.SetBytes(int64(len(k.file)))
			b.ReportAllocs()
			var packets int64
			for b.Loop() {
				s, err := Options{}.NewReader(bytes.NewReader(k.file), k.name)
				if err != nil {
					b.Fatal(err)
				}
				var u pcapng.Unit
				for err == nil {
					err = s.Next(&u)
				}
				if k.name != "mixed/gzip" && err != io.EOF {
					b.Fatal(err)
				}
				packets += s.Stats().Packets
			}
			b.ReportMetric(float64(packets)/b.Elapsed().Seconds(), "packets/s")
		})
	}
}
