package goodput

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// messageLen is the length of a message, and at most how much is read from a connection at
// a time. It is more than is sent eagerly, as long messages are, and short enough that many
// arrive in a few seconds at 100 kB/s.
const messageLen = 128 << 10

// messageWindow is how many messages a sender has under way: together more than fit into
// the path and its queue.
const messageWindow = 32

// period is after how many bytes the stream begins again: a prime, so that no two messages in
// reach are the same.
const period = 1_048_583

// stream is what every flow carries: bytes of a fixed seed, by their position.
type stream []byte

func newStream() stream {
	s := make(stream, period+messageLen)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(s[:period]) // never fails
	copy(s[period:], s)
	return s
}

// at returns n bytes, at most messageLen, from a position on.
func (s stream) at(position int64, n int) []byte { return s[position%period:][:n] }

// verify compares what has arrived from a position on.
func (s stream) verify(position int64, b []byte) error {
	want := s.at(position, len(b))
	if bytes.Equal(b, want) {
		return nil
	}
	for i := range b {
		if b[i] != want[i] {
			return fmt.Errorf("byte %d is %#x instead of %#x", position+int64(i), b[i], want[i])
		}
	}
	return nil
}
