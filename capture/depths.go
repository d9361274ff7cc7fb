package capture

import (
	"fmt"
	"time"
)

// Depths are the lengths of a rank's queues at a time: receives that no message has matched, messages that no receive has matched, and
// sends that have not ended. A recording has them as comments of interface statistics, beside its packets.
type Depths struct {
	Time                            time.Time
	Rank, Posted, Unexpected, Sends int
}

// depthsFormat is how a file has them.
const depthsFormat = "rank %d: posted %d, unexpected %d, sends %d"

// Depths adds the lengths of a rank's queues.
func (w *Writer) Depths(d *Depths) {
	w.ng.begin(blockStatistics)
	w.ng.uint32(0)
	w.ng.time(d.Time)
	w.ng.option(optComment, fmt.Sprintf(depthsFormat, d.Rank, d.Posted, d.Unexpected, d.Sends))
	w.ng.end()
}

// parseDepths reads a comment. It returns false if that is another one.
func parseDepths(comment string, at time.Time) (Depths, bool) {
	d := Depths{Time: at}
	_, err := fmt.Sscanf(comment, depthsFormat, &d.Rank, &d.Posted, &d.Unexpected, &d.Sends)
	return d, err == nil && min(d.Rank, d.Posted, d.Unexpected, d.Sends) >= 0
}
