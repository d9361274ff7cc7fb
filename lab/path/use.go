package path

import "time"

// Use is the traffic of a path over its lifetime.
type Use struct {
	// Directions are the traffic from end 0 to end 1, and back.
	Directions [2]Traffic `json:"directions"`
	// CPU is the processor time of the emulator, in percent of one processor.
	CPU float64 `json:"cpu_percent"`
	// Refused counts packets that the kernel did not accept at the end of the path.
	Refused uint64 `json:"refused"`
}

// Late returns the mean delay of deliveries beyond the configured time, in the worse direction.
func (u *Use) Late() time.Duration {
	return time.Duration(max(u.Directions[0].LateMean, u.Directions[1].LateMean) * float64(time.Microsecond))
}

// Traffic is the traffic in one direction.
type Traffic struct {
	// Packets and Bytes count everything sent into the path, including IP headers. Overflowed counts packets dropped by
	// the full queue, Lost the packets lost after it.
	Packets    uint64 `json:"packets"`
	Bytes      uint64 `json:"bytes"`
	Overflowed uint64 `json:"overflowed"`
	Lost       uint64 `json:"lost"`
	// QueueMean and QueueP99 are the queueing delay in milliseconds. Packets dropped by the queue count with the delay
	// that they would have had.
	QueueMean float64 `json:"queue_mean_ms"`
	QueueP99  float64 `json:"queue_p99_ms"`
	// LateMean and LateP99 are the delay of deliveries beyond the configured time, in microseconds. LateP99 is at most
	// 10 ms.
	LateMean float64 `json:"late_mean_us"`
	LateP99  float64 `json:"late_p99_us"`
}

// traffic returns the traffic so far.
func (d *Direction) traffic() Traffic {
	t := d.counts
	millis := 1e3 / d.rate
	t.QueueMean, t.QueueP99 = d.depth.mean()*millis, d.depth.quantile(0.99)*millis
	t.LateMean, t.LateP99 = d.lateness.mean(), d.lateness.quantile(0.99)
	return t
}
