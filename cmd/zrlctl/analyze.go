package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/htmlreport"
)

type analyzeFlags struct {
	input    captureInput
	html     string
	limit    int
	messages bool
	progress bool
}

// errFindings is how analyze says that something was found, which has been
// printed already.
var errFindings = errors.New("there are findings")

func (a *app) analyzeCommand() *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use: "analyze FILE|- | analyze -i INTERFACE", Short: "Tell what happened in a recording, and who waits for whom",
		Long: `Print a row for each message of a recording with the time of each phase of its
handshake, a summary, and findings: what was lost or sent again, what does not fit,
and at the end who waits for what from whom, since when. Reads pcap and pcapng,
gzip too, with VLANs, VXLAN and IP fragments; with -i an interface, until it is
interrupted.

A phase ends with the packet that it is named after; "data" is the last datagram of
DATA. "-" is a step that is not in the recording.

Exit codes: 0 nothing found, 1 there are findings, 2 the recording cannot be read.`,
		Example: `  zrlctl analyze trace.pcap
  zrlctl analyze trace.pcapng --html report.html
  tcpdump -i eth0 -w - udp port 2718 | zrlctl analyze - --json`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.analyze(cmd.Context(), &f, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f.input.flags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.html, "html", "", "write a page with a diagram of the exchanges to this file")
	fl.IntVar(&f.limit, "limit", 100000, "list this many messages; all of them count in the summary")
	fl.BoolVar(&f.messages, "messages", true, "print the rows of the messages")
	fl.BoolVar(&f.progress, "progress", false, "say on standard error how far it is")
	return cmd
}

func (a *app) analyze(ctx context.Context, f *analyzeFlags, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	if f.limit < 0 {
		return usagef("--limit %d: it is at least 0", f.limit)
	}
	profile, err := f.input.dialect()
	if err != nil {
		return err
	}
	src, name, err := f.input.open(ctx, args, stdin)
	if err != nil {
		return err
	}
	defer src.Close()
	opts := capture.AnalysisOptions{Profile: profile, KeepMessages: f.limit}
	if f.html != "" {
		opts.KeepSteps = 64
	}
	// What grows is a list of small things that stay; half as much again for
	// the collector is enough.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	analysis := capture.NewAnalysis(name, opts)
	live := f.input.iface != ""
	var progress io.Writer
	if f.progress {
		progress = stderr
	}
	if err := follow(ctx, analysis, src, live, progress); err != nil {
		return err
	}
	report := analysis.Report()
	if f.html != "" {
		write := func(out io.Writer) error { return htmlreport.Write(out, report) }
		if err := writeFile(f.html, write); err != nil {
			return err
		}
	}
	if err := a.printReport(stdout, report, f.messages); err != nil {
		return err
	}
	if !report.Clean() {
		return errFindings
	}
	return nil
}

// follow feeds a source to an analysis. A live one ends when it is interrupted.
func follow(ctx context.Context, analysis *capture.Analysis, src capture.Source, live bool, progress io.Writer) error {
	if progress != nil {
		src = &reporting{Source: src, out: progress, start: time.Now()}
	}
	err := analysis.Follow(src)
	interrupted := live && ctx.Err() != nil
	if err == nil || interrupted {
		return nil
	}
	return &unreadableError{err}
}

// reporting says now and then how far a source has been read.
type reporting struct {
	capture.Source
	out         io.Writer
	units       int
	start, last time.Time
}

func (r *reporting) Next(u *capture.Unit) error {
	err := r.Source.Next(u)
	r.units++
	if r.units%(1<<16) == 0 || err != nil {
		if now := time.Now(); err != nil || now.Sub(r.last) >= time.Second {
			r.last = now
			s := r.Stats()
			fmt.Fprintf(r.out, "%d packets, %d MB, %.0f s\n", s.Packets, s.Bytes>>20, now.Sub(r.start).Seconds())
		}
	}
	return err
}

func (a *app) printReport(stdout io.Writer, r *capture.Report, messages bool) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	if a.json {
		return flushed(r.WriteJSON(out), out)
	}
	if messages {
		printMessages(out, r)
	}
	printSummary(out, r)
	printFindings(out, r)
	return out.Flush()
}

