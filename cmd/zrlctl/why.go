package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

func (a *app) whyCommand() *cobra.Command {
	w := &why{}
	cmd := &cobra.Command{
		Use: "why [RANK]", Short: "Explain why ranks wait, and what to do", Args: argCount(0, 1),
		Long: `Explain why ranks wait: follow the waits from rank to rank to the root cause, and print it
with the evidence and the next step. With RANK, print only why that rank waits, and who
waits for it.

A daemon, or a job on this host, knows the state of its own ranks. It asks for the state of
ranks on other hosts over its links to them, for at most a second, if the links use the
extended profile. --daemons also asks other daemons that are only reachable through HTTP:
URLs of their HTTP servers, or paths of control sockets. Ranks that have not answered, and
deployed nodes, which cannot be asked, are listed.

Exit codes: 0 no rank waits; 5 ranks wait, and the causes are printed; 3 no rank is known
to wait, but a daemon or a rank of the job has not answered, or the job belongs to another
user; otherwise as zrlctl.`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			if err := w.parseArgs(args); err != nil {
				return err
			}
			w.queryLocal, w.out, w.json = w.target.queryFunc(cmd), cmd.OutOrStdout(), a.json
			if w.watch {
				return w.watchCauses(cmd.Context())
			}
			d, err := w.diagnose(cmd.Context())
			if err != nil {
				return err
			}
			if err := w.write(d); err != nil {
				return err
			}
			return diagnosisError(d)
		}),
	}
	w.target = a.addTargetFlags(cmd)
	cmd.Flags().StringSliceVar(&w.daemons, "daemons", nil, "ask these daemons as well: URL,… or control socket,…")
	cmd.Flags().DurationVar(&w.minAge, "after", diagnosis.MinWaitAge, "ignore waits that are younger than this")
	cmd.Flags().BoolVar(&w.watch, "watch", false, "print again whenever the causes change, until interrupted")
	return cmd
}

// why queries the states of daemons and jobs, and explains why their ranks wait.
type why struct {
	rank       int // or -1
	daemons    []string
	minAge     time.Duration
	watch      bool
	json       bool
	target     *target
	queryLocal func(context.Context) (state.Status, error)
	out        io.Writer
}

// parseArgs parses the command line.
func (w *why) parseArgs(args []string) (err error) {
	w.rank = -1
	if len(args) > 0 {
		if w.rank, err = strconv.Atoi(args[0]); err != nil || w.rank < 0 {
			return usageErrorf("rank %q: give a rank number, 0 or higher", args[0])
		}
	}
	if w.minAge < 0 {
		return usageErrorf("--after %v: must be at least 0", w.minAge)
	}
	return nil
}

var (
	errWaits      = errors.New("ranks wait")
	errUnanswered = errors.New("a daemon has not answered")
	errDoubts     = errors.New("the state of the ranks is uncertain")
)

