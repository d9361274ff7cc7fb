package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/htmlreport"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/capture/perfetto"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

type analyzeFlags struct {
	input    captureInput
	html     string
	perfetto string
	limit    int
	messages bool
	progress bool
}

// errFindings is returned by an analysis that has findings, after they were printed.
var errFindings = errors.New("problems found")

func (a *app) analyzeCommand() *cobra.Command {
	var f analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze FILE...|- | analyze -i INTERFACE",
		Short: "Analyze a recording: messages, phases, problems, waiting ranks",
		Long: `Print a row for each message of a recording with the time of each phase of its
handshake, a summary, and findings: losses, retransmissions, mismatches, and which rank
waits for what from which rank at the end. Input is pcap or pcapng, as it is or compressed
with gzip, zstd, xz or lz4, with VLANs, VXLAN and IP fragments; with -i an interface, until
interrupted: messages, problems, and ranks that wait for more than a second are printed as
they come. Each finding has the numbers of its packets: zrlctl decode --packet
prints them.

Several files are read as one recording: those of one host that were written one after the
other, as well as those of several hosts. Which are which, and how the clocks of hosts
differ, follows from the packets that they have in common; times are those of the first
file. A packet that two hosts have recorded is one packet, and one that only its sender has
was lost between them.

Times are in µs: req-clr is SEND_REQUEST to CLEAR_TO_SEND, clr-dat CLEAR_TO_SEND to the
last datagram of DATA, dat-ack that to ACK. "-" is a step that is not in the recording.

Exit codes: 0 no problems found, 1 problems found, or the recording is cut off or corrupt
behind some packets, 2 it cannot be read, or has no packet of ZRLMPI.`,
		Example: `  zrlctl analyze trace.pcap
  zrlctl analyze host0.pcap host1.pcap.zst
  zrlctl analyze trace.pcapng --html report.html
  zrlctl analyze trace.pcapng --perfetto trace.perfetto-trace
  tcpdump -i eth0 -w - udp port 2718 | zrlctl analyze - --json`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.analyze(cmd.Context(), &f, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	f.input.addFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&f.html, "html", "", "write an HTML report with sequence diagrams to this file")
	fl.StringVar(&f.perfetto, "perfetto", "",
		"write the messages, and what calls there are, as a trace for ui.perfetto.dev to this file")
	fl.IntVar(&f.limit, "limit", 100000, "maximum number of messages listed; the summary counts all")
	fl.BoolVar(&f.messages, "messages", true, "print a row for each message")
	fl.BoolVar(&f.progress, "progress", false, "print progress to standard error")
	return cmd
}

func (a *app) analyze(ctx context.Context, f *analyzeFlags, args []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	if f.limit < 0 {
		return usageErrorf("--limit %d: must be at least 0", f.limit)
	}
	profile, err := f.input.parseProfile()
	if err != nil {
		return err
	}
	var analysis *capture.Analysis
	if f.perfetto != "" {
		f.input.onNote = func(n pcapng.RankNote) { analysis.AddNote(n) }
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
	if f.perfetto != "" {
		opts.KeepTrace = f.limit
	}
	// The heap grows by small, long-lived objects. Spend CPU time to keep less garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	live := f.input.iface != ""
	var printed *liveReport
	if live && !a.json {
		printed = newLiveReport(stdout, name, f.messages, opts)
		analysis, src = printed.analysis, &liveSource{Source: src, report: printed}
	} else {
		analysis = capture.NewAnalysis(name, opts)
	}
	var progress io.Writer
	if f.progress {
		progress = stderr
	}
	if err := analyzeSource(ctx, analysis, src, live, progress); err != nil {
		return err
	}
	report := analysis.Report()
	if err := f.writeFiles(report); err != nil {
		return err
	}
	if printed != nil {
		err = printed.finish(report)
	} else {
		err = a.printReport(stdout, report, f.messages)
	}
	if err != nil {
		return err
	}
	switch why := report.ExplainEmpty(); {
	case why != "":
		return &unreadableError{fmt.Errorf("%s: %s", name, why)}
	case !report.IsClean():
		return errFindings
	}
	return nil
}

// writeFiles writes the files that the flags request.
func (f *analyzeFlags) writeFiles(r *capture.Report) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer, *capture.Report) error
	}{{f.html, htmlreport.Write}, {f.perfetto, writeTrace}} {
		if file.name == "" {
			continue
		}
		if err := writeFile(file.name, func(out io.Writer) error { return file.write(out, r) }); err != nil {
			return err
		}
	}
	return nil
}

// writeTrace writes a trace through a buffer, because a trace consists of many small packets.
func writeTrace(out io.Writer, r *capture.Report) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	return flushAndJoin(perfetto.Write(buffered, r), buffered)
}

// analyzeSource analyzes a source. A live source ends when the user interrupts it.
func analyzeSource(ctx context.Context, analysis *capture.Analysis, src capture.Source, live bool, progress io.Writer) error {
	if progress != nil {
		src = &progressSource{Source: src, out: progress, start: time.Now()}
	}
	return recordingError(ctx, analysis.Analyze(src), live)
}

// progressSource is a source that prints how far it has been read.
type progressSource struct {
	capture.Source
	out         io.Writer
	units       int
	start, last time.Time
}

func (r *progressSource) Next(u *pcapng.Unit) error {
	err := r.Source.Next(u)
	r.units++
	if r.units%(1<<16) == 0 || err != nil {
		if now := time.Now(); err != nil || now.Sub(r.last) >= time.Second {
			r.last = now
			s := r.Stats()
			fmt.Fprintf(r.out, "%d packets, %s, %.0f s\n", s.Packets, words.Bytes(float64(s.Bytes)),
				now.Sub(r.start).Seconds())
		}
	}
	return err
}

