package protocol

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// The CRC32 instruction and package hash/crc32 agree, at any alignment of the header.
func TestExtHeaderSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, ExtHeaderLen+16)
	for i := range 1000 {
		for k := range b {
			b[k] = byte(rng.Uint32())
		}
		header := (*[ExtHeaderLen]byte)(b[i%16:])
		zeroed := *header
		clear(zeroed[offChecksum:offEnd])
		want := crc32.Checksum(zeroed[:], castagnoli)
		if got, generic := extHeaderSum(header), extHeaderSumGeneric(header); got != want || generic != want {
			t.Fatalf("%x: %08x, without the instruction %08x; want %08x", *header, got, generic, want)
		}
	}
}
