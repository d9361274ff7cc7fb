package metrics

import (
	"math"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// SendTimes returns the median and the 99th percentile of the durations of sends to a peer, in seconds, and the number
// n of sends. The duration of a send is measured from posting the operation to its completion. The percentiles are
// accurate to the width of a bucket. SendTimes returns false if no send completed or the peer has no separate series.
func (r *Rank) SendTimes(peer int) (p50, p99 float64, n uint64, ok bool) {
	rec := r.Recorder
	if rec == nil || peer < 0 || peer >= rec.ClusterSize() {
		return 0, 0, 0, false
	}
	var histogram *phases.Histogram
	r.Engine.PeerCounters(peer, func(*state.PeerCounters) {
		if rec.HasSeries(peer) && rec.AssignSeries(peer) {
			histogram = rec.Peer(peer)[phases.SendTotal]
		}
	})
	if histogram == nil {
		return 0, 0, 0, false
	}
	if n = histogram.Count(); n == 0 {
		return 0, 0, 0, false
	}
	return estimateQuantile(histogram, 0.5, n), estimateQuantile(histogram, 0.99, n), n, true
}

// estimateQuantile estimates the quantile q of n times in seconds. It assumes that the logarithms of the times in each
// bucket are evenly distributed.
func estimateQuantile(histogram *phases.Histogram, q float64, n uint64) float64 {
	rank := q * float64(n)
	before := float64(histogram.ZeroCount)
	if before >= rank {
		return 0
	}
	at := 0.0
	for key, n := range histogram.Buckets {
		if after := before + float64(n); after >= rank {
			return math.Exp2((float64(key) - 1 + (rank-before)/float64(n)) / phases.PerOctave)
		}
		before += float64(n)
		at = math.Exp2(float64(key) / phases.PerOctave)
	}
	return at
}
