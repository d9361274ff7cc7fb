package metrics

import (
	"math"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
)

// Classic buckets are for a Prometheus server that does not support native histograms. Their upper bounds are the
// powers of four from 2^minClassicExp seconds (15 µs) to 1 second. Each of them is also the upper bound of a native
// bucket.
const (
	minClassicExp     = -16
	octavesPerClassic = 2
	numClassicBounds  = -minClassicExp/octavesPerClassic + 1
)

var classicBounds = func() (bounds [numClassicBounds]float64) {
	for i := range bounds {
		bounds[i] = math.Exp2(float64(minClassicExp + i*octavesPerClassic))
	}
	return bounds
}()

// maxClassicRanks is the maximum number of ranks of a daemon or job with separate classic buckets in text formats. All
// other ranks share the series of labelOtherRanks. Otherwise, more than half of the text of a daemon with hundreds of
// ranks would be buckets.
const maxClassicRanks = 8

// labelOtherRanks is the label for all ranks without separate classic buckets.
const labelOtherRanks = "other"

// phaseLabels contains the labels of a phase histogram of the shared classic buckets.
type phaseLabels struct{ profile, kind, direction, phase string }

// classicHistogram counts times in classic buckets.
type classicHistogram struct {
	counts [numClassicBounds + 1]uint64 // not cumulative; the last bucket has no upper bound
	sum    float64                      // in nanoseconds
}

// add adds all times of h.
func (c *classicHistogram) add(h *phases.Histogram) {
	c.sum += h.Sum
	c.counts[0] += h.ZeroCount
	for key, n := range h.Buckets {
		c.counts[classicIndex(key)] += n
	}
}

// classicIndex returns the index of the classic bucket that contains the native bucket key. It returns
// numClassicBounds for native buckets above all classic ones.
func classicIndex(key int) int {
	const keysPerClassic = octavesPerClassic * phases.PerOctave
	index := (key - minClassicExp*phases.PerOctave + keysPerClassic - 1) / keysPerClassic // round up
	return min(max(index, 0), numClassicBounds)
}

// message returns the protobuf form of the histogram. It allocates all of its buckets at once.
func (c *classicHistogram) message() *dto.Histogram {
	memory := new(struct {
		buckets    [numClassicBounds]dto.Bucket
		pointers   [numClassicBounds]*dto.Bucket
		cumulative [numClassicBounds]uint64
	})
	message := &dto.Histogram{SampleSum: proto.Float64(c.sum / 1e9), Bucket: memory.pointers[:]}
	count := uint64(0)
	for i := range memory.buckets {
		count += c.counts[i]
		memory.cumulative[i], memory.pointers[i] = count, &memory.buckets[i]
		memory.buckets[i].CumulativeCount, memory.buckets[i].UpperBound = &memory.cumulative[i], &classicBounds[i]
	}
	message.SampleCount = proto.Uint64(count + c.counts[numClassicBounds])
	return message
}

// phaseHistogram returns the histogram of a phase in the client's format: with native buckets, if it has them, and with
// classic ones.
func (s *scrape) phaseHistogram(h *phases.Histogram) *dto.Histogram {
	var classic classicHistogram
	classic.add(h)
	message := classic.message()
	if s.native {
		buckets := message.Bucket
		message = nativeHistogram(h)
		message.Bucket = buckets
	}
	return message
}

// shareBuckets adds times to the classic buckets that ranks share.
func (s *scrape) shareBuckets(labels phaseLabels, h *phases.Histogram) {
	if s.sharedBuckets[labels] == nil {
		s.sharedBuckets[labels] = new(classicHistogram)
	}
	s.sharedBuckets[labels].add(h)
}

// collectSharedBuckets adds the histograms that ranks share, after the last rank of a daemon or job.
func (s *scrape) collectSharedBuckets() {
	for labels, classic := range s.sharedBuckets {
		s.addPhase(labelOtherRanks, labels, classic.message())
	}
	clear(s.sharedBuckets)
	s.classicRanks = 0
}

// addPhase adds the histogram of a phase.
func (s *scrape) addPhase(rank string, of phaseLabels, message *dto.Histogram) {
	s.histogram(phaseSeconds, message, rank, of.profile, of.kind, of.direction, of.phase)
}
