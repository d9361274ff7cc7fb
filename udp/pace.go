package udp

import "time"

// bucketDepth is how many datagrams a paced peer gets in a row at most, after a
// pause. Upstream's CPU library sends 186 of them in a row, those of a message of
// 65,536 words, without a pause.
const bucketDepth = 128

// bucket is a token bucket: it fills by a datagram every so often. The zero bucket
// is full.
type bucket struct {
	// full is when it is full again.
	full time.Time
}

// take takes so many datagrams out, at most bucketDepth, or says how long to wait
// for them. A sender takes a batch at a time, so that it does not sleep for every
// single one.
func (b *bucket) take(now time.Time, every time.Duration, want int) (wait time.Duration) {
	missing := max(b.full.Sub(now), 0)
	if wait := missing - time.Duration(bucketDepth-want)*every; wait > 0 {
		return wait
	}
	b.full = now.Add(missing + time.Duration(want)*every)
	return 0
}
