package recorder

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// followInterval is the interval between two writes of a live recording. Only packets older than settleDelay are
// written, because a rank that is handling an event adds packets with the time of the event. The lengths of queues are
// read every depthsInterval.
const (
	followInterval = 100 * time.Millisecond
	settleDelay    = 20 * time.Millisecond
	depthsInterval = 10 * time.Millisecond
)

// Queues gives access to the lengths of a rank's queues.
type Queues struct {
	Rank   int
	Depths func() state.Depths
}

// Follow writes the recorded entries and the lengths of all queues, and then new entries and changed lengths, until
// done is closed.
func (rd *Reader) Follow(out *pcapng.Writer, recording Recording, queues []Queues, done <-chan struct{}) error {
	tick := time.NewTicker(depthsInterval)
	defer tick.Stop()
	written := slices.Repeat([]state.Depths{{Posted: -1}}, len(queues)) // so that each is written at least once
	depths := func(now time.Time) {
		for i, q := range queues {
			if d := q.Depths(); d != written[i] {
				written[i] = d
				out.AddNote(&pcapng.QueueDepths{Time: now, Rank: q.Rank, Posted: d.Posted, Unexpected: d.Unexpected,
					Sends: d.Sends})
			}
		}
	}
	for ended := false; ; {
		if err := recording.writeTo(out); err != nil {
			return err
		}
		last := time.Now()
		depths(last)
		if ended {
			out.WriteEnd(&pcapng.EndRecord{Time: last, LostPackets: rd.LostEntries()})
		}
		if err := out.Flush(); err != nil || ended {
			return err
		}
		settled := settleDelay
		for !ended && time.Since(last) < followInterval {
			select {
			case at := <-tick.C:
				depths(at)
			case <-done:
				ended, settled = true, 0
			}
		}
		recording = rd.Read(time.Now().Add(-settled))
	}
}
