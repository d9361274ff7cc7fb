package perfetto

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Live writes a trace while its recording grows. It writes each message without buffering when the message ends, so
// that the file is a valid trace at any time. Times are in nanoseconds since 1970.
type Live struct {
	trace    trace
	out      *bufio.Writer
	tracker  *capture.Tracker
	messages int64
	called   int64
	extended int64
	findings int64
}

// maxTracks limits the memory for ranks and pairs, whatever the packets claim. Live ends a trace that needs more tracks
// with an error.
const maxTracks = 1 << 20

var errTracks = fmt.Errorf("the trace ends because it has %d tracks: trace fewer ranks", maxTracks)

// NewLive begins a trace. profile is the dialect of packets that do not use the extended profile.
func NewLive(to io.Writer, profile protocol.Profile) *Live {
	l := &Live{out: bufio.NewWriter(to)}
	l.trace = newTrace(l.out)
	l.tracker = capture.NewTracker(capture.TrackerOptions{Profile: profile, OnMessage: l.onMessage,
		OnExtended: l.onExtMessage, OnFinding: l.onFinding})
	return l
}

// Err returns the first write error.
func (l *Live) Err() error { return l.trace.w.err }

// ProcessAll writes the packets of a source until the source ends or writing fails. It returns the source's error,
// unless that is io.EOF.
func (l *Live) ProcessAll(src capture.Source) error {
	var u pcapng.Unit
	for l.trace.w.err == nil {
		err := src.Next(&u)
		if err == nil {
			l.tracker.ProcessUnit(&u)
			continue
		}
		l.tracker.SetEnd(src.Stats().End)
		l.tracker.Finish()
		for _, c := range l.trace.calls.pendingCalls(l.tracker.End()) {
			l.addCall(&c)
		}
		l.flush()
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return err
	}
	return nil
}

// Messages returns the number of messages written.
func (l *Live) Messages() int64 { return l.messages }

// Calls returns the number of calls written.
func (l *Live) Calls() int64 { return l.called }

// Findings returns the number of findings written.
func (l *Live) Findings() int64 { return l.findings }

// AddNote writes the lengths of a rank's queues, or a call if the call ended. Pass it as capture.Options.OnNote to the
// source.
func (l *Live) AddNote(n pcapng.RankNote) {
	switch n := n.(type) {
	case *pcapng.QueueDepths:
		l.trace.addQueueDepths(n, n.Time.UnixNano())
	case *pcapng.Call:
		if ended, ok := l.trace.calls.addCall(n); ok {
			l.addCall(&ended)
		}
	}
	l.flush()
}

func (l *Live) addCall(c *tracedCall) {
	l.trace.addCall(c, time.Unix(0, 0))
	l.called++
}

func (l *Live) onMessage(m *capture.Message) {
	p := traceHandshake(m, time.Unix(0, 0), l.tracker.Start().UnixNano(), l.tracker.End().UnixNano())
	l.addMessage(&p)
}

func (l *Live) onExtMessage(m *capture.ExtendedMessage) {
	l.extended++
	p := traceExtended(m, l.extended, time.Unix(0, 0))
	l.addMessage(&p)
}

func (l *Live) addMessage(p *tracedMessage) {
	l.trace.addMessage(p)
	l.messages++
	l.flush()
}

func (l *Live) onFinding(f *capture.Finding) {
	l.trace.addFinding(f, l.tracker.Start().UnixNano()+nanoseconds(max(f.Time, 0)))
	l.findings++
	l.flush()
}

func (l *Live) flush() {
	l.trace.flushEvents()
	if err := l.out.Flush(); l.trace.w.err == nil {
		l.trace.w.err = err
	}
	if l.trace.tracks >= maxTracks && l.trace.w.err == nil {
		l.trace.w.err = errTracks
	}
}
