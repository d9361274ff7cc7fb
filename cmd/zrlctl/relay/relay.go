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

// Relay relays what ranks exchange, until Close.
type Relay struct {
	plan   *Plan
	script impair.Script
	begin  time.Time
	wire   wire
	tasks  sync.WaitGroup

	// mu guards what follows.
	mu       sync.Mutex
	impairer *impair.Impairer
	counts   counts
	closed   bool
}

// wire is the sockets of a relay.
type wire interface {
	// dropped returns how many datagrams the system had no room for.
	dropped() uint64
	close()
}

// counts are what is of no direction.
type counts struct {
	unknown, failed uint64
	// limit is the last error of a lack of file descriptors, or nil.
	limit error
}

// Listen opens the addresses of the relay, and relays by the script from then on. The error
// is that of Script.Check, or names the address that cannot be had.
func Listen(p *Plan, s impair.Script) (*Relay, error) {
	im, err := impair.New(s, p.Medium, p.cfg.Addrs())
	if err != nil {
		return nil, err
	}
	r := &Relay{plan: p, script: s, begin: time.Now(), impairer: im}
	if p.Medium == impair.Streams {
		r.wire, err = listenStreams(r)
	} else {
		r.wire, err = listenDatagrams(r)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Close closes all sockets. What was delayed is lost. It returns when every goroutine of the
// relay has ended.
func (r *Relay) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wire.close()
	r.tasks.Wait()
}

// Report is what a relay has done.
type Report struct {
	// Seconds is how long it has run, Transport udp or tcp.
	Seconds   float64 `json:"span_seconds"`
	Transport string  `json:"transport"`
	Seed      int     `json:"seed"`
	// Rows are what befell packets, by direction and type, and Total is the sum of them.
	Rows  []impair.Row `json:"rows"`
	Total impair.Count `json:"total"`
	// UnknownSource counts datagrams and connections from addresses of no rank. They are
	// not relayed.
	UnknownSource uint64 `json:"unknown_source"`
	// Failed counts packets that could not be sent on, and connections that could not be
	// made.
	Failed uint64 `json:"failed"`
	// Limit is why connections were not made: the relay had no file descriptor left. Empty if it always had.
	Limit string `json:"limit,omitempty"`
	// SocketDrops counts datagrams that the system dropped because a receive buffer of the
	// relay was full. They are losses that the script has not asked for.
	SocketDrops uint64 `json:"socket_drops"`
}

// Report returns what the relay has done so far.
func (r *Relay) Report() Report {
	drops := r.wire.dropped()
	r.mu.Lock()
	defer r.mu.Unlock()
	x := Report{
		Seconds: time.Since(r.begin).Seconds(), Transport: r.plan.Medium.String(), Seed: r.script.Seed,
		Rows: r.impairer.Report(), UnknownSource: r.counts.unknown, Failed: r.counts.failed, SocketDrops: drops,
	}
	if r.counts.limit != nil {
		x.Limit = r.counts.limit.Error()
	}
	for i := range x.Rows {
		x.Total.Add(x.Rows[i].Count)
	}
	return x
}

// column is one of the table.
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

// Print writes the report as a table, without columns of zeros.
func (x *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	columns := slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.value(&x.Total) == 0 && c.title != "PACKETS" })
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

// refused counts a packet or connection that the system refused with err.
func (r *Relay) refused(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.failed++
	if err = rlimit.Descriptor(err); rlimit.Is(err) {
		r.counts.limit = err
	}
}

// count adds one to a counter.
func (r *Relay) count(counter *uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*counter++
}
