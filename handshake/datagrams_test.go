package handshake_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// arrivingPair returns a pair that has received the first datagram of a message, for a receive of the given capacity in
// words.
func arrivingPair(t *testing.T, room, words int, first []byte) (*handshake.Pair, []handshake.Action) {
	t.Helper()
	rules := handshake.SoftwarePeer()
	p := handshake.New(handshake.Config{
		Local: 1, Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
	})
	if _, err := p.Recv(0, handshake.RecvOp{ID: 1, Words: uint32(room)}, nil); err != nil {
		t.Fatal(err)
	}
	ask := protocol.CloudFPGA.Append(nil,
		protocol.Header{Dst: 1, Size: uint32(words), Type: protocol.SendRequest, Call: protocol.SendInt})
	p.Datagram(0, ask, nil)
	data := protocol.CloudFPGA.Append(nil,
		protocol.Header{Dst: 1, Size: uint32(words), Type: protocol.Data, Call: protocol.SendInt})
	return p, p.Datagram(0, append(data, first...), nil)
}

// effect executes the Copy actions by copying their bytes to buf, and returns the other actions.
func effect(buf []byte, acts []handshake.Action) (rest []handshake.Action) {
	for _, a := range acts {
		if a.Kind == handshake.Copy {
			copy(buf[a.Offset:], a.Payload)
			continue
		}
		rest = append(rest, a)
	}
	return rest
}

// TestDatagrams checks that handling several datagrams at once has the same effect as handling them one by one,
// whatever they contain.
func TestDatagrams(t *testing.T) {
	const first = protocol.MaxDatagram - protocol.HeaderLen
	rng := rand.New(rand.NewPCG(1, 2))
	packet := protocol.CloudFPGA.Append(nil,
		protocol.Header{Dst: 1, Size: 5000, Type: protocol.SendRequest, Call: protocol.SendInt})
	together := 0
	for range 3000 {
		words := 347 + rng.IntN(20*354)
		payload := make([]byte, words*4)
		for i := range payload {
			payload[i] = byte(rng.Uint32())
		}
		rest := bytes.Clone(payload[first:])
		for range rng.IntN(3) { // payload that resembles a packet, and packets
			at := rng.IntN(1+len(rest)/protocol.MaxDatagram) * protocol.MaxDatagram
			switch rng.IntN(4) {
			case 3: // the first datagram again
				again := protocol.CloudFPGA.Append(nil,
					protocol.Header{Dst: 1, Size: uint32(words), Type: protocol.Data, Call: protocol.SendInt})
				rest = append(rest[:at:at], append(append(again, payload[:first]...), rest[at:]...)...)
			case 0:
				rest = append(rest[:at:at], append(bytes.Clone(packet), rest[at:]...)...)
			case 1:
				copy(rest[at:], packet)
			case 2:
				copy(rest[at:], packet[:4])
			}
		}
		size := protocol.MaxDatagram
		if rng.IntN(10) == 0 {
			size = 32 + rng.IntN(2000)
		}
		room := words
		if rng.IntN(4) == 0 {
			room = 1 + rng.IntN(words)
		}
		now := time.Duration(rng.IntN(60)) * time.Millisecond // sometimes too late
		a, begin := arrivingPair(t, room, words, payload[:first])
		b, _ := arrivingPair(t, room, words, payload[:first])
		one, all := make([]byte, words*4), make([]byte, words*4)
		effect(one, begin)
		effect(all, begin)
		var wantActs, gotActs []handshake.Action
		for r := rest; len(r) > 0; r = r[min(size, len(r)):] {
			wantActs = append(wantActs, effect(one, a.Datagram(now, r[:min(size, len(r))], nil))...)
		}
		for r := rest; len(r) > 0; {
			n, acts := b.Datagrams(now, r, size, nil)
			if n > size {
				together++
			}
			if n == 0 {
				n = min(size, len(r))
				acts = b.Datagram(now, r[:n], nil)
			}
			gotActs = append(gotActs, effect(all, acts)...)
			r = r[n:]
		}
		if !bytes.Equal(one, all) || len(gotActs) != len(wantActs) {
			t.Fatalf("%d words, datagrams of %d: %d actions at once, %d one by one", words, size, len(gotActs),
				len(wantActs))
		}
		for i := range gotActs {
			x, y := gotActs[i], wantActs[i]
			if x.Kind != y.Kind || x.Header != y.Header || x.Reason != y.Reason || x.Event != y.Event ||
				x.Words != y.Words || (x.Err == nil) != (y.Err == nil) {
				t.Fatalf("action %d: %+v, want %+v", i, x, y)
			}
		}
	}
	if together < 500 {
		t.Errorf("only %d times were several taken", together)
	}
}
