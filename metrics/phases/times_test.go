package phases

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
)

// TestHistogramAsJSON checks that a histogram is unchanged in another process, and that an impossible one is
// rejected.
func TestHistogramAsJSON(t *testing.T) {
	for _, times := range [][]uint64{nil, {0}, {0, 1, 1, 7, 1000, 1001, 1e9, math.MaxInt64}} {
		var h, other Histogram
		for _, ns := range times {
			h.Add(ns)
		}
		text, err := json.Marshal(&h)
		if err == nil {
			err = json.Unmarshal(text, &other)
		}
		if err != nil {
			t.Fatal(err)
		}
		counts := func(h *Histogram) map[int]uint64 {
			all := map[int]uint64{}
			for key, n := range h.Buckets {
				all[key] = n
			}
			return all
		}
		if h.ZeroCount != other.ZeroCount || h.Sum != other.Sum || h.Count() != uint64(len(times)) ||
			!reflect.DeepEqual(counts(&h), counts(&other)) {
			t.Errorf("%v: %s is %+v", times, text, other)
		}
	}
	for _, text := range []string{`{"counts":{"-241":1}}`, `{"counts":{"288":1}}`, `{"counts":{"x":1}}`, `7`} {
		if err := json.Unmarshal([]byte(text), new(Histogram)); err == nil {
			t.Errorf("%s is a histogram", text)
		} else if strings.Contains(text, "288") && !strings.Contains(err.Error(), "bucket 288") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