// causesText returns the reasons for waits as text, for the output of zrlctl status.
func causesText(s *state.Status) string {
	d := diagnosis.Diagnose([]diagnosis.Source{{Status: s}}, diagnosis.MinWaitAge)
	if len(d.Findings) == 0 {
		return ""
	}
	text := strings.TrimRight(d.Text(), "\n")
	return "CAUSES\n  " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

// diagnosisError returns an error that gives the command the right exit code for the diagnosis.
func diagnosisError(d *diagnosis.Diagnosis) error {
	switch {
	case len(d.Findings) > 0:
		return errWaits
	case len(d.Unanswered) > 0:
		return errUnanswered
	case len(d.Doubts) > 0:
		return errDoubts
	}
	return nil
}

// diagnose queries all daemons concurrently. It fails if the daemon or job on this host does not answer. If this host
// runs neither, it fails only if the user has not named other daemons.
func (w *why) diagnose(ctx context.Context) (*diagnosis.Diagnosis, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerTimeout,
		control.Errorf(control.Timeout, "no answer for %s", words.Duration(answerTimeout.Seconds())))
	defer cancel()
	sources := make([]diagnosis.Source, len(w.daemons)+1)
	var asked sync.WaitGroup
	for i, name := range w.daemons {
		asked.Go(func() {
			sources[i+1] = querySource("daemon "+redactPassword(name),
				func() (state.Status, error) { return control.FetchStatus(ctx, name) })
		})
	}
	sources[0] = querySource("this host", func() (state.Status, error) { return w.queryLocal(ctx) })
	asked.Wait()
	if local := &sources[0]; local.Status != nil && hasUnknownRanks(sources) {
		asked, err := query.Get[state.Reports](ctx, w.target.handleQuery,
			query.Request{Kind: query.Reports, Rank: askingRank(local.Status)})
		local.Asked, local.AskErr = asked.Results, err
	}
	if sources[0].Status == nil {
		_, none := errors.AsType[*control.UnreachableError](sources[0].Err)
		if len(w.daemons) == 0 || !none || w.target.socketGiven || w.target.job != "" {
			return nil, sources[0].Err
		}
		sources = sources[1:] // no daemon on this host
	}
	ranks, answered := 0, false
	for _, s := range sources {
		if s.Status != nil {
			ranks, answered = max(ranks, len(s.Status.Cluster)), true
		}
	}
	if answered && w.rank >= ranks {
		return nil, control.Errorf(control.Usage, "there is no rank %d: the cluster has ranks 0 to %d", w.rank, ranks-1)
	}
	d := diagnosis.Diagnose(sources, w.minAge)
	if w.rank >= 0 {
		d = d.ForRank(w.rank)
	}
	return d, nil
}

// askingRank returns the rank that should query the ranks on other hosts. For a job, it returns a rank that has
// answered; for a daemon, which chooses the rank itself, it returns query.AnyRank.
func askingRank(s *state.Status) int {
	if s.Job == "" || len(s.Ranks) == 0 {
		return query.AnyRank
	}
	return s.Ranks[0].Rank
}

// hasUnknownRanks reports whether the state of any rank is missing from all sources. Ranks whose processes do not
// answer count as known.
func hasUnknownRanks(sources []diagnosis.Source) bool {
	ranks, known := 0, map[int]bool{}
	for _, src := range sources {
		if s := src.Status; s != nil {
			ranks = max(ranks, len(s.Cluster))
			for i := range s.Ranks {
				known[s.Ranks[i].Rank] = true
			}
			for _, rank := range s.Silent {
				known[rank] = true
			}
		}
	}
	return len(known) < ranks
}

// redactPassword returns the address of a daemon with its password removed.
func redactPassword(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Redacted()
	}
	return address
}

// maxStatusAge is the maximum age of a state served over HTTP.
const maxStatusAge = time.Second

// querySource calls ask and returns the result as a source for the diagnosis.
func querySource(name string, ask func() (state.Status, error)) diagnosis.Source {
	status, err := ask()
	if err != nil {
		return diagnosis.Source{Name: name, Err: err}
	}
	if status.Job != "" {
		name = "job " + status.Job
	}
	return diagnosis.Source{Name: name, Status: &status, Age: maxStatusAge}
}

func (w *why) write(d *diagnosis.Diagnosis) error {
	if w.json && !w.watch {
		return writeJSON(w.out, d)
	}
	if w.json {
		return json.NewEncoder(w.out).Encode(d)
	}
	_, err := io.WriteString(w.out, d.Text())
	return err
}

// watchInterval is the time between two queries with --watch.
const watchInterval = time.Second

// watchCauses prints the diagnosis when its causes change, until ctx is done.
func (w *why) watchCauses(ctx context.Context) error {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	last := "none"
	for {
		d, err := w.diagnose(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if key := d.Fingerprint(); key != last {
			last = key
			if !w.json {
				fmt.Fprintf(w.out, "%s\n", time.Now().Format(time.TimeOnly))
			}
			if err := w.write(d); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}