func (a *app) printReport(stdout io.Writer, r *capture.Report, messages bool) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	if a.json {
		return flushAndJoin(r.WriteJSON(out), out)
	}
	if messages {
		printMessages(out, r)
	}
	printSummary(out, r)
	printFindings(out, r)
	printDecodeHint(out, r)
	return out.Flush()
}

func printMessages(out io.Writer, r *capture.Report) {
	if len(r.Messages) == 0 {
		return
	}
	printMessageHeader(out)
	for i := range r.Messages {
		printMessage(out, &r.Messages[i])
	}
	if n := r.Summary.MessagesNotListed; n > 0 {
		fmt.Fprintf(out, "… and %s\n", words.Plural(int(n), "more message"))
	}
	fmt.Fprintln(out)
}

// printMessageHeader prints the column heads. The columns have a fixed width, because measuring them would need all rows
// in memory.
func printMessageHeader(out io.Writer) {
	fmt.Fprintf(out, "%8s %13s %5s %4s %9s %13s %13s %13s %13s %8s  %s\n", "MESSAGE", "START (s)", "FROM", "TO",
		"WORDS",
		"req-clr (µs)", "clr-dat (µs)", "dat-ack (µs)", "total (µs)", "RETRANS", "VERDICT")
}

func printMessage(out io.Writer, m *capture.Message) {
	fmt.Fprintf(out, "%8d %13.6f %5d %4d %9d %13s %13s %13s %13s %8d  %s\n", m.ID, m.Start, m.Src, m.Dst, m.Words,
		formatMicros(m.Phases.RequestToClear), formatMicros(m.Phases.ClearToData), formatMicros(m.Phases.DataToAck),
		formatMicros(m.Phases.Total),
		m.Retransmissions, m.Verdict)
}

func formatMicros(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f", *s*1e6)
}

func printSummary(out io.Writer, r *capture.Report) {
	s := &r.Summary
	fmt.Fprintf(out, "%s: %s in %.3f s, %s, %d complete, %s\n",
		r.Source, words.Plural(int(s.Packets), "packet"), s.Seconds, words.Plural(int(s.All.Messages), "message"),
		s.All.Complete,
		words.Plural(int(s.All.Retransmissions), "retransmission"))
	if r.Comment != "" {
		fmt.Fprintln(out, words.Clean(r.Comment, maxReasonLen))
	}
	if r.Joined != nil {
		fmt.Fprintln(out, strings.Join(r.Joined.Lines(), "\n  "))
	}
	if reasons := s.SkippedReasons(); len(reasons) > 0 {
		fmt.Fprintf(out, "ignored packets: %s\n", strings.Join(reasons, ", "))
	}
	if s.NotFollowed > 0 {
		fmt.Fprintf(out, "ignored: %s (too many pairs of addresses)\n", words.Plural(int(s.NotFollowed), "packet"))
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
	fmt.Fprintln(w, "FROM\tTO\tMESSAGES\tWORDS\t  PHASE\tp50 (µs)\tp90 (µs)\tp99 (µs)\tmax (µs)\t")
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
				return formatMicros(&s)
			}
			fmt.Fprintf(w, "%s\t  %s\t%s\t%s\t%s\t%s\t\n", head, phase.name, cell(phase.q.P50), cell(phase.q.P90),
				cell(phase.q.P99), cell(phase.q.Max))
		}
	}
	for i := range s.Pairs {
		row(fmt.Sprint(s.Pairs[i].Src), fmt.Sprint(s.Pairs[i].Dst), &s.Pairs[i])
	}
	if len(s.Pairs) > 1 {
		row("all", "all", &s.All)
	}
	_ = w.Flush()
	if s.All.Total.Approximate {
		fmt.Fprintln(out, "p50, p90 and p99 are approximate, within 3.2 %: they are exact up to a million messages")
	}
}

func printFindings(out io.Writer, r *capture.Report) {
	if len(r.Findings) == 0 {
		if r.ExplainEmpty() == "" {
			fmt.Fprintln(out, "\nno problems found")
		}
		return
	}
	fmt.Fprintf(out, "\nFINDINGS\n")
	for i := range r.Findings {
		printFinding(out, &r.Findings[i])
	}
	if n := r.Summary.FindingsNotListed; n > 0 {
		fmt.Fprintf(out, "… and %s\n", words.Plural(int(n), "more finding"))
	}
}

func printFinding(out io.Writer, f *capture.Finding) {
	fmt.Fprintf(out, "%12.6f  %-18s %s\n", f.Time, f.Kind, f.Text)
	for i := range f.Possible {
		fmt.Fprintf(out, "%34spossible: %s\n", "", f.Possible[i].Text)
	}
	fmt.Fprintf(out, "%34s%s\n", "", packetList(f.Packets))
}

// printDecodeHint prints the command that would show the packets of the first finding, as an example.
func printDecodeHint(out io.Writer, r *capture.Report) {
	i := slices.IndexFunc(r.Findings, func(f capture.Finding) bool { return len(f.Packets) > 0 })
	if i < 0 {
		return
	}
	file := r.Source
	if strings.ContainsFunc(file, unicode.IsSpace) { // as in "standard input"
		file = "FILE"
	}
	packets := joinNumbers(r.Findings[i].Packets, ",")
	fmt.Fprintf(out, "\nTo see the packets of a finding: zrlctl decode %s --packet %s\n", file, packets)
	fmt.Fprintf(out, "In Wireshark: frame.number in {%s}\n", packets)
}

func packetList(packets []int64) string {
	name := "packets "
	if len(packets) == 1 {
		name = "packet "
	}
	return name + joinNumbers(packets, ", ")
}

func joinNumbers(numbers []int64, separator string) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = fmt.Sprint(n)
	}
	return strings.Join(texts, separator)
}
