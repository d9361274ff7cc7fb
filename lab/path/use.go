package path

import "time"

// Use describes the traffic of a path during its lifetime.
type Use struct {
	// Directions describes the traffic from end 0 to end 1, and from end 1 to end 0.
	Directions [2]Traffic `json:"directions"`
	// CPU is the processor time used by the emulator, in percent of one processor.
	CPU float64 `json:"cpu_percent"`
	// Refused is the number of packets that the kernel rejected at the end of the path.
	Refused uint64 `json:"refused"`
}

// Late returns how late packets were delivered on average, in the worse direction.
func (u *Use) Late() time.Duration {
	return time.Duration(max(u.Directions[0].LateMean, u.Directions[1].LateMean) * float64(time.Microsecond))
}

// Traffic describes the traffic in one direction.
type Traffic struct {
	// Packets and Bytes count everything that was sent into the path, including IP headers. Overflowed is the number of
	// packets dropped because the queue was full. Lost is the number of packets lost after they left the queue.
	Packets    uint64 `json:"packets"`
	Bytes      uint64 `json:"bytes"`
	Overflowed uint64 `json:"overflowed"`
	Lost       uint64 `json:"lost"`
	// QueueMean and QueueP99 are the queueing delay in milliseconds. A packet dropped by the queue counts with the
	// delay that it would have had.
	QueueMean float64 `json:"queue_mean_ms"`
	QueueP99  float64 `json:"queue_p99_ms"`
	// LateMean and LateP99 are the delay of deliveries beyond the due time, in microseconds. LateP99 is at most 10 ms.
	LateMean float64 `json:"late_mean_us"`
	LateP99  float64 `json:"late_p99_us"`
}

// traffic returns the traffic until now.
func (d *Direction) traffic() Traffic {
	t := d.counts
	millis := 1e3 / d.rate
	t.QueueMean, t.QueueP99 = d.depth.mean()*millis, d.depth.quantile(0.99)*millis
	t.LateMean, t.LateP99 = d.lateness.mean(), d.lateness.quantile(0.99)
	return t
}
