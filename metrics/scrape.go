package metrics

import (
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// scrape builds the metrics for one scrape. It makes the protobuf messages itself, because a prometheus.Registry
// checks and sorts every metric, which takes most of the time of a scrape with tens of thousands of series.
type scrape struct {
	// native means that the client's format contains native histograms. Otherwise, there are no histograms by peer, and
	// ranks without separate classic buckets share one series.
	native bool
	// job is the label that is added to all metrics, or nil.
	job *dto.LabelPair
	// created is the time at which the counters and histograms that are being added started at zero.
	created *timestamppb.Timestamp
	// metrics contains the metrics added so far, by family.
	metrics [][]*dto.Metric
	// labels contains all labels used so far.
	labels map[[2]string]*dto.LabelPair
	// peers is the storage for the peers of one rank, which is reused for the next rank.
	peers []peerSample
	// classicRanks is the number of ranks with separate classic buckets. sharedBuckets contains the buckets shared by
	// all other ranks of a daemon or job.
	classicRanks  int
	sharedBuckets map[phaseLabels]*classicHistogram
}

func newScrape(native bool) *scrape {
	return &scrape{native: native, metrics: make([][]*dto.Metric, len(families)),
		labels: make(map[[2]string]*dto.LabelPair), sharedBuckets: make(map[phaseLabels]*classicHistogram)}
}

// families returns the families that have metrics.
func (s *scrape) families() []*dto.MetricFamily {
	list := make([]*dto.MetricFamily, 0, len(families))
	for _, f := range familiesByName() {
		if metrics := s.metrics[f.index]; len(metrics) > 0 {
			message := f.newMessage()
			message.Metric = metrics
			list = append(list, message)
		}
	}
	return list
}

// startAt sets the time at which the counters and histograms added from now on started at zero.
func (s *scrape) startAt(created time.Time) { s.created = timestamppb.New(created) }

// maxLabels is the maximum number of labels of a metric.
const maxLabels = 6

// metricMemory is the memory of a metric, which a scrape allocates at once.
type metricMemory struct {
	metric  dto.Metric
	pairs   [maxLabels]*dto.LabelPair
	counter dto.Counter
	gauge   dto.Gauge
	value   float64
}

// add adds a metric without a value. The label values are in the order of f.labels.
func (s *scrape) add(f *family, values []string) *metricMemory {
	memory := new(metricMemory)
	pairs := memory.pairs[:0]
	job := s.job
	for _, i := range f.byName {
		if job != nil && f.labels[i] > jobLabel {
			pairs, job = append(pairs, job), nil
		}
		pairs = append(pairs, s.label(f.labels[i], values[i]))
	}
	if job != nil {
		pairs = append(pairs, job)
	}
	memory.metric.Label = pairs
	s.metrics[f.index] = append(s.metrics[f.index], &memory.metric)
	return memory
}

// label returns a label. All metrics of a scrape share equal labels.
func (s *scrape) label(name, value string) *dto.LabelPair {
	pair := s.labels[[2]string{name, value}]
	if pair == nil {
		pair = &dto.LabelPair{Name: proto.String(name), Value: proto.String(value)}
		s.labels[[2]string{name, value}] = pair
	}
	return pair
}

func (s *scrape) counter(f *family, value uint64, labels ...string) {
	m := s.add(f, labels)
	m.value, m.counter.Value, m.counter.CreatedTimestamp = float64(value), &m.value, s.created
	m.metric.Counter = &m.counter
}

func (s *scrape) gauge(f *family, value float64, labels ...string) {
	m := s.add(f, labels)
	m.value, m.gauge.Value = value, &m.value
	m.metric.Gauge = &m.gauge
}

func (s *scrape) histogram(f *family, message *dto.Histogram, labels ...string) {
	message.CreatedTimestamp = s.created
	s.add(f, labels).metric.Histogram = message
}
