package capture

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// ipOf returns the IP packet in a frame from one of the recorded captures.
func ipOf(frame []byte) []byte { return frame[14:] }

// encapsulations lists ways to wrap an IP packet in frames of a link type.
var encapsulations = []struct {
	name     string
	linkType int
	wrap     func(ip []byte) [][]byte
	// frames is the number of frames for each packet, or 0 if the number varies.
	frames int
}{
	{"null", capturetest.Null, linkOnly(capturetest.Null), 1},
	{"loop", capturetest.Loop, linkOnly(capturetest.Loop), 1},
	{"ethernet", capturetest.Ethernet, linkOnly(capturetest.Ethernet), 1},
	{"vlan", capturetest.Ethernet, linkOnly(capturetest.Ethernet, 7), 1},
	{"qinq", capturetest.Ethernet, linkOnly(capturetest.Ethernet, 7, 8), 1},
	{"sll", capturetest.SLL, linkOnly(capturetest.SLL), 1},
	{"sll vlan", capturetest.SLL, linkOnly(capturetest.SLL, 7), 1},
	{"sll2", capturetest.SLL2, linkOnly(capturetest.SLL2), 1},
	{"raw", capturetest.Raw, linkOnly(capturetest.Raw), 1},
	{"raw 12", capturetest.RawBSD, linkOnly(capturetest.RawBSD), 1},
	{"raw 14", capturetest.RawOpen, linkOnly(capturetest.RawOpen), 1},
	{"ipv4", capturetest.IPv4, linkOnly(capturetest.IPv4), 1},
	{"ip options", capturetest.Raw, func(ip []byte) [][]byte {
		b := bytes.Clone(ip[:20])
		b[0] = 0x47 // two words of options
		b = append(b, 1, 1, 1, 1, 1, 1, 1, 0)
		b[2], b[3] = byte((len(ip)+8)>>8), byte(len(ip)+8)
		return [][]byte{append(b, ip[20:]...)}
	}, 1},
	{"segmentation offload: no total length", capturetest.Raw, func(ip []byte) [][]byte {
		b := bytes.Clone(ip)
		b[2], b[3] = 0, 0
		return [][]byte{b}
	}, 1},
	{"trailing padding", capturetest.Ethernet, func(ip []byte) [][]byte {
		return [][]byte{append(capturetest.Frame(capturetest.Ethernet, ip), "padding and checksum"...)}
	}, 1},
	{"vxlan", capturetest.Ethernet, func(ip []byte) [][]byte {
		return [][]byte{capturetest.Frame(capturetest.Ethernet, inVXLAN(ip, vtepB))}
	}, 1},
	{"vxlan on Linux's port", capturetest.SLL, func(ip []byte) [][]byte {
		return [][]byte{capturetest.Frame(capturetest.SLL, inVXLAN(ip, netip.AddrPortFrom(vtepB.Addr(), 8472)))}
	}, 1},
	{"vxlan in vxlan", capturetest.Ethernet, func(ip []byte) [][]byte {
		return [][]byte{capturetest.Frame(capturetest.Ethernet, inVXLAN(inVXLAN(ip, vtepB), vtepB), 4)}
	}, 1},
	{"fragments", capturetest.Ethernet, fragmented(capturetest.Ethernet, false), 0},
	{"fragments, last one first", capturetest.Raw, fragmented(capturetest.Raw, true), 0},
	{"fragments of vxlan of fragments", capturetest.Ethernet, func(ip []byte) [][]byte {
		var frames [][]byte
		nextID++
		for _, inner := range capturetest.Fragments(ip, nextID, pieceOf(ip)) {
			nextID++
			for _, outer := range capturetest.Fragments(inVXLAN(inner, vtepB), nextID, 256) {
				frames = append(frames, capturetest.Frame(capturetest.Ethernet, outer))
			}
		}
		return frames
	}, 0},
}

// nextID numbers fragmented packets.
var nextID uint32

func linkOnly(linkType int, vlans ...uint16) func([]byte) [][]byte {
	return func(ip []byte) [][]byte { return [][]byte{capturetest.Frame(linkType, ip, vlans...)} }
}

func inVXLAN(ip []byte, vtep netip.AddrPort) []byte {
	return capturetest.VXLAN(vtepA, vtep, 42, capturetest.Frame(capturetest.Ethernet, ip))
}

