package goodput

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// messageLen is the length of a message, and the maximum length of a read from a connection. It exceeds the eager
// limit, so messages take the path of long ones, and is short enough for many of them in a few seconds at 100 kB/s.
const messageLen = 128 << 10

// messageWindow is the number of messages that a sender keeps in flight. Together they exceed the capacity of the path
// and its queue.
const messageWindow = 32

// period is the number of bytes after which the stream starts over: a prime, so that no two messages close to each
// other are equal.
const period = 1_048_583

// stream is the data of every flow: pseudo-random bytes from a fixed seed, addressed by position.
type stream []byte

func newStream() stream {
	s := make(stream, period+messageLen)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(s[:period]) // never fails
	copy(s[period:], s)
	return s
}

// at returns n bytes, at most messageLen, starting at position.
func (s stream) at(position int64, n int) []byte { return s[position%period:][:n] }

// verify compares received bytes with the stream at position.
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
