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

// errFindings is returned by an analysis that has already printed its findings, so that only the exit code reports
// them.
var errFindings = errors.New("problems found")

func (a *app) analyzeCommand() *cobra.Command {
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze FILE...|- | analyze -i INTERFACE",
		Short: "Analyze a recording: messages, phases, problems, waiting ranks",
		Long: `Print a row for each message of a recording with the duration of each phase of its
handshake, then a summary and the problems found: losses, retransmissions, mismatches,
and the ranks that are still waiting at the end. The input is a pcap or pcapng file, plain
or compressed with gzip, zstd, xz or lz4; VLANs, VXLAN and IP fragments are supported.
With -i, capture from an interface until interrupted, and print messages, problems, and
ranks that wait for more than a second as they occur. Each problem lists the numbers of
its packets; zrlctl decode --packet prints them.

Several files are merged into one recording, whether they come from one host, written in
sequence, or from several hosts. analyze matches the packets that the files have in common
to identify the hosts and to correct the differences between their clocks; times are in
the clock of the first file. A packet that two hosts recorded counts once. A packet that
only its sender recorded was lost between them.

Times are in µs. req-clr is SEND_REQUEST to CLEAR_TO_SEND, clr-dat CLEAR_TO_SEND to the
last datagram of DATA, dat-ack the last datagram of DATA to ACK. "-" is a step that is
not in the recording.

Exit codes: 0 no problems found; 1 problems found, or the recording is truncated or corrupt
after some packets; 2 the recording cannot be read, or contains no ZRLMPI packets.`,
		Example: `  zrlctl analyze trace.pcap
  zrlctl analyze host0.pcap host1.pcap.zst
  zrlctl analyze trace.pcapng --html report.html
  zrlctl analyze trace.pcapng --perfetto trace.perfetto-trace
  tcpdump -i eth0 -w - udp port 2718 | zrlctl analyze - --json`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.analyze(cmd.Context(), &flags, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	flags.input.addFlags(cmd)
	fl := cmd.Flags()
	fl.StringVar(&flags.html, "html", "", "write an HTML report with sequence diagrams to this file")
	fl.StringVar(&flags.perfetto, "perfetto", "",
		"write a trace of the messages and recorded calls for ui.perfetto.dev to this file")
	fl.IntVar(&flags.limit, "limit", 100000, "maximum number of messages listed; the summary counts all")
	fl.BoolVar(&flags.messages, "messages", true, "print a row for each message")
	fl.BoolVar(&flags.progress, "progress", false, "print progress to standard error")
	hideEmptyDefaults(fl)
	return cmd
}

func (a *app) analyze(ctx context.Context, flags *analyzeFlags, args []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	if flags.limit < 0 {
		return usageErrorf("--limit %d: must be at least 0", flags.limit)
	}
	profile, err := flags.input.parseProfile()
	if err != nil {
		return err
	}
	var analysis *capture.Analysis
	if flags.perfetto != "" {
		flags.input.onNote = func(n pcapng.RankNote) { analysis.AddNote(n) }
	}
	src, name, err := flags.input.open(ctx, args, stdin)
	if err != nil {
		return err
	}
	defer src.Close()
	opts := capture.AnalysisOptions{Profile: profile, KeepMessages: flags.limit}
	if flags.html != "" {
		opts.KeepSteps = 64
	}
	if flags.perfetto != "" {
		opts.KeepTrace = flags.limit
	}
	// The heap grows by small, long-lived objects. Collect garbage more often, to use less memory for more CPU time.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	live := flags.input.iface != ""
	var printed *liveReport
	if live && !a.json {
		printed = newLiveReport(stdout, name, flags.messages, opts)
		analysis, src = printed.analysis, &liveSource{Source: src, report: printed}
	} else {
		analysis = capture.NewAnalysis(name, opts)
	}
	var progress io.Writer
	if flags.progress {
		progress = stderr
	}
	if err := analyzeSource(ctx, analysis, src, live, progress); err != nil {
		return err
	}
	report := analysis.Report()
	if err := flags.writeFiles(report); err != nil {
		return err
	}
	if printed != nil {
		err = printed.finish(report)
	} else {
		err = a.printReport(stdout, report, flags.messages)
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

// writeFiles writes the files requested by flags.
func (f *analyzeFlags) writeFiles(report *capture.Report) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer, *capture.Report) error
	}{{f.html, htmlreport.Write}, {f.perfetto, writeTrace}} {
		if file.name == "" {
			continue
		}
		if err := writeFile(file.name, func(out io.Writer) error { return file.write(out, report) }); err != nil {
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

// analyzeSource analyzes the packets of a source. If the user interrupts a live source, the analysis ends without an
// error.
func analyzeSource(ctx context.Context, analysis *capture.Analysis, src capture.Source, live bool,
	progress io.Writer) error {
	if progress != nil {
		src = &progressSource{Source: src, out: progress, start: time.Now()}
	}
	return recordingError(ctx, analysis.Analyze(src), live)
}

// progressSource wraps a source and prints how much of it has been read.
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

func (a *app) printReport(stdout io.Writer, report *capture.Report, messages bool) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	if a.json {
		return flushAndJoin(report.WriteJSON(out), out)
	}
	if messages {
		printMessages(out, report)
	}
	printSummary(out, report)
	printFindings(out, report)
	printDecodeHint(out, report)
	return out.Flush()
}

func printMessages(out io.Writer, report *capture.Report) {
	if len(report.Messages) == 0 {
		return
	}
	printMessageHeader(out)
	for i := range report.Messages {
		printMessage(out, &report.Messages[i])
	}
	if n := report.Summary.MessagesNotListed; n > 0 {
		fmt.Fprintf(out, "… and %s\n", words.Plural(int(n), "more message"))
	}
	fmt.Fprintln(out)
}

// printMessageHeader prints the column heads. The columns have a fixed width, because fitting them would require all
// rows in memory.
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

func printSummary(out io.Writer, report *capture.Report) {
	summary := &report.Summary
	fmt.Fprintf(out, "%s: %s in %.3f s, %s, %d complete, %s\n",
		report.Source, words.Plural(int(summary.Packets),
			"packet"), summary.Seconds, words.Plural(int(summary.All.Messages), "message"),
		summary.All.Complete,
		words.Plural(int(summary.All.Retransmissions), "retransmission"))
	if report.Comment != "" {
		fmt.Fprintln(out, words.Clean(report.Comment, maxReasonLen))
	}
	if report.Joined != nil {
		fmt.Fprintln(out, strings.Join(report.Joined.Lines(), "\n  "))
	}
	if reasons := summary.SkippedReasons(); len(reasons) > 0 {
		fmt.Fprintf(out, "ignored packets: %s\n", strings.Join(reasons, ", "))
	}
	if summary.NotFollowed > 0 {
		fmt.Fprintf(out, "ignored: %s (too many pairs of addresses)\n", words.Plural(int(summary.NotFollowed), "packet"))
	}
	if summary.Truncated != "" {
		fmt.Fprintln(out, summary.Truncated)
	}
	printExtended(out, summary.Extended)
	if summary.All.Messages == 0 {
		return
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "FROM\tTO\tMESSAGES\tWORDS\t  PHASE\tp50 (µs)\tp90 (µs)\tp99 (µs)\tmax (µs)\t")
	row := func(from, to string, pairSummary *capture.PairSummary) {
		for i, phase := range []struct {
			name string
			q    capture.Quantiles
		}{{"req-clr", pairSummary.RequestToClear}, {"clr-dat", pairSummary.ClearToData}, {"dat-ack",
			pairSummary.DataToAck}, {"total", pairSummary.Total}} {
			head := "\t\t\t"
			if i == 0 {
				head = fmt.Sprintf("%s\t%s\t%d\t%d", from, to, pairSummary.Messages, pairSummary.Words)
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
	for i := range summary.Pairs {
		row(fmt.Sprint(summary.Pairs[i].Src), fmt.Sprint(summary.Pairs[i].Dst), &summary.Pairs[i])
	}
	if len(summary.Pairs) > 1 {
		row("all", "all", &summary.All)
	}
	_ = w.Flush()
	if summary.All.Total.Approximate {
		fmt.Fprintln(out, "p50, p90 and p99 are approximate, within 3.2 %: they are exact up to a million messages")
	}
}

func printFindings(out io.Writer, report *capture.Report) {
	if len(report.Findings) == 0 {
		if report.ExplainEmpty() == "" {
			fmt.Fprintln(out, "\nno problems found")
		}
		return
	}
	fmt.Fprintf(out, "\nFINDINGS\n")
	for i := range report.Findings {
		printFinding(out, &report.Findings[i])
	}
	if n := report.Summary.FindingsNotListed; n > 0 {
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

// printDecodeHint prints, as an example, the command that shows the packets of the first finding.
func printDecodeHint(out io.Writer, report *capture.Report) {
	i := slices.IndexFunc(report.Findings, func(f capture.Finding) bool { return len(f.Packets) > 0 })
	if i < 0 {
		return
	}
	file := report.Source
	if strings.ContainsFunc(file, unicode.IsSpace) { // as in "standard input"
		file = "FILE"
	}
	packets := joinNumbers(report.Findings[i].Packets, ",")
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
