package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// native returns the native histogram.
func (f *family) native(h *histogram, created time.Time, labels ...string) prometheus.Metric {
	buckets := make(map[int]int64)
	for key, n := range h.buckets {
		buckets[key] = int64(n)
	}
	m, err := prometheus.NewConstNativeHistogram(f.desc, h.count(), h.sum/1e9, buckets, nil, h.zero, schema,
		prometheus.DefNativeHistogramZeroThreshold, created, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(f.desc, err)
	}
	return m
}

// both returns the native histogram with the classic one.
func (f *family) both(h *histogram, created time.Time, labels ...string) prometheus.Metric {
	return &withClassic{f.native(h, created, labels...), h}
}

// withClassic is a native histogram with classic buckets besides, which the library's
// constant ones do not have.
type withClassic struct {
	prometheus.Metric
	h *histogram
}

// Write implements prometheus.Metric.
func (m *withClassic) Write(out *dto.Metric) error {
	if err := m.Metric.Write(out); err != nil {
		return err
	}
	var classic [1 - classicFirst + 1]uint64
	classic[0] = m.h.zero
	for key, n := range m.h.buckets {
		classic[classicOf(key)] += n
	}
	count := uint64(0)
	for i, bound := range classicBounds {
		count += classic[i]
		out.Histogram.Bucket = append(out.Histogram.Bucket, &dto.Bucket{CumulativeCount: proto.Uint64(count), UpperBound: proto.Float64(bound)})
	}
	return nil
}
