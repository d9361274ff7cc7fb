package pcapng

import (
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	for _, c := range []struct {
		resolution byte
		ticks      uint64
		want       time.Duration
	}{
		{0, 3, 3 * time.Second},
		{6, 1500000, 1500 * time.Millisecond},
		{9, 1500000001, 1500*time.Millisecond + 1},
		{12, 1500000001999, 1500*time.Millisecond + 1},
		{19, 15000000019999999999, 1500*time.Millisecond + 1},
		{0x80, 3, 3 * time.Second},
		{0x80 | 1, 3, 1500 * time.Millisecond},
		{0x80 | 32, 3 << 31, 1500 * time.Millisecond},
		{0x80 | 63, 3 << 62, 1500 * time.Millisecond},
	} {
		clock := defaultClock()
		if !clock.setResolution(c.resolution) {
			t.Errorf("resolution %#x refused", c.resolution)
		}
		if got := clock.toTime(c.ticks).Sub(time.Unix(0, 0)); got != c.want {
			t.Errorf("%d ticks of %#x are %v, want %v", c.ticks, c.resolution, got, c.want)
		}
	}
	for _, bad := range []byte{20, 127, 0x80 | 64, 0xff} {
		clock := defaultClock()
		if clock.setResolution(bad) {
			t.Errorf("resolution %#x accepted", bad)
		}
	}
}
