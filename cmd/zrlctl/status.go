package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

func (a *app) statusCommand() *cobra.Command {
	var wait time.Duration
	var t *target
	cmd := &cobra.Command{
		Use: "status", Short: "Show which ranks wait, problems, and the local ranks", Args: argCount(0, 0),
		Long: `Show which rank waits for which operation of which rank and for how long, the longest wait
first, and possible deadlocks; then problems, pending collective calls, messages that no
receive has matched, attached programs, and dropped packets.

The table lists the local ranks. TRANSPORTS lists the transports of their links. OFFLOAD
lists the kernel's UDP offloads: batches of datagrams in a system call, segmentation of long
messages into datagrams, coalescing of received datagrams. RECEIVE BUFFER is the size of the
UDP socket's buffer, and SHM RING the size of the ring for each peer in shared memory. SINGLE
COPY is the number of these peers whose long messages are copied once, from the sender's
memory to the receiver's; it needs the permission to read that memory (ptrace).
OVERSUBSCRIBED hosts have more ranks than cores: waiting ranks yield the processor.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			status, err := a.queryOrWait(cmd.Context(), wait, t.queryFunc(cmd))
			if err != nil {
				return err
			}
			if a.json {
				return writeJSON(cmd.OutOrStdout(), digest.NewDocument(&status, digest.New(&status, nil)))
			}
			_, err = io.WriteString(cmd.OutOrStdout(), statusText(&status))
			return err
		}),
	}
	t = a.addTargetFlags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait up to this long for the daemon to be ready")
	return cmd
}

// queryOrWait returns the result of query. If wait is positive, it instead waits up to this long for the daemon to be
// ready, and returns the daemon's status.
func (a *app) queryOrWait(ctx context.Context, wait time.Duration,
	query func(context.Context) (state.Status, error)) (state.Status, error) {
	if wait <= 0 {
		return query(ctx)
	}
	client := a.client()
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return client.WaitReady(ctx)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// statusText returns the status as text. Waits and problems come first.
func statusText(status *state.Status) string {
	d := digest.New(status, nil)
	page := topPage{sample: &sample{status: status, digest: d}}
	var b strings.Builder
	b.WriteString(plainText(page.waitLines()[1:])) // without the empty line above the heading
	b.WriteString(causesText(status))
	b.WriteString(plainText(page.problemLines()[1:]))
	for _, lines := range [][]string{failureLines(status), callLines(status), unexpectedLines(d), attachedLines(d),
		dropLines(status)} {
		for _, l := range lines {
			fmt.Fprintln(&b, l)
		}
	}
	where := fmt.Sprintf("%s (local: %s, %s)", words.Plural(len(status.Cluster), "rank"), words.Plural(d.Hosts, "host"),
		words.Plural(d.StandIns, "stand-in"))
	if status.Job != "" {
		fmt.Fprintf(&b, "\njob %s, uptime %s, %s\n", status.Job, words.Duration(status.Uptime), where)
	} else {
		fmt.Fprintf(&b, "\nzrlmpid %s, process %d, uptime %s, configuration %s, %s\n", status.Version, status.PID,
			words.Duration(status.Uptime), status.Config, where)
	}
	if status.HTTP != "" {
		fmt.Fprintf(&b, "status page at %s, metrics at %smetrics\n", status.HTTP, status.HTTP)
	}
	b.WriteByte('\n')
	writeLocalTable(&b, d.Ranks)
	return b.String()
}

// callLines lists the pending collective calls.
func callLines(s *state.Status) []string {
	var lines []string
	for i := range s.Ranks {
		for _, c := range s.Ranks[i].Engine.Calls {
			lines = append(lines, fmt.Sprintf("rank %d is in %s", s.Ranks[i].Rank, c.Text))
		}
	}
	return lines
}

// unexpectedLines lists the peers whose messages no receive has matched yet. It omits messages with a handshake,
// because the status shows each of them as a wait of its sender.
func unexpectedLines(d *digest.Digest) []string {
	var lines []string
	for i := range d.Peers {
		if p := &d.Peers[i]; p.Unexpected > 0 && p.Deferred == nil {
			lines = append(lines, fmt.Sprintf("rank %d has %s from rank %d without a matching receive", p.Rank,
				words.Plural(p.Unexpected, "message"), p.Peer))
		}
	}
	return lines
}

// attachedLines lists the programs that use ranks.
func attachedLines(d *digest.Digest) []string {
	var lines []string
	for i := range d.Ranks {
		for _, a := range d.Ranks[i].Attached {
			lines = append(lines, fmt.Sprintf("process %d has used rank %d for %s, %s pending", a.PID, d.Ranks[i].Rank,
				words.Duration(a.Seconds), words.Plural(a.Operations, "operation")))
		}
	}
	return lines
}

// dropLines lists the packets dropped by each local rank, by reason.
func dropLines(s *state.Status) []string {
	var lines []string
	for _, rank := range s.Ranks {
		sum := rank.Engine.Dropped
		for i := range rank.Engine.Peers {
			sum.Add(&rank.Engine.Peers[i].Dropped)
		}
		var words []string
		for _, c := range digest.SortedCounts[state.DropReason](sum[:]) {
			words = append(words, fmt.Sprintf("%s %d", c.What, c.N))
		}
		if len(words) > 0 {
			lines = append(lines, fmt.Sprintf("rank %d has dropped packets: %s", rank.Rank, strings.Join(words, ", ")))
		}
	}
	return lines
}
