package extended

import (
	"testing"
)

// If the path has become shorter since the only measured round trip, a lost window is detected nevertheless: otherwise
// each of its packets would wait for a separate timeout.
func TestLostWindowOnAShorterWay(t *testing.T) {
	c := newCouple(Config{MaxPayload: 1000})
	c.send(0, 1, 8, 0)
	c.deliverAll()
	c.send(0, 2, 16_000, 0)
	c.acts[0] = c.conns[0].Flush(c.now, c.acts[0])
	c.do(0)
	if len(c.wire[0]) < 10 {
		t.Fatalf("%d packets are sent", len(c.wire[0]))
	}
	c.wire[0] = nil
	ticks := 0
	for ; c.done < 2 && ticks < 100; ticks++ {
		for i := range c.conns {
			at, ok := c.conns[i].Deadline()
			if !ok {
				continue
			}
			c.now = max(c.now, at)
			c.acts[i] = c.conns[i].Tick(c.now, c.acts[i])
			c.do(i)
		}
		c.deliverAll()
	}
	if s := c.conns[0].Stats(); c.done != 2 || s.Timeouts > 2 {
		t.Errorf("%d sends are done after %d ticks; %d timeouts, %d losses", c.done, ticks, s.Timeouts, s.Losses)
	}
}
