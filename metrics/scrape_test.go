package metrics

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// star returns the source of a daemon whose rank 0 has exchanged messages with all other ranks, its stand-ins. At most
// the given number of peers of a rank have separate series.
func star(ranks, separate int) Source {
	kinds := make([]phases.Peer, ranks)
	for i := range kinds {
		kinds[i] = phases.Peer{Profile: "cloudfpga", Kind: "fpga"}
	}
	src := Source{
		Started: started, LostLogLines: func() uint64 { return 0 },
		LastReload:        func() (bool, time.Time) { return true, started },
		AccessDenied:      func() map[string]uint64 { return map[string]uint64{"attach": 0, "control": 0} },
		WebConfigFailures: func() uint64 { return 0 },
	}
	for rank := range ranks {
		e := &engine{}
		recorder := phases.NewRecorder(rank, kinds, separate)
		for peer := range ranks {
			if peer == rank || rank != 0 && peer != 0 {
				continue
			}
			counters := state.PeerCounters{Rank: peer, MessageCounts: state.MessageCounts{Sent: 1000, Received: 1000},
				SentBytes: 400_000, ReceivedBytes: 400_000}
			for t := protocol.SendRequest; t <= protocol.Ack; t++ {
				counters.PacketsOut[t], counters.PacketsIn[t] = 1000, 1000
				counters.BytesOut[t], counters.BytesIn[t] = 32_000, 32_000
			}
			e.peers = append(e.peers, counters)
			for i := range 16 {
				recorder.RecordMessage(sent(peer, time.Duration(1+i)*time.Microsecond), nil)
				recorder.RecordMessage(received(peer, time.Duration(1+i)*time.Microsecond), nil)
			}
		}
		src.Ranks = append(src.Ranks, Rank{Engine: e, Recorder: recorder, State: func() state.RankInfo {
			info := state.RankInfo{Rank: rank, SocketDrops: new(uint64), ReceiveBuffer: 1 << 20,
				Offload: &state.Offload{Batches: true, Segmentation: true, Coalescing: true}}
			if rank > 0 {
				info.Kernel, info.KernelState = "echo", state.KernelRunning
			}
			return info
		}})
	}
	return src
}

// formats contains the Accept headers of a client that shows text, and of a Prometheus that stores native histograms.
var formats = []struct{ name, accept string }{
	{"text", "text/plain"},
	{"protobuf", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"},
}

// TestScrapeIsSmall checks the size of a scrape of a daemon with 256 ranks.
func TestScrapeIsSmall(t *testing.T) {
	for _, tt := range []struct{ peers, limit int }{{64, 1_000_000}, {1024, 2_200_000}} {
		src := star(256, tt.peers)
		registry, err := NewRegistry(src)
		if err != nil {
			t.Fatal(err)
		}
		answer := httptest.NewRecorder()
		Handler(registry, nil).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if n := answer.Body.Len(); n > tt.limit {
			t.Errorf("metrics.peers %d: %d bytes, want at most %d", tt.peers, n, tt.limit)
		}
	}
}

// TestClassicBuckets checks that text formats contain classic buckets for each of the first ranks, and for all others
// together, and that the protobuf format contains them for each rank.
func TestClassicBuckets(t *testing.T) {
	const ranks = maxClassicRanks + 3
	count := func(native bool) (byRank map[string]uint64) {
		byRank = make(map[string]uint64)
		for _, f := range gather(t, star(ranks, 64), native) {
			if f.GetName() != phaseSeconds.name {
				continue
			}
			for _, m := range f.Metric {
				for _, label := range m.Label {
					if label.GetName() == "rank" {
						byRank[label.GetValue()] += m.Histogram.GetSampleCount()
					}
				}
				last := m.Histogram.Bucket[numClassicBounds-1]
				if len(m.Histogram.Bucket) != numClassicBounds || last.GetCumulativeCount() != m.Histogram.GetSampleCount() {
					t.Errorf("%v", m)
				}
			}
		}
		return byRank
	}
	text, protobuf := count(false), count(true)
	if len(text) != maxClassicRanks+1 || len(protobuf) != ranks {
		t.Errorf("%d and %d series of ranks", len(text), len(protobuf))
	}
	others := uint64(0)
	for rank := range ranks {
		name := strconv.Itoa(rank)
		if rank >= maxClassicRanks {
			others += protobuf[name]
		} else if text[name] != protobuf[name] || text[name] == 0 {
			t.Errorf("rank %d: %d times in text, %d in protobuf", rank, text[name], protobuf[name])
		}
	}
	if text[labelOtherRanks] != others || others == 0 {
		t.Errorf("%d times of the other ranks, want %d", text[labelOtherRanks], others)
	}
}

// BenchmarkScrape measures a scrape of a daemon with the given numbers of ranks, and of peers with separate series.
func BenchmarkScrape(b *testing.B) {
	for _, ranks := range []int{4, 64, 256} {
		for _, peers := range []int{64, 1024} {
			registry, err := NewRegistry(star(ranks, peers))
			if err != nil {
				b.Fatal(err)
			}
			handler := Handler(registry, nil)
			for _, format := range formats {
				b.Run(fmt.Sprintf("ranks=%d/peers=%d/%s", ranks, peers, format.name), func(b *testing.B) {
					request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
					request.Header.Set("Accept", format.accept)
					var body []byte
					b.ReportAllocs()
					for b.Loop() {
						answer := httptest.NewRecorder()
						handler.ServeHTTP(answer, request)
						if body, err = io.ReadAll(answer.Body); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(len(body)), "bytes")
					if format.name == "text" {
						b.ReportMetric(float64(bytes.Count(body, []byte("\n"))-bytes.Count(body, []byte("\n# "))), "series")
					}
				})
			}
		}
	}
}
