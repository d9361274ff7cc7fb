package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
)

// nativeHistogram returns h as a native histogram.
func (f *family) nativeHistogram(h *phases.Histogram, created time.Time, labels ...string) prometheus.Metric {
	buckets := make(map[int]int64)
	for key, n := range h.Buckets {
		buckets[key] = int64(n)
	}
	m, err := prometheus.NewConstNativeHistogram(f.desc, h.Count(), h.Sum/1e9, buckets, nil, h.ZeroCount, phases.Schema,
		prometheus.DefNativeHistogramZeroThreshold, created, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(f.desc, err)
	}
	return m
}

// histogram returns h as a native Prometheus histogram that also contains classic buckets.
func (f *family) histogram(h *phases.Histogram, created time.Time, labels ...string) prometheus.Metric {
	return &classicHistogram{f.nativeHistogram(h, created, labels...), h}
}

// classicHistogram adds classic buckets to a native histogram, because the library's constant native histograms cannot
// contain them.
type classicHistogram struct {
	prometheus.Metric
	h *phases.Histogram
}

// Write implements prometheus.Metric.
func (m *classicHistogram) Write(out *dto.Metric) error {
	if err := m.Metric.Write(out); err != nil {
		return err
	}
	var classic [1 - minClassicExp + 1]uint64
	classic[0] = m.h.ZeroCount
	for key, n := range m.h.Buckets {
		classic[classicIndex(key)] += n
	}
	count := uint64(0)
	for i, bound := range classicBounds {
		count += classic[i]
		out.Histogram.Bucket = append(out.Histogram.Bucket,
			&dto.Bucket{CumulativeCount: proto.Uint64(count), UpperBound: proto.Float64(bound)})
	}
	return nil
}
