package cpumodel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const ms = time.Millisecond

// hdr is a control packet, or DATA's header, with INT calls.
func hdr(t protocol.Type, src, dst int, size uint32) []byte {
	c := protocol.SendInt
	if t == protocol.ClearToSend || t == protocol.Ack {
		c = protocol.RecvInt
	}
	return protocol.CloudFPGA.Append(nil, protocol.Header{
		Dst: uint32(dst), Src: uint32(src), Size: size, Call: c, Type: t,
	})
}

func pack(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func unpack(b []byte) []uint32 {
	var words []uint32
	for ; len(b) >= 4; b = b[4:] {
		words = append(words, binary.LittleEndian.Uint32(b))
	}
	return words
}

// message is DATA, one datagram after the other.
func message(src, dst int, words []uint32) [][]byte {
	b := append(hdr(protocol.Data, src, dst, uint32(len(words))), pack(words)...)
	return slices.Collect(slices.Chunk(b, protocol.MaxDatagram))
}

// pattern is what the programs in the captures send: which round, and who
// first sent it.
func pattern(round, rank, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = uint32(round)*0x9e3779b9 ^ uint32(i)*0x85ebca6b ^ uint32(rank+1)*0x01000193
	}
	return words
}

func plus(n uint32, words []uint32) []uint32 {
	out := slices.Clone(words)
	for i := range out {
		out[i] += n
	}
	return out
}

// rig is a model under test, rank 1 among peers 0 and 2.
type rig struct {
	*Model
	t *testing.T
	// clock is the time of the next event.
	clock time.Duration
}

func newRig(t *testing.T) *rig {
	return &rig{Model: New(Config{Rank: 1, Peers: []int{0, 2}}), t: t}
}

func (r *rig) send(dst int, words []uint32) {
	r.t.Helper()
	if err := r.Send(r.clock, dst, words); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) recv(src, count int) {
	r.t.Helper()
	if err := r.Recv(r.clock, src, count); err != nil {
		r.t.Fatal(err)
	}
}

// cleared has the process wait for DATA of rank 0.
func (r *rig) cleared(count int) {
	r.t.Helper()
	r.recv(0, count)
	r.in(0, hdr(protocol.SendRequest, 0, 1, 0))
	r.wantOut(hdr(protocol.ClearToSend, 1, 0, 0))
}

func (r *rig) in(from int, datagrams ...[]byte) {
	for _, d := range datagrams {
		r.Datagram(r.clock, from, d)
	}
}

func (r *rig) after(d time.Duration) {
	r.clock += d
	r.Tick(r.clock)
}

// wantOut checks what was transmitted since the last call.
func (r *rig) wantOut(want ...[]byte) {
	r.t.Helper()
	out := r.Out()
	for i, p := range out {
		if i >= len(want) {
			r.t.Fatalf("unexpected packet %d: %s", i, describe(p.Bytes))
		}
		if !bytes.Equal(p.Bytes, want[i]) {
			r.t.Fatalf("packet %d: got %s, want %s", i, describe(p.Bytes), describe(want[i]))
		}
	}
	if len(out) < len(want) {
		r.t.Fatalf("%d packets, want %d: missing %s", len(out), len(want), describe(want[len(out)]))
	}
}

// wantAck checks that the receive has returned, with an ACK and these words.
func (r *rig) wantAck(words []uint32) {
	r.t.Helper()
	r.wantOut(hdr(protocol.Ack, 1, 0, 0))
	r.wantBuffer(words)
}

func (r *rig) wantState(want string) {
	r.t.Helper()
	if got := r.State(); got != want {
		r.t.Fatalf("state %q, want %q", got, want)
	}
}

// wantCrash checks that the verdict has want in it.
func (r *rig) wantCrash(want string) {
	r.t.Helper()
	if why, crashed := r.Crashed(); !crashed || !strings.Contains(why, want) {
		r.t.Fatalf("crashed %v (%q), want %q; state %q", crashed, why, want, r.State())
	}
}

// wantStuck checks that the explanation has want in it; "" is for not stuck.
func (r *rig) wantStuck(want string) {
	r.t.Helper()
	if why, got := r.Stuck(); got != (want != "") || !strings.Contains(why, want) {
		r.t.Fatalf("stuck %v (%q), want %q; state %q", got, why, want, r.State())
	}
}

// wantBuffer checks that the last receive has returned, and its buffer.
func (r *rig) wantBuffer(want []uint32) {
	r.t.Helper()
	words, done := r.Result()
	if !done {
		r.t.Fatalf("the receive has not returned: %s", r.State())
	}
	if d := diff(words, want); d != "" {
		r.t.Fatal(d)
	}
}

func describe(b []byte) string {
	if h, err := protocol.CloudFPGA.Decode(b); err == nil {
		return fmt.Sprintf("%v and %d bytes", h, len(b)-protocol.HeaderLen)
	}
	return fmt.Sprintf("%d bytes without a header", len(b))
}

// diff names the first word in which a buffer is not as wanted.
func diff(got, want []uint32) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("word %d of the buffer is %08x, want %08x", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("the buffer has %d words, want %d", len(got), len(want))
	}
	return ""
}
