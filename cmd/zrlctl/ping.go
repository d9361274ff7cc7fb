package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// defaultTimeout is the default value of --timeout. It exceeds the time during which a deployed node retransmits a lost
// packet.
const defaultTimeout = 10 * time.Second

type pingFlags struct {
	words    []int
	count    int
	from     int
	datatype string
	timeout  time.Duration
	seed     uint64
	parallel bool
}

func (a *app) pingCommand() *cobra.Command {
	var flags pingFlags
	cmd := &cobra.Command{
		Use: "ping RANK[,RANK…]|all…", Short: "Send messages to echo kernels and measure the handshake",
		Long: `Send messages to ranks that echo them, compare every byte, and measure each step of
the handshake: OUT as the sender of the message, BACK as the receiver of its echo.
Times are in µs: the median over --count round trips, and for the whole round trip
also the maximum. req-clr is SEND_REQUEST to CLEAR_TO_SEND, clr-dat CLEAR_TO_SEND to
DATA, dat-ack DATA to ACK. If the kernel of a stand-in fails, its further --words are skipped.

Ping only ranks that run an echo kernel: any other program may receive the message in place
of the one that it waits for.

If ping is interrupted or killed, the daemon continues its round trip for up to 4 s, so
that no FPGA is left in the middle of an operation. The next ping may start immediately.
The echo of an earlier ping is skipped and counted as late. If the daemon is killed in
the middle of a message, an FPGA may wait forever: restart its role, then ping again.`,
		Example: "  zrlctl ping 1,2 --words 1,346,347 --count 100\n  zrlctl ping all --parallel",
		Args:    argCount(1, -1),
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.ping(cmd.Context(), cmd.OutOrStdout(), &flags, args)
		}),
	}
	fl := cmd.Flags()
	fl.IntSliceVar(&flags.words, "words", []int{1}, "message sizes in 32-bit words, as in 1,346,347")
	fl.IntVar(&flags.count, "count", 1, "round trips of each size")
	fl.StringVar(&flags.datatype, "datatype", "int", "datatype: int or float")
	fl.Uint64Var(&flags.seed, "seed", 0, "seed of the payload (0: random)")
	fl.BoolVar(&flags.parallel, "parallel", false, "ping all ranks at the same time")
	addFromFlag(fl, &flags.from)
	addTimeoutFlag(fl, &flags.timeout)
	return cmd
}

// series describes the round trips of messages of one size between the sender and one rank.
type series struct {
	to, words int
	trips     []control.Trip
	err       error
}

func (a *app) ping(ctx context.Context, out io.Writer, flags *pingFlags, args []string) error {
	switch {
	case flags.count < 1:
		return usageErrorf("--count %d: must be at least 1", flags.count)
	case len(flags.words) == 0:
		return usageErrorf("--words: no size given")
	}
	client := a.client()
	defer client.Close()
	peers, err := pingPeers(ctx, client, flags.from, args)
	if err != nil {
		return err
	}
	report := newPingReport(out, a.json)
	// An error at one rank must not prevent the pings of the other ranks.
	var wg sync.WaitGroup
	for _, peer := range peers {
		one := func() {
			for _, words := range flags.words {
				s := flags.runSeries(ctx, client, peer, words, report)
				report.addSeries(s)
				// A kernel that failed may answer no further message, and each would wait for the timeout.
				if control.KindOf(s.firstError()) == control.PeerLost {
					break
				}
			}
		}
		if flags.parallel {
			wg.Go(one)
		} else {
			one()
		}
	}
	wg.Wait()
	err = report.joinErrors()
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w; the daemon continues an open round trip for up to %v, and logs its failure", err,
			control.PingLinger)
	}
	return err
}

// runSeries pings one rank with messages of one size.
func (f *pingFlags) runSeries(ctx context.Context, client *control.Client, peer, words int,
	report *pingReport) *series {
	s := &series{to: peer, words: words}
	s.err = client.Ping(ctx, control.PingRequest{
		From: f.from, To: peer, Words: words, Count: f.count,
		Datatype: f.datatype, Timeout: f.timeout.String(), Seed: f.seed,
	}, func(t control.Trip) error {
		s.trips = append(s.trips, t)
		return report.printTrip(t)
	})
	return s
}

// pingPeers returns the ranks named in the arguments. If all is set, it returns all ranks except the sender.
func pingPeers(ctx context.Context, client *control.Client, from int, args []string) ([]int, error) {
	var peers []int
	for word := range strings.SplitSeq(strings.Join(args, ","), ",") {
		if word == "all" {
			return allPeers(ctx, client, from)
		}
		rank, err := parseRank(word)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(peers, rank) {
			peers = append(peers, rank)
		}
	}
	return peers, nil
}

func allPeers(ctx context.Context, client *control.Client, from int) ([]int, error) {
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range status.Ranks {
		if from == control.AnyRank && r.Role == state.RoleHost {
			from = r.Rank
		}
	}
	var peers []int
	for _, m := range status.Cluster {
		if m.Rank != from {
			peers = append(peers, m.Rank)
		}
	}
	if len(peers) == 0 {
		return nil, errors.New("no other rank in the cluster")
	}
	return peers, nil
}

func parseRank(s string) (int, error) {
	rank, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || rank < 0 {
		return 0, usageErrorf("rank %q: not a number: give a number from 0", s)
	}
	return rank, nil
}

// pingReport prints each series when it is complete, and collects errors.
type pingReport struct {
	mu   sync.Mutex
	out  io.Writer
	json *json.Encoder // nil for the table
	errs []error
	rows int
}

func newPingReport(out io.Writer, asJSON bool) *pingReport {
	r := &pingReport{out: out}
	if asJSON {
		r.json = json.NewEncoder(out)
	}
	return r
}

// printTrip prints a round trip if the output is JSON.
func (r *pingReport) printTrip(trip control.Trip) error {
	if r.json == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.json.Encode(trip)
}

// addSeries prints a complete series and records its error.
func (r *pingReport) addSeries(s *series) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := s.firstError(); err != nil {
		r.errs = append(r.errs, err)
	}
	if r.json != nil || len(s.trips) == 0 {
		return
	}
	if r.rows == 0 {
		fmt.Fprint(r.out, tableHeader)
	}
	r.rows++
	fmt.Fprint(r.out, s.row())
}

// joinErrors joins all errors. Timeouts come last, because the first error determines the exit code.
func (r *pingReport) joinErrors() error {
	slices.SortStableFunc(r.errs, func(a, b error) int { return errorPriority(a) - errorPriority(b) })
	return errors.Join(r.errs...)
}

func errorPriority(err error) int {
	if control.KindOf(err) == control.Timeout {
		return 1
	}
	return 0
}
