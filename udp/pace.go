package udp

import "time"

// bucketDepth is the maximum number of datagrams sent back to back to a paced peer, after a pause. Upstream's CPU
// library sends up to 186 datagrams without a pause, for a message of 65,536 words.
const bucketDepth = 128

// bucket is a token bucket that gains one token per interval. Each token allows one datagram to be sent. The zero
// bucket is full.
type bucket struct {
	// fullAt is the time at which the bucket will be full again.
	fullAt time.Time
}

// takeTokens takes want tokens, at most bucketDepth, from the bucket and returns 0. If the bucket contains fewer, it
// takes none and returns the time until they are available. A sender takes the tokens for a whole batch at once, so
// that it does not sleep before every datagram.
func (b *bucket) takeTokens(now time.Time, every time.Duration, want int) (wait time.Duration) {
	missing := max(b.fullAt.Sub(now), 0)
	if wait := missing - time.Duration(bucketDepth-want)*every; wait > 0 {
		return wait
	}
	b.fullAt = now.Add(missing + time.Duration(want)*every)
	return 0
}
