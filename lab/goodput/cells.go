package goodput

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/lab/path"
)

// Names of the compared sides.
const (
	tcpCubic    = "tcp-cubic"
	extendedUDP = "extended-udp"
	extendedTCP = "extended-tcp"
)

var sides = []string{tcpCubic, extendedUDP, extendedTCP}

// Parts of a measurement.
const (
	partLoss    = "loss"
	partMTU     = "mtu"
	partReorder = "reorder"
	partShares  = "shares"
	partIntact  = "intact"
)

// Parts returns the names of all parts of a measurement.
func Parts() []string { return []string{partLoss, partMTU, partReorder, partShares, partIntact} }

// The capacity and the default MTU of the emulated paths. 100 Mbit/s are 8,333 packets of 1500 bytes per second.
const (
	rate       = 100_000_000 / 8
	defaultMTU = 1500
)

// How long flows last. Losses are rare on long paths, so flows on lossy paths last for additional round trips.
// Measurements of two flows skip the first seconds, so that they measure shares in the steady state. They cover several
// periods of CUBIC's window, which last 5 s here.
const (
	cellTime   = 4 * time.Second
	lossyTrips = 40
	sharesTime = 40 * time.Second
	sharesSkip = 10 * time.Second
	quickTime  = time.Second
	intactTime = 2 * time.Minute // at most
)

// intactBytes is the number of bytes transferred in the part "intact". It exceeds a window of messages.
const intactBytes, quickBytes = 100_000_000, 5_000_000

// Cell describes a network path, and holds the measurements made on it.
type Cell struct {
	Part string `json:"part"`
	// RTT and Late are in milliseconds; Loss, Reorder and Duplicate in percent; Rate in bytes per second.
	RTT       float64    `json:"rtt_ms"`
	Loss      float64    `json:"loss_percent"`
	MTU       int        `json:"mtu"`
	Rate      int        `json:"rate"`
	Reorder   float64    `json:"reorder_percent,omitempty"`
	Duplicate float64    `json:"duplicate_percent,omitempty"`
	Late      float64    `json:"late_ms,omitempty"`
	Runs      []Measured `json:"runs"`

	// duration is the duration of a flow, and skip its initial part, which does not count. A flow with bytes greater
	// than 0 ends once that number of bytes has been received.
	duration, skip time.Duration
	byteLimit      int64
}

// Measured holds the measurements of one flow, or of several flows at the same time.
type Measured struct {
	// Flows lists the side of each flow.
	Flows  []string `json:"flows"`
	Rounds []Round  `json:"rounds"`
}

// Round is one repetition of a measurement.
type Round struct {
	// Seed determines which packets are lost. All measurements of a cell use the same seed in a round.
	Seed  int      `json:"seed"`
	Flows []Flow   `json:"flows"`
	Path  path.Use `json:"path"`
}

// Flow is the result of one flow: the number of verified bytes that were received, and the time that this took.
type Flow struct {
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
	// CPU is the processor time in seconds used by the processes of the sender and the receiver.
	CPU float64 `json:"cpu_seconds"`
}

// goodput returns the goodput in units of 10⁶ bytes per second.
func (f *Flow) goodput() float64 {
	if f.Seconds <= 0 {
		return 0
	}
	return float64(f.Bytes) / f.Seconds / 1e6
}

// hasSamePath reports whether two cells have the same path and part.
func (c *Cell) hasSamePath(other *Cell) bool { return c.String() == other.String() }

// String returns a description such as "loss, 20 ms, 0.1 %, MTU 1500".
func (c *Cell) String() string {
	s := fmt.Sprintf("%s, %g ms, %g %%, MTU %d", c.Part, c.RTT, c.Loss, c.MTU)
	if c.Reorder > 0 {
		s += fmt.Sprintf(", reorder %g %%", c.Reorder)
	}
	if c.Duplicate > 0 {
		s += fmt.Sprintf(", duplicate %g %%", c.Duplicate)
	}
	return s
}

