package relay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// Relay relays packets between ranks until Close is called.
type Relay struct {
	plan      *Plan
	script    impair.Script
	startTime time.Time
	sockets   socketSet
	tasks     sync.WaitGroup

	// mu guards the following fields.
	mu       sync.Mutex
	impairer *impair.Impairer
	counts   counts
	closed   bool
}

// socketSet is implemented by the two kinds of sockets that a relay can use.
type socketSet interface {
	// socketDrops returns the number of datagrams dropped by the system because a buffer was full.
	socketDrops() uint64
	close()
}

// counts holds the counters that are not kept separately for each direction.
type counts struct {
	unknownSource, failed uint64
	// limitErr is the last error caused by the limit on file descriptors, nil if none occurred.
	limitErr error
}

// Listen opens the sockets of the relay and starts to relay packets according to the script. It returns an error from
// Script.Check, or an error that names an unavailable address.
func Listen(plan *Plan, s impair.Script) (*Relay, error) {
	im, err := impair.New(s, plan.Medium, plan.cfg.Addrs())
	if err != nil {
		return nil, err
	}
	relay := &Relay{plan: plan, script: s, startTime: time.Now(), impairer: im}
	if plan.Medium == impair.Streams {
		relay.sockets, err = listenStreams(relay)
	} else {
		relay.sockets, err = listenDatagrams(relay)
	}
	if err != nil {
		relay.Close()
		return nil, err
	}
	return relay, nil
}

// Close closes all sockets and waits for the relay's goroutines. Delayed packets are lost.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.sockets.close()
	r.tasks.Wait()
}

// Report holds the counters of a relay.
type Report struct {
	// Seconds is the uptime of the relay in seconds. Transport is udp or tcp.
	Seconds   float64 `json:"span_seconds"`
	Transport string  `json:"transport"`
	Seed      int     `json:"seed"`
	// Rows counts what happened to the packets, separately for each direction and packet type. Total is the sum of all
	// rows.
	Rows  []impair.Row `json:"rows"`
	Total impair.Count `json:"total"`
	// UnknownSource counts datagrams and connections from addresses that belong to no rank. The relay drops them.
	UnknownSource uint64 `json:"unknown_source"`
	// Failed counts packets that could not be forwarded, and connections that could not be made.
	Failed uint64 `json:"failed"`
	// Limit is the error of a connection that failed because the process had run out of file descriptors. It is empty
	// if no connection failed for this reason.
	Limit string `json:"limit,omitempty"`
	// SocketDrops counts datagrams that the system dropped because a receive buffer of the relay was full. These losses
	// are not part of the script.
	SocketDrops uint64 `json:"socket_drops"`
}

// Report returns the current counters.
func (r *Relay) Report() Report {
	drops := r.sockets.socketDrops()
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Report{
		Seconds: time.Since(r.startTime).Seconds(), Transport: r.plan.Medium.String(), Seed: r.script.Seed,
		Rows: r.impairer.Report(), UnknownSource: r.counts.unknownSource, Failed: r.counts.failed, SocketDrops: drops,
	}
	if r.counts.limitErr != nil {
		report.Limit = r.counts.limitErr.Error()
	}
	for i := range report.Rows {
		report.Total.Add(report.Rows[i].Count)
	}
	return report
}

// column is a column of the table that Print writes.
type column struct {
	title string
	value func(*impair.Count) uint64
}

var columns = []column{
	{"PACKETS", func(c *impair.Count) uint64 { return c.Packets }},
	{"LOST", func(c *impair.Count) uint64 { return c.Lost }},
	{"OVERFLOWED", func(c *impair.Count) uint64 { return c.Overflowed }},
	{"DUPLICATED", func(c *impair.Count) uint64 { return c.Duplicated }},
	{"REORDERED", func(c *impair.Count) uint64 { return c.Reordered }},
	{"DELAYED", func(c *impair.Count) uint64 { return c.Delayed }},
	{"CORRUPTED", func(c *impair.Count) uint64 { return c.Corrupted }},
	{"HELD", func(c *impair.Count) uint64 { return c.Held }},
	{"RESETS", func(c *impair.Count) uint64 { return c.Resets }},
	{"CLOSES", func(c *impair.Count) uint64 { return c.Closes }},
}

// Print writes the report as a table. It omits every column that contains only zeros.
func (x *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := slices.DeleteFunc(slices.Clone(columns),
		func(c column) bool { return c.value(&x.Total) == 0 && c.title != "PACKETS" })
	fmt.Fprint(w, "FROM\tTO\tTYPE\t")
	for _, c := range columns {
		fmt.Fprintf(w, "%s\t", c.title)
	}
	fmt.Fprintln(w)
	line := func(from, to, kind string, count *impair.Count) {
		fmt.Fprintf(w, "%s\t%s\t%s\t", from, to, kind)
		for _, c := range columns {
			fmt.Fprintf(w, "%d\t", c.value(count))
		}
		fmt.Fprintln(w)
	}
	for i := range x.Rows {
		row := &x.Rows[i]
		line(fmt.Sprint(row.From), fmt.Sprint(row.To), row.Packet, &row.Count)
	}
	line("all", "all", "all", &x.Total)
	err := w.Flush()
	for _, other := range []struct {
		n    uint64
		what string
	}{
		{x.UnknownSource, "from addresses of no rank, not relayed"},
		{x.Failed, "not relayed because the system refused"},
		{x.SocketDrops, "lost in receive buffers of the relay, beyond the script: raise net.core.rmem_max"},
	} {
		if other.n > 0 {
			_, failed := fmt.Fprintf(out, "%d %s\n", other.n, other.what)
			err = errors.Join(err, failed)
		}
	}
	if x.Limit != "" {
		_, failed := fmt.Fprintln(out, x.Limit)
		err = errors.Join(err, failed)
	}
	return err
}

// countRefused counts a packet or connection that the system refused with err.
func (r *Relay) countRefused(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.failed++
	if err = rlimit.Descriptor(err); rlimit.Is(err) {
		r.counts.limitErr = err
	}
}

// increment adds one to a counter.
func (r *Relay) increment(counter *uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
}
