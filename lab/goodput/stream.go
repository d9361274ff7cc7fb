package goodput

import (
	"bytes"
	"fmt"
	"math/rand/v2"
)

// messageLen is the length of a message, and the maximum length of a read from a connection. It exceeds the eager
// limit, so that all messages use rendezvous, and is small enough to send many messages in a few seconds at 100 kB/s.
const messageLen = 128 << 10

// messageWindow is the number of messages that a sender keeps in flight. Together they exceed the capacity of the path
// and its queue.
const messageWindow = 32

// period is the number of bytes after which the data of a stream starts over. It is a prime number, so that messages
// sent within a short time all differ.
const period = 1_048_583

// stream generates the data sent in every flow: pseudo-random bytes from a fixed seed.
type stream []byte

func newStream() stream {
	s := make(stream, period+messageLen)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(s[:period]) // never fails
	copy(s[period:], s)
	return s
}

// bytesAt returns n bytes of the stream, starting at position. n is at most messageLen.
func (s stream) bytesAt(position int64, n int) []byte { return s[position%period:][:n] }

// verify compares received bytes with the stream at the given position.
func (s stream) verify(position int64, b []byte) error {
	want := s.bytesAt(position, len(b))
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
