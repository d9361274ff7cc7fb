package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

func (a *app) statusCommand() *cobra.Command {
	var wait time.Duration
	cmd := &cobra.Command{
		Use: "status", Short: "Show who waits for what, and how the daemon is", Args: cobra.NoArgs,
		Long: `Show who waits for what from whom and since when, then requests that no receive
has answered, peers to which nothing is sent any more, packets that were dropped,
and peers for which the kernel does not cut long messages into datagrams.

The table has the ranks that run here. TRANSPORTS are those of their links. OFFLOAD
is what the kernel does for UDP: batches of datagrams in a system call, segmentation
of long messages into datagrams, coalescing of those that arrive. RECEIVE BUFFER is
that of UDP, and SHM RING that of each peer that the rank shares memory with. SINGLE
COPY says with how many of those that are there long messages are copied just once,
straight from the sender's memory; that takes the system's leave (ptrace). OVERSUBSCRIBED
hosts have more ranks than cores: whoever waits there lets others run.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			s, err := a.status(cmd.Context(), wait)
			if err != nil {
				return err
			}
			if a.json {
				return writeJSON(cmd.OutOrStdout(), s)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), statusText(&s))
			return err
		}),
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long for the daemon to be ready")
	return cmd
}

// status asks the daemon, and waits for it if it is to.
func (a *app) status(ctx context.Context, wait time.Duration) (control.Status, error) {
	client := a.client()
	defer client.Close()
	if wait <= 0 {
		return client.Status(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return client.WaitReady(ctx)
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// statusText is the status for people: what is amiss comes first.
func statusText(s *control.Status) string {
	var b strings.Builder
	section := func(lines []string, none string) {
		if len(lines) == 0 && none != "" {
			lines = []string{none}
		}
		for _, l := range lines {
			fmt.Fprintln(&b, l)
		}
	}
	section(waits(s), "nobody waits")
	section(calls(s), "")
	section(blocked(s), "")
	section(unexpected(s), "")
	section(attached(s), "")
	section(refused(s), "")
	section(troubles(s), "")
	section(drops(s), "")
	section(uncut(s), "")
	hosts, standins := 0, 0
	for _, r := range s.Ranks {
		if r.Role == control.RoleHost {
			hosts++
		} else {
			standins++
		}
	}
	fmt.Fprintf(&b, "zrlmpid %s, process %d, up %v, configuration %s; ranks: %d in all, here %d as host and %d as stand-in\n",
		s.Version, s.PID, (time.Duration(s.Uptime * float64(time.Second))).Round(time.Second), s.Config,
		len(s.Cluster), hosts, standins)
	if s.HTTP != "" {
		fmt.Fprintf(&b, "status page at %s, metrics at %smetrics\n", s.HTTP, s.HTTP)
	}
	localTable(&b, s.Ranks)
	return b.String()
}

// eachPeer calls f with every pair of a local rank and a peer.
func eachPeer(s *control.Status, f func(r *control.LocalRank, p *mpe.PeerSnapshot) []string) []string {
	var lines []string
	for i := range s.Ranks {
		r := &s.Ranks[i]
		for j := range r.Engine.Peers {
			lines = append(lines, f(r, &r.Engine.Peers[j])...)
		}
	}
	return lines
}

// waits says who waits for what; a kernel that waits for work does not count.
func waits(s *control.Status) []string {
	var lines []string
	for _, r := range s.Ranks {
		if w := r.Engine.AnySource; w != nil && r.Role == control.RoleHost {
			lines = append(lines, waitLine(w, 0))
		}
	}
	return append(lines, eachPeer(s, func(r *control.LocalRank, p *mpe.PeerSnapshot) (lines []string) {
		if w := p.Sending; w != nil {
			lines = append(lines, waitLine(w, p.QueuedSends))
		}
		if w := p.Receiving; w != nil && (r.Role == control.RoleHost || w.State != handshake.WaitRequest.String()) {
			lines = append(lines, waitLine(w, p.QueuedReceives))
		}
		return lines
	})...)
}

func waitLine(w *mpe.WaitSnapshot, queued int) string {
	text := w.Text
	if w.Retransmissions > 0 {
		text += fmt.Sprintf(", retransmitted %d times", w.Retransmissions)
	}
	if queued > 0 {
		text += fmt.Sprintf(", with %d more behind it", queued)
	}
	return text
}

// calls says which collective calls are under way.
func calls(s *control.Status) []string {
	var lines []string
	for _, r := range s.Ranks {
		for _, c := range r.Engine.Calls {
			lines = append(lines, fmt.Sprintf("rank %d is in %s", r.Rank, c.Text))
		}
	}
	return lines
}

// blocked says which peers are blocked in a call that no operation of ours matches.
func blocked(s *control.Status) []string {
	return eachPeer(s, func(r *control.LocalRank, p *mpe.PeerSnapshot) (lines []string) {
		if b := p.Deferred; b != nil {
			lines = append(lines, fmt.Sprintf("rank %d has been blocked in a send to rank %d (%s) for %v: rank %d has no matching receive posted",
				p.Rank, r.Rank, b.Call, seconds(b.Seconds), r.Rank))
		}
		if b := p.UnansweredClear; b != nil {
			lines = append(lines, fmt.Sprintf("rank %d has been blocked in a receive from rank %d (%s) for %v: no send of rank %d answers its CLEAR_TO_SEND",
				p.Rank, r.Rank, b.Call, seconds(b.Seconds), r.Rank))
		}
		return lines
	})
}

// unexpected says which peers have sent what nobody has asked for. A handshake's
// message is told as deferred.
func unexpected(s *control.Status) []string {
	return eachPeer(s, func(r *control.LocalRank, p *mpe.PeerSnapshot) []string {
		if p.Unexpected == 0 || p.Deferred != nil {
			return nil
		}
		return []string{fmt.Sprintf("messages from rank %d that wait at rank %d for a matching receive: %d", p.Rank, r.Rank, p.Unexpected)}
	})
}

// attached says which programs have ranks.
func attached(s *control.Status) []string {
	var lines []string
	for _, r := range s.Ranks {
		for _, a := range r.Attached {
			lines = append(lines, fmt.Sprintf("process %d has had rank %d for %v, with %d operations under way", a.PID, r.Rank, seconds(a.Seconds), a.Operations))
		}
	}
	return lines
}

// refused says which peers nothing is sent to any more.
func refused(s *control.Status) []string {
	return eachPeer(s, func(r *control.LocalRank, p *mpe.PeerSnapshot) []string {
		if p.Refuses == "" {
			return nil
		}
		return []string{fmt.Sprintf("rank %d refuses to send to rank %d: %s (zrlctl reset %d --from %d)", r.Rank, p.Rank, p.Refuses, p.Rank, r.Rank)}
	})
}

// troubles are kernels that failed and errors of the network.
func troubles(s *control.Status) []string {
	var lines []string
	for _, r := range s.Ranks {
		if n := r.Engine.Disagreements; n > 0 {
			lines = append(lines, fmt.Sprintf("rank %d is configured differently for collective calls than other members of %d of its communicators: they go by the built-in table", r.Rank, n))
		}
		if r.KernelState == control.KernelFailed {
			lines = append(lines, fmt.Sprintf("rank %d: kernel %s failed: %s", r.Rank, r.Kernel, r.KernelError))
		}
	}
	lines = append(lines, eachPeer(s, func(_ *control.LocalRank, p *mpe.PeerSnapshot) []string {
		if p.NetworkError == "" {
			return nil
		}
		return []string{p.NetworkError}
	})...)
	if s.LostLogLines > 0 {
		lines = append(lines, fmt.Sprintf("%d log lines were lost: the log is read too slowly, or cannot be written", s.LostLogLines))
	}
	return lines
}

// drops sums up what each local rank has dropped.
func drops(s *control.Status) []string {
	var lines []string
	for _, r := range s.Ranks {
		sum := r.Engine.Dropped
		for i := range r.Engine.Peers {
			sum.Add(&r.Engine.Peers[i].Dropped)
		}
		var words []string
		for reason, n := range sum {
			if n > 0 {
				words = append(words, fmt.Sprintf("%v %d", mpe.DropReason(reason), n))
			}
		}
		if len(words) == 0 {
			continue
		}
		slices.Sort(words)
		lines = append(lines, fmt.Sprintf("rank %d has dropped packets: %s", r.Rank, strings.Join(words, ", ")))
	}
	return lines
}

func seconds(s float64) time.Duration {
	return handshake.Round(time.Duration(s * float64(time.Second)))
}
