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
	out        *bufio.Writer
	messages   bool
	analysis   *capture.Analysis
	start      time.Time
	lastCheck  time.Time // last check for waits
	shownWaits map[time.Time]bool
}

// minShownWait is the duration from which a wait is printed.
const minShownWait = time.Second

func newLiveReport(out io.Writer, name string, messages bool, opts capture.AnalysisOptions) *liveReport {
	report := &liveReport{out: bufio.NewWriter(out), messages: messages, shownWaits: map[time.Time]bool{}}
	opts.OnMessage, opts.OnFinding = report.onMessage, report.onFinding
	report.analysis = capture.NewAnalysis(name, opts)
	if messages {
		printMessageHeader(report.out)
	}
	return report
}

func (l *liveReport) onMessage(m *capture.Message) {
	if l.messages {
		printMessage(l.out, m)
	}
}

func (l *liveReport) onFinding(f *capture.Finding) { printFinding(l.out, f) }

// finish prints the summary. It omits the findings, because they have been printed already.
func (l *liveReport) finish(r *capture.Report) error {
	fmt.Fprintln(l.out)
	printSummary(l.out, r)
	if len(r.Findings) == 0 {
		printFindings(l.out, r)
	}
	return l.out.Flush()
}

// printWaits prints each wait only once, when its duration reaches minShownWait.
func (l *liveReport) printWaits(now time.Time) {
	if l.start.IsZero() {
		l.start = now
	}
	if now.Sub(l.lastCheck) < minShownWait {
		return
	}
	l.lastCheck = now
	open := map[time.Time]bool{}
	for _, w := range l.analysis.OpenWaits(minShownWait) {
		open[w.Since] = true
		if !l.shownWaits[w.Since] {
			fmt.Fprintf(l.out, "%12.6f  %-18s %s\n", now.Sub(l.start).Seconds(), capture.StillWaiting, w.Text)
		}
	}
	l.shownWaits = open
}

// liveSource is a source that flushes the report before it waits for the next packet.
type liveSource struct {
	capture.Source
	report   *liveReport
	lastTime time.Time
}

// Next implements capture.Source.
func (s *liveSource) Next(unit *pcapng.Unit) error {
	if !s.lastTime.IsZero() {
		s.report.printWaits(s.lastTime)
	}
	if err := s.report.out.Flush(); err != nil {
		return err
	}
	err := s.Source.Next(unit)
	if err == nil {
		s.lastTime = unit.Time
	}
	return err
}
