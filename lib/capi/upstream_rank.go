package capi

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/node"
)

// EnvTimeout is the environment variable that sets the maximum duration of a call, such as 30s, in a program for
// upstream's CPU library. 0 means no limit.
const EnvTimeout = "ZRLMPI_TIMEOUT"

// EnvPeer is the environment variable that sets the kind of the other ranks: fpga, cpu or software, like the key peer
// of a configuration.
const EnvPeer = "ZRLMPI_PEER"

const (
	// defaultTimeout is the default value of EnvTimeout. It is longer than most programs compute between two
	// messages.
	defaultTimeout = 5 * time.Minute
	// warnAfter is the duration after which the watchdog reports a call.
	warnAfter = 10 * time.Second
)

// upstreamRank is a rank whose program was written for upstream's CPU library.
type upstreamRank struct {
	*cluster.CommandLine
	watchdog *watchdog
	// peer is the value of EnvPeer.
	peer config.Peer
	// dev is the rank's device, and startedAt is the time at which it started. finalStats holds the final statistics
	// once the rank has shut down.
	dev        mpe.Device
	startedAt  time.Time
	finalStats string
}

// StartLine makes MPI_Init turn this process into the rank described by the start-up line of upstream's CPU library.
// args holds the program's name and its arguments. StartLine returns the number of args that belong to the line,
// including the program's name, or 0 after printing an error. If there is no such line, the environment may describe
// the rank, as for other programs.
func (l *Library) StartLine(args []string, getenv func(string) string) (words int) {
	ln := &upstreamRank{watchdog: &watchdog{limit: defaultTimeout, warning: warnAfter}, peer: config.Peer(getenv(EnvPeer))}
	if text := getenv(EnvTimeout); text != "" {
		limit, err := time.ParseDuration(text)
		if err != nil || limit < 0 {
			fmt.Fprintf(l.errors, "zrlmpi: %s=%q: must be a time such as 30s or 2m, or 0 for no limit\n", EnvTimeout, text)
			return 0
		}
		ln.watchdog.limit = limit
	}
	if !cluster.IsCommandLine(args) &&
		(getenv(pmi.EnvFD) != "" || getenv(job.EnvSocket) != "" || getenv(job.EnvConfig) != "") {
		start := l.openRank
		l.upstream, l.openRank = ln, func(l *Library) (mpe.Device, error) { return ln.setDevice(start(l)) }
		return 1
	}
	var err error
	if ln.CommandLine, err = cluster.ParseCommandLine(args); err == nil &&
		!slices.Contains([]config.Peer{"", config.PeerFPGA, config.PeerCPU, config.PeerSoftware}, ln.peer) {
		err = fmt.Errorf("%s=%q: the kinds of peers are fpga, cpu and software", EnvPeer, string(ln.peer))
	}
	if err != nil {
		fmt.Fprintf(l.errors, "zrlmpi: %v\n", err)
		return 0
	}
	l.upstream, l.openRank = ln, func(*Library) (mpe.Device, error) {
		return ln.setDevice(ln.openDevice(context.Background(), getenv(job.EnvSocket), getenv(job.EnvConfig)))
	}
	return ln.NumArgs
}

// setDevice stores the device, so that its statistics can be read.
func (ln *upstreamRank) setDevice(dev mpe.Device, err error) (mpe.Device, error) {
	ln.dev, ln.startedAt = dev, time.Now()
	return dev, rlimit.Descriptor(err)
}

// openDevice opens the rank in the daemon at socket or, if socket is empty, in this process. In this process, it uses
// the configuration in file or, if file is empty, only the line.
func (ln *upstreamRank) openDevice(ctx context.Context, socket, file string) (mpe.Device, error) {
	if socket != "" {
		dev, err := attach.Dial(ctx, socket, ln.Rank)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", job.EnvSocket, socket, err)
		}
		if dev.Size() != len(ln.Hosts) {
			_ = dev.Close(ctx)
			return nil, fmt.Errorf("%s=%s: the daemon's cluster has %d ranks, but the start-up line has %d",
				job.EnvSocket, socket, dev.Size(), len(ln.Hosts))
		}
		return dev, nil
	}
	cfg, err := ln.Config(ln.peer, func(host string) (netip.Addr, error) { return resolveHost(ctx, host) })
	if err != nil {
		return nil, err
	}
	if file != "" {
		said, err := config.Load(file)
		if err == nil {
			err = said.Validate()
		}
		if err == nil {
			err = cluster.CheckSameRanks(cfg, said)
		}
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", job.EnvConfig, file, err)
		}
		cfg = said
	}
	return node.Open(cfg, ln.Rank, nil)
}

