package udp

import (
	"testing"
	"time"
)

func TestBucket(t *testing.T) {
	const every, us = 10 * time.Microsecond, time.Microsecond
	begin := time.Unix(1000, 0)
	var b bucket
	for i, tt := range []struct {
		now  time.Duration
		want int
		wait time.Duration
	}{
		{0, 100, 0},                  // full at first
		{0, 10, 0},                   // 18 left
		{0, 64, (64 - 18) * every},   // all or nothing
		{0, 18, 0},                   //
		{0, 1, every},                //
		{9 * us, 1, us},              //
		{10 * us, 1, 0},              //
		{650*us - 1, 64, 1},          //
		{650 * us, 64, 0},            //
		{650*us + 100*every, 100, 0}, // it kept filling
		{time.Hour, 128, 0},          // but not beyond its depth
		{time.Hour, 64, 64 * every},  //
	} {
		if wait := b.takeTokens(begin.Add(tt.now), every, tt.want); wait != tt.wait {
			t.Errorf("%d: %d: wait %v, want %v", i, tt.want, wait, tt.wait)
		}
	}
}

// TestBucketKeepsTheRate checks that, over a long time, as many tokens are taken from the bucket as it gains, however
// long the actual waits are.
func TestBucketKeepsTheRate(t *testing.T) {
	const every, batch = 1100 * time.Nanosecond, 64
	for _, late := range []time.Duration{0, time.Microsecond, 60 * time.Microsecond} {
		var b bucket
		begin := time.Unix(1000, 0)
		now, sent := begin, 0
		for sent < 100_000 {
			if wait := b.takeTokens(now, every, batch); wait > 0 {
				now = now.Add(wait + late)
				continue
			}
			sent += batch
		}
		took, floor := now.Sub(begin), time.Duration(sent-bucketDepth)*every
		if took < floor || took > floor+floor/50 {
			t.Errorf("late by %v: it took %v, and not %v", late, took, floor)
		}
	}
}
