package modeltest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// capturesDir is the directory that holds the captures. The path is relative to the directory of a package next to this
// one.
const capturesDir = "../../capture/testdata/captures"

// RecordedPacket is a packet in a capture. At is the time since the first packet; From and To are ranks.
type RecordedPacket struct {
	At       time.Duration
	From, To int
	Bytes    []byte
}

// ReadCapture decodes the capture of the given name. The last byte of a rank's address is the rank plus one.
func ReadCapture(t *testing.T, name string) []RecordedPacket {
	t.Helper()
	f, err := os.Open(filepath.Join(capturesDir, name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	reader, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var packets []RecordedPacket
	var first time.Time
	for {
		frame, ci, err := reader.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return packets
		}
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = ci.Timestamp
		}
		p := gopacket.NewPacket(frame, reader.LinkType(), gopacket.NoCopy)
		ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		udp, ok2 := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
		if !ok || !ok2 || udp.SrcPort != protocol.Port || udp.DstPort != protocol.Port {
			t.Fatalf("packet %d is not ZRLMPI over UDP: %v", len(packets), p)
		}
		packets = append(packets, RecordedPacket{
			At:   ci.Timestamp.Sub(first),
			From: int(ip.SrcIP.To4()[3]) - 1, To: int(ip.DstIP.To4()[3]) - 1,
			Bytes: udp.Payload,
		})
	}
}

// CheckCoverage fails the test unless names lists exactly the captures in the directory.
func CheckCoverage(t *testing.T, names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(capturesDir, "*.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, f := range files {
		have = append(have, filepath.Base(f))
	}
	for _, name := range names {
		want = append(want, name+".pcap")
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Fatalf("captures %q, replays %q", have, want)
	}
}

// SentPacket is a packet that a model sent to a rank.
type SentPacket struct {
	To    int
	At    time.Duration
	Bytes []byte
}

// CompareCapture fails the test unless a rank sent exactly the recorded packets, in order, each no later than recorded
// and at most slack earlier.
func CompareCapture(t *testing.T, rank int, sent []SentPacket, want []RecordedPacket, slack time.Duration) {
	t.Helper()
	for i, packet := range want {
		if i >= len(sent) {
			t.Fatalf("rank %d: packet %d at %v is missing: %s", rank, i, packet.At, Describe(packet.Bytes))
		}
		sentPacket := sent[i]
		if sentPacket.To != packet.To || !bytes.Equal(sentPacket.Bytes, packet.Bytes) {
			t.Fatalf("rank %d: packet %d: got %s to %d at %v, recorded %s to %d at %v",
				rank, i, Describe(sentPacket.Bytes), sentPacket.To, sentPacket.At, Describe(packet.Bytes), packet.To, packet.At)
		}
		if late := packet.At - sentPacket.At; late < 0 || late > slack {
			t.Errorf("rank %d: packet %d (%s): sent at %v, recorded at %v", rank, i, Describe(packet.Bytes), sentPacket.At,
				packet.At)
		}
	}
	if len(sent) > len(want) {
		p := sent[len(want)]
		t.Fatalf("rank %d: sent %s at %v, which was not recorded", rank, Describe(p.Bytes), p.At)
	}
}
