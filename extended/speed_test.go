package extended

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The time for 8 MiB with a round trip of 40 µs, and the number of unnecessary packets. The bounds are twice the
// measured values.
func TestTimeToFinish(t *testing.T) {
	const size = 8 << 20
	for _, x := range []struct {
		weather
		most    time.Duration
		surplus float64 // packets from the sender beyond the necessary ones
	}{
		{weather{}, 2 * time.Millisecond, 0.001},
		{weather{loss: 0.001}, 4 * time.Millisecond, 0.005},
		{weather{loss: 0.01}, 80 * time.Millisecond, 0.02},
		{weather{loss: 0.1}, 3500 * time.Millisecond, 0.2},
		{weather{dup: 0.2}, 2 * time.Millisecond, 0.001},
		{weather{late: 0.01, delay: 200 * time.Microsecond}, 40 * time.Millisecond, 0.02},
		{weather{late: 1, delay: 20 * time.Microsecond}, 120 * time.Millisecond, 0.05},
	} {
		t.Run(fmt.Sprintf("%+v", x.weather), func(t *testing.T) {
			w := newWorld(Config{})
			w.fault = x.fault(rand.New(rand.NewPCG(1, 4)))
			var tr traffic
			tr.post(w, 0, size, size, SendOp{})
			w.run(time.Minute)
			if err := errors.Join(w.err(), quiet(w.nodes[0]), quiet(w.nodes[1]), tr.check()); err != nil {
				t.Fatal(err)
			}
			least := float64(size/defaultPayload + 4)
			surplus := float64(w.sent[0])/least - 1
			s := w.nodes[0].conn.Stats()
			t.Logf("%v, %.3f packets too many, %d ACKs, window %d, RTO %v, %d losses, %d timeouts", w.now, surplus,
				w.sent[1], s.Window, s.Timeout, s.Losses, s.Timeouts)
			if w.now > x.most || surplus > x.surplus {
				t.Errorf("%v and %.3f packets too many, more than %v and %.3f", w.now, surplus, x.most, x.surplus)
			}
		})
	}
}
