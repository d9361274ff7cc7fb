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
)

// minInterval is how often a daemon is asked at most.
const minInterval = 100 * time.Millisecond

// answerTime is how long a daemon may take to answer before it is said to be silent.
const answerTime = 5 * time.Second

func (a *app) topCommand() *cobra.Command {
	t := &top{}
	cmd := &cobra.Command{
		Use: "top", Short: "Show who waits for whom as it changes", Args: cobra.NoArgs,
		Long: `Show what the daemon is doing as it changes: who waits for what from whom, the
oldest first, and whether ranks wait for each other; what is broken; then local ranks
and peers. Waits of less than a second are counted only. Rates are differences from one
look to the next, so that the first has none; a message between two local ranks counts
at both.

Keys: q ends; arrows, j and k, Page Up and Page Down, g and G scroll; p pauses; s sorts
peers by trouble, traffic, round trip or rank; / filters by words: 17 is a rank, 0>17
a pair, anything else part of an address, a profile or an error; ? shows the keys.

Without a terminal it prints one snapshot after another, and with --json one object
a line.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if t.interval < minInterval {
				return usagef("--interval %v: it is %v at least", t.interval, minInterval)
			}
			if t.count < 0 {
				return usagef("--count %d: it is 0 for no end, or more", t.count)
			}
			client := a.client()
			defer client.Close()
			t.ask, t.out = client.Status, cmd.OutOrStdout()
			if tty := newTTY(cmd.InOrStdin(), t.out); tty != nil && !a.json {
				return t.watch(cmd.Context(), tty)
			}
			return t.print(cmd.Context(), a.json)
		}),
	}
	cmd.Flags().DurationVar(&t.interval, "interval", time.Second, "time between two looks, 100ms at least")
	cmd.Flags().IntVar(&t.count, "count", 0, "end after so many looks; 0 is never")
	return cmd
}

// top looks at a daemon again and again.
type top struct {
	interval time.Duration
	count    int
	ask      func(context.Context) (control.Status, error)
	out      io.Writer
}

// look is what was seen at a moment.
type look struct {
	at     time.Time
	status *control.Status
	digest *digest.Digest
}

// next asks, and compares with what was seen before, which may be nil.
func (t *top) next(ctx context.Context, before *look) (*look, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime,
		control.Errorf(control.Timeout, "the daemon has not answered for %v", answerTime))
	defer cancel()
	s, err := t.ask(ctx)
	if err != nil {
		return nil, err
	}
	var past *control.Status
	if before != nil {
		past = before.status
	}
	return &look{time.Now(), &s, digest.Of(&s, past)}, nil
}

// print writes looks one after another, until ctx is done or there were enough.
func (t *top) print(ctx context.Context, asJSON bool) error {
	tick := time.NewTicker(t.interval)
	defer tick.Stop()
	var last *look
	for n := 1; ; n++ {
		l, err := t.next(ctx, last)
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

// topLine is a look as an object of JSON.
type topLine struct {
	Time    time.Time      `json:"time"`
	Version string         `json:"version"`
	PID     int            `json:"pid"`
	Uptime  float64        `json:"uptime_seconds"`
	Verdict digest.Verdict `json:"verdict"`
	*digest.Digest
}

func (t *top) write(l *look, again, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(t.out).Encode(topLine{l.at, l.status.Version, l.status.PID, l.status.Uptime, l.digest.Verdict(), l.digest})
	}
	if again {
		fmt.Fprintln(t.out)
	}
	page := topPage{look: l}
	_, err := io.WriteString(t.out, plainText(append(page.head(), page.body()...)))
	return err
}