func printMessages(out io.Writer, r *capture.Report) {
	if len(r.Messages) == 0 {
		return
	}
	// Columns of a fixed width: measuring them would take all rows in memory.
	fmt.Fprintf(out, "%8s %13s %5s %4s %9s %13s %13s %13s %13s %8s  %s\n", "MESSAGE", "START (s)", "FROM", "TO", "WORDS",
		"req-clr (us)", "clr-dat (us)", "dat-ack (us)", "total (us)", "RETRANSMISSIONS", "VERDICT")
	for i := range r.Messages {
		m := &r.Messages[i]
		fmt.Fprintf(out, "%8d %13.6f %5d %4d %9d %13s %13s %13s %13s %8d  %s\n", m.ID, m.Start, m.Src, m.Dst, m.Words,
			micros(m.Phases.RequestToClear), micros(m.Phases.ClearToData), micros(m.Phases.DataToAck), micros(m.Phases.Total),
			m.Retransmissions, m.Verdict)
	}
	if n := r.Summary.MessagesNotListed; n > 0 {
		fmt.Fprintf(out, "… and %d more messages\n", n)
	}
	fmt.Fprintln(out)
}

func micros(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *s*1e6)
}

func printSummary(out io.Writer, r *capture.Report) {
	s := &r.Summary
	fmt.Fprintf(out, "%s: %d packets in %.3f s, %d messages, %d complete, %d packets sent again\n",
		r.Source, s.Packets, s.Seconds, s.All.Messages, s.All.Complete, s.All.Retransmissions)
	for reason, n := range s.Skipped {
		fmt.Fprintf(out, "passed over: %d %s\n", n, reason)
	}
	if s.NotFollowed > 0 {
		fmt.Fprintf(out, "passed over: %d of more pairs of addresses than are followed\n", s.NotFollowed)
	}
	if s.Truncated != "" {
		fmt.Fprintln(out, s.Truncated)
	}
	printExtended(out, s.Extended)
	if s.All.Messages == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "FROM\tTO\tMESSAGES\tWORDS\t  PHASE\tp50 (us)\tp90 (us)\tp99 (us)\tmax (us)\t")
	row := func(from, to string, p *capture.PairSummary) {
		for i, phase := range []struct {
			name string
			q    capture.Quantiles
		}{{"req-clr", p.RequestToClear}, {"clr-dat", p.ClearToData}, {"dat-ack", p.DataToAck}, {"total", p.Total}} {
			head := "\t\t\t"
			if i == 0 {
				head = fmt.Sprintf("%s\t%s\t%d\t%d", from, to, p.Messages, p.Words)
			}
			cell := func(s float64) string {
				if phase.q.Count == 0 {
					return "-"
				}
				return micros(&s)
			}
			fmt.Fprintf(w, "%s\t  %s\t%s\t%s\t%s\t%s\t\n", head, phase.name, cell(phase.q.P50), cell(phase.q.P90), cell(phase.q.P99), cell(phase.q.Max))
		}
	}
	for i := range s.Pairs {
		row(fmt.Sprint(s.Pairs[i].Src), fmt.Sprint(s.Pairs[i].Dst), &s.Pairs[i])
	}
	if len(s.Pairs) > 1 {
		row("all", "all", &s.All)
	}
	_ = w.Flush()
}

func printFindings(out io.Writer, r *capture.Report) {
	if len(r.Findings) == 0 {
		fmt.Fprintln(out, "\nnothing found")
		return
	}
	fmt.Fprintf(out, "\nFINDINGS\n")
	for i := range r.Findings {
		f := &r.Findings[i]
		fmt.Fprintf(out, "%12.6f  %-18s %s\n%34s%s\n", f.Time, f.Kind, f.Text, "", packetList(f.Packets))
	}
	if n := r.Summary.FindingsNotListed; n > 0 {
		fmt.Fprintf(out, "… and %d more\n", n)
	}
}

func packetList(packets []int64) string {
	var words []string
	for _, p := range packets {
		words = append(words, fmt.Sprint(p))
	}
	if len(words) == 1 {
		return "packet " + words[0]
	}
	return "packets " + strings.Join(words, ", ")
}
