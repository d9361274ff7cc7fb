package phases

import (
	"encoding/json"
	"fmt"
)

// Times contains the content of a Recorder in the form in which it is passed to another process as JSON.
type Times struct {
	Classes []Class           `json:"classes,omitempty"`
	Peers   map[int]PeerTimes `json:"peers,omitempty"`
}

// Recorder returns a Recorder with the content of t for a rank in a cluster of the given size. All peers in t get
// separate series.
func (t *Times) Recorder(rank, size int) *Recorder {
	recorder := &Recorder{rank: rank, peers: make([]peerState, size), maxSeparate: size}
	for i := range t.Classes {
		recorder.classes = append(recorder.classes, &t.Classes[i])
	}
	for peer, times := range t.Peers {
		if peer >= 0 && peer < size {
			*recorder.seriesFor(peer) = times
		}
	}
	return recorder
}

// histogramJSON is the JSON form of a Histogram.
type histogramJSON struct {
	Zero   uint64         `json:"zero,omitempty"`
	Sum    float64        `json:"sum,omitempty"`
	Counts map[int]uint64 `json:"counts,omitempty"` // by index of the native bucket
}

// MarshalJSON implements json.Marshaler.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	b := histogramJSON{Zero: h.ZeroCount, Sum: h.Sum, Counts: map[int]uint64{}}
	for key, n := range h.Buckets {
		b.Counts[key] = n
	}
	return json.Marshal(&b)
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var b histogramJSON
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	*h = Histogram{ZeroCount: b.Zero, Sum: b.Sum}
	for key, n := range b.Counts {
		at := key - minKey
		if at < 0 || at/PerOctave >= len(h.chunkIndex) {
			return fmt.Errorf("a histogram with bucket %d", key)
		}
		octave := at / PerOctave
		if h.chunkIndex[octave] == 0 {
			h.addChunk(octave)
		}
		h.chunks[h.chunkIndex[octave]-1][at%PerOctave] = n
	}
	return nil
}
