package metrics

import (
	"math"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// SendTimes returns the median and the 99th percentile of the durations of sends of a rank
// to a peer, from posted to ended, in seconds and to within a bucket, and their number. It
// returns false if there were none, or the peer has no series of its own.
func (r *Rank) SendTimes(peer int) (p50, p99 float64, n uint64, ok bool) {
	rec := r.Recorder
	if rec == nil || peer < 0 || peer >= len(rec.peers) {
		return 0, 0, 0, false
	}
	var h histogram
	r.Engine.PeerCounters(peer, func(*mpe.PeerCounters) {
		if times := rec.peers[peer].times; times != nil && times != &rec.other && times[sendTotal] != nil {
			h = times[sendTotal].clone()
		}
	})
	if n = h.count(); n == 0 {
		return 0, 0, 0, false
	}
	return h.quantile(0.5, n), h.quantile(0.99, n), n, true
}

// quantile returns about where the quantile q of n times is, in seconds: in its bucket,
// where it would be if the bucket's times were spread evenly by their logarithm.
func (h *histogram) quantile(q float64, n uint64) float64 {
	rank := q * float64(n)
	before := float64(h.zero)
	if before >= rank {
		return 0
	}
	at := 0.0
	for key, n := range h.buckets {
		if after := before + float64(n); after >= rank {
			return math.Exp2((float64(key) - 1 + (rank-before)/float64(n)) / perOctave)
		}
		before += float64(n)
		at = math.Exp2(float64(key) / perOctave)
	}
	return at
}
