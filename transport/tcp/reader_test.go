package tcp

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/transporttest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// feed has a reader read in in pieces of the lengths of cuts, in turn, and returns
// the packets, and the error that ended it.
func feed(in []byte, cuts []int) (packets []string, err error) {
	r := &reader{}
	for next := 0; len(in) > 0; next++ {
		n := len(in)
		if len(cuts) > 0 {
			n = cuts[next%len(cuts)]
		}
		n = copy(r.room(), in[:min(n, len(in))])
		in = in[n:]
		r.filled(n)
		for {
			packet, err := r.next()
			if err != nil {
				return packets, err
			}
			if packet == nil {
				break
			}
			packets = append(packets, string(packet))
		}
	}
	return packets, nil
}

// packetStream is packets with payloads of the given lengths.
func packetStream(lengths ...int) (stream []byte, packets []string) {
	for i, n := range lengths {
		p := transporttest.Packet(0, 1, uint32(i+1), n)
		whole := slices.Concat(p.Header[:], p.Payload)
		stream, packets = append(stream, whole...), append(packets, string(whole))
	}
	return stream, packets
}

// A stream may be cut anywhere.
func TestReaderCutsAtEveryByte(t *testing.T) {
	stream, want := packetStream(0, 1, 100, 0, 7)
	for at := 1; at < len(stream); at++ {
		if got, err := feed(stream, []int{at, len(stream)}); err != nil || !slices.Equal(got, want) {
			t.Fatalf("cut at byte %d: %d packets of %d, %v", at, len(got), len(want), err)
		}
	}
	if got, err := feed(stream, []int{1}); err != nil || !slices.Equal(got, want) {
		t.Fatalf("byte by byte: %d packets of %d, %v", len(got), len(want), err)
	}
}

// Packets of all lengths come out whole, whatever is in the buffer already, and the
// buffer has its bound.
func TestReaderOfLongPackets(t *testing.T) {
	const longest = protocol.MaxStreamPayload
	var lengths []int
	for i := range 60 {
		lengths = append(lengths, []int{longest, longest - 1, 0, 1000, longest / 2}[i%5])
	}
	stream, want := packetStream(lengths...)
	for _, cuts := range [][]int{nil, {readLen - 1}, {longest}, {40_000, 3}, {71, 1, 72, 30_000}, {1 << 20}} {
		if got, err := feed(stream, cuts); err != nil || !slices.Equal(got, want) {
			t.Errorf("cuts %v: %d packets of %d, %v", cuts, len(got), len(want), err)
		}
	}
	r := &reader{}
	for range 100 {
		r.filled(copy(r.room(), stream))
		for packet, err := r.next(); packet != nil || err != nil; packet, err = r.next() {
			if err != nil {
				break // the stream begins anew in the middle of a packet
			}
		}
		if len(r.buf) > readMost {
			t.Fatalf("a buffer of %d bytes", len(r.buf))
		}
		r.start = r.end
	}
}

func TestReaderAllocatesNothing(t *testing.T) {
	stream, _ := packetStream(100, 0, protocol.MaxStreamPayload)
	r := &reader{}
	at := 0
	step := func() {
		n := copy(r.room(), stream[at:])
		r.filled(n)
		at = (at + n) % len(stream)
		for {
			packet, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			if packet == nil {
				return
			}
		}
	}
	for range 20 { // until the buffer has grown
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzReader checks that it finds the packets, and the faults, that
// protocol.ExtFrameReader finds, however the stream is cut.
func FuzzReader(f *testing.F) {
	good, _ := packetStream(0, 5, 344, 0)
	f.Add(good, []byte{0, 31, 200})
	f.Add(good[:len(good)-1], []byte{31})
	f.Add(append(bytes.Clone(good[:149]), "another protocol"...), []byte{})
	corrupt := bytes.Clone(good)
	corrupt[100]++
	f.Add(corrupt, []byte{9})
	f.Fuzz(func(t *testing.T, in, cuts []byte) {
		var lengths []int
		for _, n := range cuts {
			lengths = append(lengths, 1+int(n))
		}
		got, err := feed(in, lengths)
		frames := protocol.NewExtFrameReader(bytes.NewReader(in))
		var want []string
		var wantErr error
		for {
			var packet []byte
			if packet, wantErr = frames.Next(); wantErr != nil {
				break
			}
			want = append(want, string(packet))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q instead of %q", got, want)
		}
		var fault, wantFault *protocol.FrameError
		switch {
		case !errors.As(err, &fault):
			if errors.As(wantErr, &wantFault) {
				t.Fatalf("no fault instead of %v", wantErr)
			}
		case errors.As(wantErr, &wantFault):
			if fault.Offset != wantFault.Offset {
				t.Fatalf("%v instead of %v", err, wantErr)
			}
		case !errors.Is(wantErr, io.ErrUnexpectedEOF): // some faults show before the packet is whole
			t.Fatalf("%v instead of %v", err, wantErr)
		}
	})
}
