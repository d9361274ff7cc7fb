package cosim_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// TestCapture checks that the packets of a capture carry the cycles of the role. The role transfers at most one line
// per cycle, so the echo must be at least as many cycles later than the message as the message has words.
func TestCapture(t *testing.T) {
	const words = 1000
	c := start(t, build(t, "vhdl"), "", "")
	c.ping(t, words, 1, "int")
	at := packets(t, c)
	if came, went := at["DATA 0"], at["DATA 1"]; came < 16 || went < came+words {
		t.Errorf("packets at cycles %v", at)
	}
}

// packets returns the cycle of the last packet of each type and sender in a capture. It fails the test if a packet has
// no cycle.
func packets(t *testing.T, c *cluster) map[string]uint64 {
	t.Helper()
	body, profile, err := c.Client.Capture(within(t, time.Minute), control.CaptureRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	src, err := capture.Options{}.NewReader(body, "capture")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Client.Status(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	at, last := map[string]uint64{}, s.Ranks[1].KernelStats.Simulation.Cycle
	var cycle uint64
	tracker := capture.NewTracker(capture.TrackerOptions{Profile: profile, OnEvent: func(e *capture.Event) {
		if e.Kind == capture.PacketEvent {
			at[fmt.Sprint(e.Header.Type, e.Header.Src)] = cycle
		}
	}})
	for u := (pcapng.Unit{}); ; {
		if err := src.Next(&u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var found []pcapng.Cycle
		for _, comment := range u.Comments {
			if c, ok := pcapng.ParseCycle(comment); ok {
				found = append(found, c)
			}
		}
		if found == nil && cycle == 0 {
			continue // before the simulator starts
		}
		if len(found) != 1 || found[0].Rank != 1 || found[0].Simulation != 1 || found[0].Cycle > last {
			t.Errorf("packet %d has comments %q, now is cycle %d", u.Packet, u.Comments, last)
			continue
		}
		cycle = found[0].Cycle
		tracker.ProcessUnit(&u)
	}
	return at
}
