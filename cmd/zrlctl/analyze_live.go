package main

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// liveReport prints messages, findings and waits captured from an interface as they occur.
type liveReport struct {
	out      *bufio.Writer
	messages bool
	analysis *capture.Analysis
	start    time.Time
	looked   time.Time // last check for waits
	shown    map[time.Time]bool
}

// longWait is the duration from which a wait is printed.
const longWait = time.Second

func newLiveReport(out io.Writer, name string, messages bool, opts capture.AnalysisOptions) *liveReport {
	l := &liveReport{out: bufio.NewWriter(out), messages: messages, shown: map[time.Time]bool{}}
	opts.OnMessage, opts.OnFinding = l.message, l.finding
	l.analysis = capture.NewAnalysis(name, opts)
	if messages {
		printMessageHead(l.out)
	}
	return l
}

func (l *liveReport) message(m *capture.Message) {
	if l.messages {
		printMessage(l.out, m)
	}
}

func (l *liveReport) finding(f *capture.Finding) { printFinding(l.out, f) }

// end prints the summary. The findings were already printed.
func (l *liveReport) end(r *capture.Report) error {
	fmt.Fprintln(l.out)
	printSummary(l.out, r)
	if len(r.Findings) == 0 {
		printFindings(l.out, r)
	}
	return l.out.Flush()
}

// waits prints each wait once, when its duration reaches longWait.
func (l *liveReport) waits(now time.Time) {
	if l.start.IsZero() {
		l.start = now
	}
	if now.Sub(l.looked) < longWait {
		return
	}
	l.looked = now
	open := map[time.Time]bool{}
	for _, w := range l.analysis.Open(longWait) {
		open[w.Since] = true
		if !l.shown[w.Since] {
			fmt.Fprintf(l.out, "%12.6f  %-18s %s\n", now.Sub(l.start).Seconds(), capture.Waiting, w.Text)
		}
	}
	l.shown = open
}

// liveSource is a source that flushes the report before it waits for the next packet.
type liveSource struct {
	capture.Source
	report *liveReport
	last   time.Time
}

// Next implements capture.Source.
func (s *liveSource) Next(u *pcapng.Unit) error {
	if !s.last.IsZero() {
		s.report.waits(s.last)
	}
	if err := s.report.out.Flush(); err != nil {
		return err
	}
	err := s.Source.Next(u)
	if err == nil {
		s.last = u.Time
	}
	return err
}
