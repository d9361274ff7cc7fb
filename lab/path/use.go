package path

import "time"

// Use is what has passed a path.
type Use struct {
	// Directions are those from end 0 to end 1, and back.
	Directions [2]Traffic `json:"directions"`
	// CPU is the processor time of the emulator in percent of one processor.
	CPU float64 `json:"cpu_percent"`
	// Refused are packets that the kernel did not take at the end of the path.
	Refused uint64 `json:"refused"`
}

// Late returns by how much packets were delivered too late, on average in the worse
// direction.
func (u *Use) Late() time.Duration {
	return time.Duration(max(u.Directions[0].LateMean, u.Directions[1].LateMean) * float64(time.Microsecond))
}

// Traffic is what has passed one direction.
type Traffic struct {
	// Packets and Bytes are those that were sent into it, with their IP headers.
	// Overflowed are packets for which the queue had no room, Lost those that were lost
	// behind it.
	Packets    uint64 `json:"packets"`
	Bytes      uint64 `json:"bytes"`
	Overflowed uint64 `json:"overflowed"`
	Lost       uint64 `json:"lost"`
	// QueueMean and QueueP99 are how long packets waited in the queue, in milliseconds; of
	// those for which it had no room, how long they would have.
	QueueMean float64 `json:"queue_mean_ms"`
	QueueP99  float64 `json:"queue_p99_ms"`
	// LateMean and LateP99 are by how many microseconds packets were delivered later than
	// configured; more than 10 ms counts as 10 ms in the latter.
	LateMean float64 `json:"late_mean_us"`
	LateP99  float64 `json:"late_p99_us"`
}

// traffic returns what has passed so far.
func (d *Direction) traffic() Traffic {
	t := d.counts
	millis := 1e3 / d.rate
	t.QueueMean, t.QueueP99 = d.depth.mean()*millis, d.depth.quantile(0.99)*millis
	t.LateMean, t.LateP99 = d.lateness.mean(), d.lateness.quantile(0.99)
	return t
}
