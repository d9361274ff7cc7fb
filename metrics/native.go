package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
)

// maxGap is the maximum number of empty native buckets between two others for which both are in the same span.
const maxGap = 2

// The scrapes share the values that are the same for all native histograms.
var (
	nativeSchema        = int32(phases.Schema)
	nativeZeroThreshold = prometheus.DefNativeHistogramZeroThreshold
)

// nativeHistogram returns h as a native histogram.
func nativeHistogram(h *phases.Histogram) *dto.Histogram {
	message := &dto.Histogram{
		SampleSum: proto.Float64(h.Sum / 1e9), Schema: &nativeSchema, ZeroCount: proto.Uint64(h.ZeroCount),
		ZeroThreshold: &nativeZeroThreshold, PositiveDelta: make([]int64, 0, h.MaxBuckets()),
	}
	count := h.ZeroCount
	var span *dto.BucketSpan
	next, before := 0, int64(0) // the key after the last bucket, and that bucket's count
	for key, n := range h.Buckets {
		count += n
		if span == nil || key-next > maxGap {
			span = &dto.BucketSpan{Offset: proto.Int32(int32(key - next)), Length: proto.Uint32(0)}
			message.PositiveSpan = append(message.PositiveSpan, span)
			next = key
		}
		for ; next < key; next++ {
			message.PositiveDelta = append(message.PositiveDelta, -before)
			before = 0
			*span.Length++
		}
		message.PositiveDelta = append(message.PositiveDelta, int64(n)-before)
		before = int64(n)
		*span.Length++
		next++
	}
	message.SampleCount = proto.Uint64(count)
	return message
}