// pieceOf returns a fragment length small enough to split the packet.
func pieceOf(ip []byte) int {
	if len(ip) < 500 {
		return 16
	}
	return 424
}

func fragmented(linkType int, backwards bool) func([]byte) [][]byte {
	return func(ip []byte) [][]byte {
		var frames [][]byte
		nextID++
		for _, f := range capturetest.Fragments(ip, nextID, pieceOf(ip)) {
			f = capturetest.Frame(linkType, f)
			if backwards {
				frames = append([][]byte{f}, frames...)
			} else {
				frames = append(frames, f)
			}
		}
		return frames
	}
}

// Every encapsulation and file format yields the same units.
func TestEncapsulations(t *testing.T) {
	for name, c := range recordings(t) {
		want := mustRead(t, c.Pcap(capturetest.Format{Nano: true}))
		if len(want) != len(c.Packets) {
			t.Fatalf("%s: %d units of %d packets", name, len(want), len(c.Packets))
		}
		for _, e := range encapsulations {
			t.Run(name+"/"+e.name, func(t *testing.T) {
				m := c.Map(e.linkType, func(frame []byte) [][]byte { return e.wrap(ipOf(frame)) })
				for _, file := range [][]byte{
					m.Pcap(capturetest.Format{Nano: true}),
					m.Pcapng(capturetest.Format{BigEndian: true}),
				} {
					got := mustRead(t, file)
					if e.frames == 0 {
						if len(m.Packets) <= len(c.Packets) {
							t.Fatal("nothing is fragmented")
						}
						last := int64(0)
						for i := range got {
							if got[i].Packet <= last {
								t.Fatalf("unit %d is of packet %d, after one of %d", i, got[i].Packet, last)
							}
							ip := ipOf(c.Packets[min(i, len(want)-1)].Data)
							if n, longest := got[i].Fragments,
								got[i].LongestFragment; (n > 1) != (len(ip)-20 > pieceOf(ip)) || longest > pieceOf(ip) {
								t.Fatalf("unit %d of %d bytes came in %d fragments of at most %d bytes", i, len(ip), n,
									longest)
							}
							got[i].Fragments, got[i].LongestFragment = 0, 0
							last = got[i].Packet
							got[i].Packet = want[min(i, len(want)-1)].Packet
						}
					}
					same(t, got, want)
				}
			})
		}
	}
}

// TestFragmentsAreReportedOnce: fragments are reported once for each flow. Fragments of a tunnel's packets are not
// reported, because the end of the tunnel reassembles them.
func TestFragmentsAreReportedOnce(t *testing.T) {
	tunnel := func(ip []byte) [][]byte {
		var frames [][]byte
		nextID++
		for _, outer := range capturetest.Fragments(inVXLAN(ip, vtepB), nextID, 424) {
			frames = append(frames, capturetest.Frame(capturetest.Ethernet, outer))
		}
		return frames
	}
	for name, tt := range map[string]struct {
		wrap func(ip []byte) [][]byte
		want int // one for each direction
	}{"fragments": {fragmented(capturetest.Ethernet, false), 2}, "fragments of a tunnel": {tunnel, 0}} {
		c := capturetest.New(capturetest.Ethernet)
		for i := range 3 {
			c.AddMessage(time.Unix(int64(1e9+i), 0), capturetest.Message{
				Src: 0, Dst: 1, From: netip.MustParseAddrPort("10.0.0.1:2718"),
				To:    netip.MustParseAddrPort("10.0.0.2:2718"),
				Words: 300, Shape: protocol.CPUShape(),
			})
		}
		wrapped := c.Map(capturetest.Ethernet, func(frame []byte) [][]byte { return tt.wrap(ipOf(frame)) })
		src, err := Options{}.NewReader(bytes.NewReader(wrapped.Pcap(capturetest.Format{})), name)
		if err != nil {
			t.Fatal(err)
		}
		a := NewAnalysis(name, AnalysisOptions{})
		if err := a.Analyze(src); err != nil {
			t.Fatal(err)
		}
		if n := a.perKind[FragmentedPacket]; n != tt.want || len(a.findings) != n || a.all.Complete != 3 {
			t.Errorf("%s: %d findings of fragments, want %d; %+v", name, n, tt.want, a.findings)
		}
	}
}
