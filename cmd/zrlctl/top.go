package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// minInterval is the minimum time between two queries.
const minInterval = 100 * time.Millisecond

// answerTimeout is the timeout for a query.
const answerTimeout = 5 * time.Second

func (a *app) topCommand() *cobra.Command {
	t := &top{}
	var of *target
	cmd := &cobra.Command{
		Use: "top", Short: "Show waiting ranks, problems, ranks and peers, live", Args: argCount(0, 0),
		Long: `Show the state of the daemon, live: why ranks wait, as zrlctl why explains with evidence;
which rank waits for which operation of which rank, the longest wait first; problems; local
ranks; peers. Waits of less than 1 s are only counted. Rates are differences between two
refreshes, so the first shows none. A message between two local ranks counts for both.

Keys: q quits; arrows, j and k, Page Up and Page Down, g and G scroll; p pauses; s sorts
peers by problems, traffic, round trip or rank; / filters by words: 17 is a rank, 0>17
a pair, any other word part of an address, a profile or an error; ? shows the keys.

Without a terminal, print a snapshot at each refresh; with --json, one object a line.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if t.interval < minInterval {
				return usageErrorf("--interval %v: must be at least %v", t.interval, minInterval)
			}
			if t.count < 0 {
				return usageErrorf("--count %d: must be at least 0 (0 = unlimited)", t.count)
			}
			t.query, t.out = of.queryFunc(cmd), cmd.OutOrStdout()
			if tty := newTTY(cmd.InOrStdin(), t.out); tty != nil && !a.json {
				return t.watch(cmd.Context(), tty)
			}
			return t.print(cmd.Context(), a.json)
		}),
	}
	of = a.addTargetFlags(cmd)
	cmd.Flags().DurationVar(&t.interval, "interval", time.Second, "time between two refreshes, at least 100ms")
	cmd.Flags().IntVar(&t.count, "count", 0, "number of refreshes (0 = unlimited)")
	return cmd
}

// top queries a daemon at intervals.
type top struct {
	interval time.Duration
	count    int
	query    func(context.Context) (state.Status, error)
	out      io.Writer
}

// sample holds the status of a daemon at one moment.
type sample struct {
	takenAt time.Time
	status  *state.Status
	digest  *digest.Digest
	// causes lists the reasons for the waits.
	causes []diagnosis.Finding
}

// takeSample queries the daemon, and computes rates relative to the previous sample, if before is not nil.
func (t *top) takeSample(ctx context.Context, before *sample) (*sample, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout,
		control.Errorf(control.Timeout, "no answer from the daemon for %s", words.Duration(answerTimeout.Seconds())))
	defer cancel()
	status, err := t.query(ctx)
	if err != nil {
		return nil, err
	}
	var past *state.Status
	if before != nil {
		past = before.status
	}
	causes := diagnosis.Diagnose([]diagnosis.Source{{Status: &status}}, diagnosis.MinWaitAge).Findings
	return &sample{time.Now(), &status, digest.New(&status, past), causes}, nil
}

// print prints samples until ctx is done or their number reaches count.
func (t *top) print(ctx context.Context, asJSON bool) error {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	var last *sample
	for n := 1; ; n++ {
		l, err := t.takeSample(ctx, last)
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := t.write(l, n > 1, asJSON); err != nil {
			return err
		}
		if last = l; n == t.count {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// topJSON is the JSON form of a sample.
type topJSON struct {
	Time    time.Time      `json:"time"`
	Version string         `json:"version"`
	PID     int            `json:"pid"`
	Uptime  float64        `json:"uptime_seconds"`
	Verdict digest.Verdict `json:"verdict"`
	// Causes lists the findings that zrlctl why reports.
	Causes []diagnosis.Finding `json:"causes"`
	*digest.Digest
}

func (t *top) write(l *sample, again, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(t.out).Encode(topJSON{l.takenAt, l.status.Version, l.status.PID, l.status.Uptime,
			l.digest.Verdict(), l.causes, l.digest})
	}
	if again {
		fmt.Fprintln(t.out)
	}
	page := topPage{sample: l}
	_, err := io.WriteString(t.out, plainText(append(page.header(), page.body()...)))
	return err
}
