package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// histogramMetric is a histogram as Prometheus reads it. The library's own kinds
// cannot be both native and classic, or want maps.
type histogramMetric struct {
	desc   *prometheus.Desc
	labels []*dto.LabelPair
	dto    *dto.Histogram
}

// Desc implements prometheus.Metric.
func (m *histogramMetric) Desc() *prometheus.Desc { return m.desc }

// Write implements prometheus.Metric.
func (m *histogramMetric) Write(out *dto.Metric) error {
	out.Label, out.Histogram = m.labels, m.dto
	return nil
}

func (f *family) histogram(h *dto.Histogram, labels ...string) prometheus.Metric {
	return &histogramMetric{f.desc, prometheus.MakeLabelPairs(f.desc, labels), h}
}

// native returns the native histogram.
func (h *histogram) native(created time.Time) *dto.Histogram {
	out := &dto.Histogram{
		Schema: proto.Int32(schema), SampleSum: proto.Float64(h.sum / 1e9),
		ZeroThreshold: proto.Float64(prometheus.DefNativeHistogramZeroThreshold), ZeroCount: proto.Uint64(h.zero),
		CreatedTimestamp: timestamppb.New(created),
	}
	count, last := h.zero, int64(0)
	next := int32(0) // the bucket behind the last one listed
	var span *dto.BucketSpan
	for octave, at := range h.at {
		if at == 0 {
			continue
		}
		for i, n := range h.chunks[at-1] {
			if n == 0 {
				continue
			}
			key := int32(octave*perOctave + i + minKey)
			if gap := key - next; span == nil || gap > maxGap {
				span = &dto.BucketSpan{Offset: proto.Int32(gap), Length: proto.Uint32(0)}
				out.PositiveSpan = append(out.PositiveSpan, span)
			} else {
				for range gap { // costs less than another span
					out.PositiveDelta = append(out.PositiveDelta, -last)
					last = 0
				}
				*span.Length += uint32(gap)
			}
			*span.Length++
			out.PositiveDelta = append(out.PositiveDelta, int64(n)-last)
			count, last, next = count+n, int64(n), key+1
		}
	}
	out.SampleCount = proto.Uint64(count)
	return out
}

// maxGap is how many empty buckets are listed as such.
const maxGap = 2

// both returns the native histogram with the classic one.
func (h *classed) both(created time.Time) *dto.Histogram {
	out := h.native(created)
	count := uint64(0)
	for i, bound := range classicBounds {
		count += h.classic[i]
		out.Bucket = append(out.Bucket, &dto.Bucket{CumulativeCount: proto.Uint64(count), UpperBound: proto.Float64(bound)})
	}
	return out
}