func resolveHost(ctx context.Context, host string) (netip.Addr, error) {
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return netip.Addr{}, err
	}
	return addrs[0], nil
}

// Statistics returns the counters of the rank as text. After the rank has shut down, these are the final counters.
func (l *Library) Statistics() string {
	if l.upstream == nil {
		return ""
	}
	if text := l.upstream.finalStats; text != "" {
		return text
	}
	return l.upstream.statistics(time.Now())
}

// statistics returns the text that ZRLMPI_print_stats prints, or "" before MPI_Init.
func (ln *upstreamRank) statistics(now time.Time) string {
	if ln.dev == nil {
		return ""
	}
	var b strings.Builder
	// The delimiters are those in upstream's statistics. Tools use them to separate the statistics from the program's
	// output.
	fmt.Fprintf(&b, ">>>> ZRLMPI statistics: rank %d of %d, %.6f s since MPI_Init\n", ln.dev.Rank(), ln.dev.Size(),
		now.Sub(ln.startedAt).Seconds())
	reporter, ok := ln.dev.(interface{ Snapshot() state.Engine })
	if !ok {
		b.WriteString("zrlctl status shows the counters of this rank, which runs in a daemon\n<<<<\n")
		return b.String()
	}
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "peer\tmessages sent\treceived\tfailed\tbytes sent\treceived\tretransmissions\t")
	s := reporter.Snapshot()
	for i := range s.Peers {
		p := &s.Peers[i]
		fmt.Fprintf(w, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n", p.Rank, p.Sent, p.Received, p.Failed, p.BytesOut, p.BytesIn,
			p.Retransmissions)
	}
	_ = w.Flush()
	b.WriteString("<<<<\n")
	return b.String()
}

// describeWaits describes the pending waits of the rank.
func (ln *upstreamRank) describeWaits() string {
	reporter, ok := ln.dev.(interface{ Snapshot() state.Engine })
	if !ok {
		return "see zrlctl status for the reason"
	}
	var texts []string
	s := reporter.Snapshot()
	for i := range s.Peers {
		p := &s.Peers[i]
		for _, w := range []*state.Wait{p.Sending, p.Receiving} {
			if w != nil {
				texts = append(texts, fmt.Sprintf("%s (at %s)", w.Text, p.Address))
			}
		}
	}
	if len(texts) == 0 {
		return "for no message"
	}
	return strings.Join(texts, "; ")
}

// startWatchdog starts the watchdog, which reports long calls and ends the process if a call takes too long.
func (l *Library) startWatchdog() {
	who := fmt.Sprintf("zrlmpi: rank %d of %d: ", l.world.Rank(), l.world.Size())
	l.upstream.watchdog.start(func(call string, limit time.Duration, over bool) {
		waits := l.upstream.describeWaits()
		if !over {
			fmt.Fprintf(l.errors, "%sMPI_%s has lasted %v: %s\n", who, call, limit, waits)
			return
		}
		fmt.Fprintf(l.errors, "%sMPI_%s has lasted %v, which ends the program: %s. If it is not running, start it; "+
			"if it does not know this rank's address, correct its start-up line; if it computes for longer, set %s "+
			"to more, or to 0 for no limit\n",
			who, call, limit, waits, EnvTimeout)
		l.abort(1)
	})
}

// endUpstream stores the final statistics, and stops the watchdog.
func (l *Library) endUpstream() {
	l.upstream.watchdog.stop()
	l.upstream.finalStats = l.upstream.statistics(time.Now())
}
