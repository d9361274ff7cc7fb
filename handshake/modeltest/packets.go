// Package modeltest contains helpers for tests of the models of deployed nodes. They make packets, read the captures,
// and compare a model's packets with a capture.
package modeltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Header returns a packet with an INT call that consists of a header alone: a control packet, or the beginning of a
// DATA packet.
func Header(t protocol.Type, src, dst int, size uint32) []byte {
	c := protocol.SendInt
	if t == protocol.ClearToSend || t == protocol.Ack {
		c = protocol.RecvInt
	}
	return protocol.CloudFPGA.Append(nil, protocol.Header{
		Dst: uint32(dst), Src: uint32(src), Size: size, Call: c, Type: t,
	})
}

// Message returns the datagrams of a DATA message, fragmented as upstream's CPU library does.
func Message(src, dst int, words []uint32) [][]byte {
	b := append(Header(protocol.Data, src, dst, uint32(len(words))), EncodeWords(words)...)
	return slices.Collect(slices.Chunk(b, protocol.MaxDatagram))
}

// EncodeWords encodes words as a payload and returns its bytes.
func EncodeWords(words []uint32) []byte {
	var b []byte
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// DecodeWords decodes a payload and returns its words. It ignores up to 3 bytes at the end.
func DecodeWords(b []byte) []uint32 {
	var words []uint32
	for ; len(b) >= 4; b = b[4:] {
		words = append(words, binary.LittleEndian.Uint32(b))
	}
	return words
}

// PatternWords returns the n words that the recorded programs send in a round. rank is the first rank to send them.
func PatternWords(round, rank, n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = uint32(round)*0x9e3779b9 ^ uint32(i)*0x85ebca6b ^ uint32(rank+1)*0x01000193
	}
	return words
}

// AddToWords returns a copy of the given words in which n is added to each word.
func AddToWords(n uint32, words []uint32) []uint32 {
	out := slices.Clone(words)
	for i := range out {
		out[i] += n
	}
	return out
}

// Describe returns a description of a packet, for test failures.
func Describe(b []byte) string {
	if h, err := protocol.CloudFPGA.Decode(b); err == nil {
		return fmt.Sprintf("%v and %d bytes", h, len(b)-protocol.HeaderLen)
	}
	return fmt.Sprintf("%d bytes without a header", len(b))
}

// Diff returns a description of the first word that differs, or "" if the buffers are equal.
func Diff(got, want []uint32) string {
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

// WantPackets fails the test unless the sent packets are exactly the wanted ones, in order.
func WantPackets(t *testing.T, sent []SentPacket, want [][]byte) {
	t.Helper()
	for i, p := range sent {
		if i >= len(want) {
			t.Fatalf("unexpected packet %d: %s", i, Describe(p.Bytes))
		}
		if !bytes.Equal(p.Bytes, want[i]) {
			t.Fatalf("packet %d: got %s, want %s", i, Describe(p.Bytes), Describe(want[i]))
		}
	}
	if len(sent) < len(want) {
		t.Fatalf("%d packets, want %d: missing %s", len(sent), len(want), Describe(want[len(sent)]))
	}
}
