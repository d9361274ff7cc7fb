package path

import (
	"time"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// Direction is one direction of a path. It copies the packets that it carries. The queue and the delay limit the number
// of buffered packets. It is not safe for concurrent use.
type Direction struct {
	rate  float64
	epoch time.Time
	// bottleneck models the limited rate and the queue in front of it. wire models what happens to packets after the
	// queue: loss, delay, reordering and duplication.
	bottleneck, wire *impair.Impairer
	// freeAt is the time at which all packets accepted so far will have been sent.
	freeAt  time.Time
	pending impair.Queue[[]byte]
	// delivered is the packet that the last call of Deliver returned. spare contains buffers for reuse.
	delivered []byte
	spare     [][]byte
	mtu       int
	// counts holds the traffic so far. It does not include the figures that are computed from depth and lateness.
	counts Traffic
	// depth records the queue length in bytes that each packet found on arrival. lateness records the delay of each
	// delivery beyond its due time, in microseconds.
	depth, lateness histogram
}

// latenessBound is the longest delay that the histogram of late deliveries distinguishes. Longer delays count as this
// one.
const latenessBound = 10 * time.Millisecond

// newDirection returns a direction of a path. number is 0 or 1. c must be complete, including defaults. Times are
// relative to epoch.
func newDirection(config Config, number int, epoch time.Time) (*Direction, error) {
	seed := 2*config.Seed + number
	bottleneck, err := impair.New(impair.Script{Seed: seed,
		Rules: []impair.Rule{{Rate: bytesize.Size(config.Rate),
			Queue: bytesize.Size(config.Queue)}}}, impair.Datagrams, endAddrs)
	if err != nil {
		return nil, err
	}
	late := impair.Span{Min: config.Late, Max: config.Late}
	delay := impair.Span{Min: config.RTT / 2, Max: config.RTT / 2}
	wire, err := impair.New(impair.Script{Seed: seed, Rules: []impair.Rule{{
		Loss: impair.Percent(config.Loss), Delay: delay, Reorder: impair.Percent(config.Reorder),
		Duplicate: impair.Percent(config.Duplicate), Late: late,
	}}}, impair.Datagrams, endAddrs)
	if err != nil {
		return nil, err
	}
	return &Direction{
		rate: float64(config.Rate), epoch: epoch, bottleneck: bottleneck, wire: wire, freeAt: epoch, mtu: config.MTU,
		depth: newHistogram(config.Queue), lateness: newHistogram(int(latenessBound / time.Microsecond)),
	}, nil
}

// Send puts a packet into the path at time now. now must not decrease from call to call.
func (d *Direction) Send(now time.Time, packet []byte) {
	d.counts.Packets++
	d.counts.Bytes += uint64(len(packet))
	d.depth.add(int(max(d.freeAt.Sub(now), 0).Seconds() * d.rate))
	since := now.Sub(d.epoch)
	queued := d.bottleneck.DecideDatagram(since, 0, 1, packet)
	if len(queued) == 0 {
		d.counts.Overflowed++
		return
	}
	d.freeAt = now.Add(queued[0].After)
	deliveries := d.wire.DecideDatagram(since, 0, 1, packet)
	if len(deliveries) == 0 {
		d.counts.Lost++
	}
	for _, x := range deliveries {
		d.pending.Push(d.freeAt.Add(x.After), append(d.buffer(), packet...))
	}
}

// buffer returns an empty buffer for a packet.
func (d *Direction) buffer() []byte {
	if n := len(d.spare) - 1; n >= 0 {
		b := d.spare[n]
		d.spare = d.spare[:n]
		return b
	}
	return make([]byte, 0, d.mtu)
}

// Deliver returns the next packet that is due at time now, if any. The packet is valid until the next call.
func (d *Direction) Deliver(now time.Time) (packet []byte, ok bool) {
	if d.delivered != nil {
		d.spare, d.delivered = append(d.spare, d.delivered[:0]), nil
	}
	due, ok := d.pending.NextDue()
	if !ok || due.After(now) {
		return nil, false
	}
	d.lateness.add(int(now.Sub(due) / time.Microsecond))
	d.delivered, _ = d.pending.Pop(now)
	return d.delivered, true
}

// Due returns the time at which the next packet is due, if any.
func (d *Direction) Due() (time.Time, bool) { return d.pending.NextDue() }
