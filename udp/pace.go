package udp

import "time"

// bucketDepth is the maximum number of datagrams sent to a paced peer back to back, after a pause. Upstream's CPU
// library sends up to 186 without a pause, for a message of 65,536 words.
const bucketDepth = 128

// bucket is a token bucket that gains a datagram per interval. The zero bucket is full.
type bucket struct {
	// full is the time at which it is full again.
	full time.Time
}

// take takes want datagrams from the bucket, at most bucketDepth, or returns how long to wait for them. A sender takes
// a batch at a time, so that it does not sleep for every single datagram.
func (b *bucket) take(now time.Time, every time.Duration, want int) (wait time.Duration) {
	missing := max(b.full.Sub(now), 0)
	if wait := missing - time.Duration(bucketDepth-want)*every; wait > 0 {
		return wait
	}
	b.full = now.Add(missing + time.Duration(want)*every)
	return 0
}