// config returns the configuration of the cell's path. All sides use the same seed in a round.
func (c *Cell) config(seed int) path.Config {
	return path.Config{
		RTT: millis(c.RTT), Rate: c.Rate, MTU: c.MTU, Loss: c.Loss, Reorder: c.Reorder, Duplicate: c.Duplicate,
		Late: millis(c.Late),
		Seed: seed, TCP: "cubic",
		// Buffers large enough not to limit TCP, and no metrics that the kernel saved from earlier connections.
		Settings: map[string]string{
			"net.ipv4.tcp_no_metrics_save": "1", "net.ipv4.tcp_rmem": "4096 131072 33554432",
			"net.ipv4.tcp_wmem": "4096 65536 33554432",
		},
	}
}

// millis converts milliseconds to a Duration.
func millis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// selectCells returns the cells to be measured with the options chosen by the user.
func (o *Options) selectCells() []Cell {
	var all []Cell
	single := func(cell Cell) {
		cell.duration = cellTime
		if cell.Loss > 0 {
			cell.duration += lossyTrips * millis(cell.RTT)
		}
		for _, s := range o.filterSides(sides) {
			cell.Runs = append(cell.Runs, Measured{Flows: []string{s}})
		}
		all = append(all, cell)
	}
	for _, part := range o.Parts {
		switch part {
		case partLoss:
			for _, rtt := range o.RTTs {
				for _, loss := range o.Losses {
					single(Cell{Part: part, RTT: rtt, Loss: loss, MTU: defaultMTU})
				}
			}
		case partMTU:
			for _, mtu := range o.MTUs {
				single(Cell{Part: part, RTT: middleRTT, MTU: mtu})
			}
		case partReorder:
			single(Cell{Part: part, RTT: middleRTT, MTU: defaultMTU, Reorder: 5, Late: 2})
			single(Cell{Part: part, RTT: middleRTT, MTU: defaultMTU, Duplicate: 5})
		case partShares:
			all = append(all, Cell{Part: part, RTT: middleRTT, MTU: defaultMTU, duration: sharesTime, skip: sharesSkip,
				Runs: o.pairRuns()})
		case partIntact:
			c := Cell{Part: part, RTT: middleRTT, Loss: 0.1, MTU: defaultMTU, Reorder: 1, Duplicate: 1, Late: 2,
				duration: intactTime, byteLimit: intactBytes}
			for _, s := range o.filterSides([]string{extendedUDP}) {
				c.Runs = append(c.Runs, Measured{Flows: []string{s}})
			}
			all = append(all, c)
		}
	}
	for i := range all {
		cell := &all[i]
		cell.Rate = rate
		if o.Quick {
			cell.duration, cell.skip, cell.byteLimit = min(cell.duration,
				max(quickTime, 10*millis(cell.RTT))), 0, min(cell.byteLimit, quickBytes)
		}
		if cell.byteLimit > 0 {
			cell.duration = intactTime
		}
	}
	return slices.DeleteFunc(all, func(c Cell) bool { return len(c.Runs) == 0 })
}

// middleRTT is the round-trip time in milliseconds in the parts that measure at a single round-trip time.
const middleRTT = 20

// pairRuns returns the measurements with two flows.
func (o *Options) pairRuns() (runs []Measured) {
	for _, flows := range [][]string{{tcpCubic, tcpCubic}, {extendedUDP, extendedUDP}, {extendedUDP, tcpCubic},
		{extendedTCP, tcpCubic}} {
		if len(o.filterSides(flows)) == len(flows) {
			runs = append(runs, Measured{Flows: flows})
		}
	}
	return runs
}

// filterSides returns the given sides without the ones that the user has not selected.
func (o *Options) filterSides(some []string) []string {
	return slices.DeleteFunc(slices.Clone(some),
		func(s string) bool { return len(o.Only) > 0 && !slices.Contains(o.Only, s) })
}

// tolerance limits how late packets may be on average: by a twentieth of the round-trip time, but at most 1 ms. The
// limit is low because TCP ends slow start when the round-trip time grows by 4 ms.
func (c *Cell) tolerance() time.Duration { return min(millis(c.RTT)/20, time.Millisecond) }

// name returns the sides of the measured flows, joined by " + ".
func (r *Measured) name() string { return strings.Join(r.Flows, " + ") }
