package control

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// FillPayload fills b, which must consist of whole words, with the pseudo-random message of a ping with the given seed.
// Floats are in [-1, 1).
func FillPayload(b []byte, seed uint64, datatype protocol.Datatype) {
	r := rand.New(rand.NewPCG(seed, uint64(len(b))))
	for ; len(b) >= protocol.WordLen; b = b[protocol.WordLen:] {
		word := r.Uint32()
		if datatype == protocol.Float {
			word = math.Float32bits(2*r.Float32() - 1)
		}
		binary.LittleEndian.PutUint32(b, word)
	}
}

// firstDifference returns the index of the first word in which two messages of equal length differ, or -1 if they are
// equal.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i / protocol.WordLen
		}
	}
	return -1
}
