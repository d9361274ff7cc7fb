package handshake_test

import (
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestReceivedCounts checks that ReceivedCounts counts datagrams over a datagram socket, and packets over a stream,
// however their payload is divided.
func TestReceivedCounts(t *testing.T) {
	const words = 600 // two datagrams
	packet := func(typ protocol.Type, call protocol.Call, size uint32) []byte {
		b := make([]byte, protocol.HeaderLen)
		protocol.CloudFPGA.Put(b, protocol.Header{Src: 1, Dst: 0, Type: typ, Call: call, Size: size})
		return b
	}
	request, data := packet(protocol.SendRequest, protocol.SendInt, 0), packet(protocol.Data, protocol.SendInt, words)
	payload := make([]byte, words*protocol.WordLen)
	for i := range payload {
		payload[i] = byte(i)
	}
	for _, stream := range []bool{false, true} {
		p := handshake.New(handshake.Config{
			Remote: 1, Reliable: stream, MaxWords: words, Shape: protocol.CPUShape(),
			Timing: handshake.DefaultTiming(handshake.SoftwarePeer()),
		})
		now := time.Second
		if _, err := p.Recv(now, handshake.RecvOp{ID: 1, Words: words}, nil); err != nil {
			t.Fatal(err)
		}
		done := false
		saw := func(acts []handshake.Action) {
			for _, a := range acts {
				done = done || a.Kind == handshake.RecvDone && a.Err == nil
			}
		}
		want := uint64(1)
		if stream {
			saw(p.Header(now, []byte("no packet, and 32 bytes of length"), nil))
			saw(p.Header(now, request, nil))
			saw(p.Header(now, data, nil))
			for rest := payload; len(rest) > 0; rest = rest[100:] {
				saw(p.Payload(now, rest[:100], nil))
			}
		} else {
			want = 2
			first := protocol.MaxDatagram - protocol.HeaderLen
			saw(p.Datagram(now, []byte("no packet"), nil))
			saw(p.Datagram(now, request, nil))
			saw(p.Datagram(now, append(data, payload[:first]...), nil))
			saw(p.Datagram(now, payload[first:], nil))
		}
		if !done {
			t.Errorf("stream %v: the message has not arrived", stream)
		}
		packets, bytes := p.ReceivedCounts()
		wantPackets := [handshake.NumTypes]uint64{protocol.SendRequest: 1, protocol.Data: want}
		wantBytes := [handshake.NumTypes]uint64{protocol.SendRequest: protocol.HeaderLen,
			protocol.Data: protocol.HeaderLen + words*protocol.WordLen}
		if packets != wantPackets || bytes != wantBytes {
			t.Errorf("stream %v: %v, %v, want %v, %v", stream, packets, bytes, wantPackets, wantBytes)
		}
	}
}
