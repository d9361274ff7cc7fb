package capture_test

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
)

// near checks that two messages are equal, except that their phases may differ by up to 50 µs.
func near(t *testing.T, got, want capture.Message) {
	t.Helper()
	for _, phase := range []struct{ got, want **float64 }{
		{&got.Phases.RequestToClear, &want.Phases.RequestToClear}, {&got.Phases.ClearToData, &want.Phases.ClearToData},
		{&got.Phases.DataToAck, &want.Phases.DataToAck}, {&got.Phases.Total, &want.Phases.Total},
	} {
		g, w := *phase.got, *phase.want
		if (g == nil) != (w == nil) || g != nil && math.Abs(*g-*w) > 50e-6 {
			t.Errorf("message %d: phases %+v, want %+v", got.ID, got.Phases, want.Phases)
		}
		*phase.got, *phase.want = nil, nil
	}
	if math.Abs(got.Start-want.Start) > 50e-6 {
		t.Errorf("message %d starts at %v, want %v", got.ID, got.Start, want.Start)
	}
	got.Start = want.Start
	if !reflect.DeepEqual(got, want) {
		t.Errorf("message %+v, want %+v", got, want)
	}
}

// TestJoinClocks: recordings made at both ends of an exchange, with clocks that differ by 300 ms, show the same
// messages, findings and times as recordings with equal clocks, and as a single recording. This holds with and without
// IP identifications.
func TestJoinClocks(t *testing.T) {
	for name, c := range deployedCaptures(t) {
		for _, anonymous := range []bool{false, true} {
			for _, offset := range []time.Duration{300 * time.Millisecond, -300 * time.Millisecond} {
				p := places{c: c, delay: 400, jitter: 300, anonymous: anonymous}
				want := p.join(t)
				p.offset = offset
				got := p.join(t)
				single := joined(t, "testdata/captures/"+name+".pcap")
				if len(got.Messages) != len(want.Messages) || len(got.Messages) != len(single.Messages) {
					t.Fatalf("%s, %v: %d messages, want %d and %d",
						name, offset, len(got.Messages), len(want.Messages), len(single.Messages))
				}
				for i := range got.Messages {
					near(t, got.Messages[i], want.Messages[i])
					near(t, got.Messages[i], single.Messages[i])
				}
				if len(got.Findings) != len(want.Findings) || len(got.Findings) != len(single.Findings) {
					t.Errorf("%s, %v: %d findings, want %d and %d",
						name, offset, len(got.Findings), len(want.Findings), len(single.Findings))
					continue
				}
				for i, f := range got.Findings {
					w, s := want.Findings[i], single.Findings[i]
					if f.Kind != w.Kind || f.Text != w.Text || !slices.Equal(f.Packets, w.Packets) ||
						math.Abs(f.Time-w.Time) > 50e-6 {
						t.Errorf("%s, %v: %+v, want %+v", name, offset, f, w)
					}
					if f.Kind != s.Kind || !slices.Equal(f.Packets, s.Packets) {
						t.Errorf("%s, %v: %+v, want %+v of a single recording", name, offset, f, s)
					}
				}
				v := got.Joined.Vantages
				if len(v) != 2 || got.Joined.Common != int64(len(c.Packets)) || v[0].Only+v[1].Only != 0 ||
					v[1].Clock == nil ||
					math.Abs(v[1].Clock.Offset-offset.Seconds()) > 50e-6 {
					t.Errorf("%s, %v: %+v", name, offset, got.Joined)
				}
			}
		}
	}
}

// TestJoinDrift: the drift of a clock that runs 50 ppm fast is compensated.
func TestJoinDrift(t *testing.T) {
	p := places{c: exchange(4000), delay: 40 * time.Microsecond, jitter: 10 * time.Microsecond, offset: 300 * ms}
	p.drift = 50e-6
	r := p.join(t)
	if len(r.Findings) > 0 || r.Joined.Common != int64(len(p.c.Packets)) {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
	if c := r.Joined.Vantages[1].Clock; c == nil || math.Abs(c.Drift-50e-6) > 1e-6 {
		t.Errorf("%+v", c)
	}
}

// TestJoinOneDirection: the uncertainty is unknown if clocks are compared by packets that travel in one direction only.
func TestJoinOneDirection(t *testing.T) {
	p := places{c: exchange(10), delay: 40 * time.Microsecond, offset: 300 * ms}
	for i, packet := range p.c.Packets {
		if packet.Data[14+15] == 2 { // from 10.0.0.2
			p.notHere = append(p.notHere, i+1)
		}
	}
	r := p.join(t)
	c := r.Joined.Vantages[1].Clock
	if c == nil || c.Uncertainty != nil || math.Abs(c.Offset-0.3) > 50e-6 {
		t.Errorf("%+v", c)
	}
	const want = "none of the 25 packets from 10.0.0.2:2718 to 10.0.0.1:2718 in there.pcap is in here.pcap"
	if o := r.Joined.OneWay; len(o) != 1 || o[0].In != "there.pcap" || len(r.Joined.Missing) > 0 ||
		len(r.Findings) != 1 || !strings.HasPrefix(r.Findings[0].Text, want) {
		t.Errorf("%+v, %+v", r.Joined, r.Findings)
	}
}
