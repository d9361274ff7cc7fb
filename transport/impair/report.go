package impair

import "cmp"

// Count counts packets and their faults.
type Count struct {
	// Packets and Bytes count all packets sent.
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
	// Lost counts packets dropped by a loss or a partition. Overflowed counts packets dropped because the queue
	// of a rate was full. Duplicated counts additional deliveries.
	Lost       uint64 `json:"lost"`
	Overflowed uint64 `json:"overflowed"`
	Duplicated uint64 `json:"duplicated"`
	Reordered  uint64 `json:"reordered"`
	Delayed    uint64 `json:"delayed"`
	Corrupted  uint64 `json:"corrupted"`
	// Held counts packets of a stream that a partition stalled. Resets and Closes count packets that ended
	// their connection.
	Held   uint64 `json:"held"`
	Resets uint64 `json:"resets"`
	Closes uint64 `json:"closes"`
}

// Row counts the packets of one type in one direction.
type Row struct {
	From   int    `json:"src"`
	To     int    `json:"dst"`
	Packet string `json:"packet"`
	Count

	kind int
}

func compareRows(a, b Row) int {
	return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.kind, b.kind))
}

// Add adds other to c.
func (c *Count) Add(other Count) {
	c.Packets += other.Packets
	c.Bytes += other.Bytes
	c.Lost += other.Lost
	c.Overflowed += other.Overflowed
	c.Duplicated += other.Duplicated
	c.Reordered += other.Reordered
	c.Delayed += other.Delayed
	c.Corrupted += other.Corrupted
	c.Held += other.Held
	c.Resets += other.Resets
	c.Closes += other.Closes
}
