package udp

import (
	"testing"
	"time"
)

func TestPacerKeepsToTheSchedule(t *testing.T) {
	const us = time.Microsecond
	p := pacer{every: 10 * us}
	begin := time.Unix(1000, 0)
	for i, tt := range []struct{ now, slot time.Duration }{
		{0, 0},
		{2 * us, 10 * us},
		{10 * us, 20 * us},
		{23 * us, 30 * us},
		{44 * us, 40 * us},   // late by less than a slot: no drift
		{45 * us, 50 * us},   //
		{75 * us, 75 * us},   // late by more: a new schedule, no burst
		{76 * us, 85 * us},   //
		{105 * us, 105 * us}, // late by exactly one
	} {
		if got := p.slot(begin.Add(tt.now)).Sub(begin); got != tt.slot {
			t.Errorf("%d: slot at %v, want %v", i, got, tt.slot)
		}
	}
}

func TestPacerWaits(t *testing.T) {
	p := pacer{every: 3 * coarse}
	begin := time.Now()
	for range 3 {
		p.wait()
	}
	if took := time.Since(begin); took < 6*coarse {
		t.Errorf("three slots of %v took %v", p.every, took)
	}
}

func TestNoPacingDoesNotWait(t *testing.T) {
	var p pacer
	for range 1000 {
		p.wait()
	}
	if !p.next.IsZero() {
		t.Error("the zero pacer has a schedule")
	}
}
