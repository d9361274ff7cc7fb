package core

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// Ranks ask each other for reports (E53). The contents of a report concern only its author and its reader: to
// the engine, a report is bytes.

// ErrNoReport means that a rank of the extended profile has not answered. ErrNoQuestions means that the rank runs
// an older version. ErrNotExtended means that the link to the rank has another profile, which has no packet for
// questions.
var (
	ErrNoReport    = extended.ErrNoReport
	ErrNoQuestions = extended.ErrNoQuestions
	ErrNotExtended = errors.New("its link does not use the extended profile, which reports require")
)

// PeerReport is the answer of a rank.
type PeerReport struct {
	Rank int
	// Report is nil if Err is set.
	Report []byte
	Err    error
}

// reportEvery is the minimum time between two reports that a rank makes, however many ranks ask.
const reportEvery = 100 * time.Millisecond

// Reports holds the questions of other ranks, and the state of this rank's report.
type Reports struct {
	c *Core

	// text is the last report, made at madeAt. making means that the driver is making a report for the askers.
	// answers means that the askers get text at the end of the event.
	text    []byte
	madeAt  handshake.Instant
	making  bool
	answers bool
	askers  []*extendedLink
}

// Question is a question to several ranks.
type Question struct {
	Reports []PeerReport
	left    int
	wake    func() // called when left reaches 0
}

// answered records the answer of a rank.
func (q *Question) answered(e *Core, rank int, report []byte, err error) {
	i := slices.IndexFunc(q.Reports, func(r PeerReport) bool { return r.Rank == rank })
	q.Reports[i].Report, q.Reports[i].Err = report, err
	if q.left--; q.left == 0 {
		e.wake(q.wake)
	}
}

// Ask asks ranks for their reports. All must be peers, without duplicates. It calls wake when all have answered.
func (r *Reports) Ask(ranks []int, wake func()) *Question {
	q := &Question{Reports: make([]PeerReport, len(ranks)), left: len(ranks), wake: wake}
	if len(ranks) == 0 {
		r.c.wake(wake)
	}
	for i, rank := range ranks {
		q.Reports[i].Rank = rank
	}
	for _, rank := range ranks {
		switch l := r.c.peers[rank].extended; {
		case l == nil:
			q.answered(r.c, rank, nil, ErrNotExtended)
		case r.c.state != running:
			q.answered(r.c, rank, nil, ErrClosed)
		default:
			l.questions = append(l.questions, q)
			r.c.conns.list = l.machine().Ask(r.c.at, r.c.conns.list[:0])
			l.perform(nil)
		}
	}
	r.c.flush()
	return q
}

// Forget drops a pending question.
func (r *Reports) Forget(q *Question) {
	for _, of := range q.Reports {
		if l := r.c.peers[of.Rank].extended; l != nil {
			l.questions = slices.DeleteFunc(l.questions, func(other *Question) bool { return other == q })
		}
	}
}

// reported completes the questions to a peer.
func (l *extendedLink) reported(act *extended.Action) {
	for _, q := range l.questions {
		q.answered(l.p.e, l.p.rank, bytes.Clone(act.Payload), act.Err)
	}
	l.questions = nil
}

// onQuestion asks the driver for a report for a peer that has asked, or schedules the last report if that is recent
// enough.
func (r *Reports) onQuestion(l *extendedLink) {
	if !r.c.cfg.Reports || r.c.state != running || slices.Contains(r.askers, l) {
		return
	}
	r.askers = append(r.askers, l)
	switch {
	case r.making:
	case r.text != nil && r.c.at-r.madeAt < reportEvery:
		r.answers = true
	default:
		r.making, r.c.out.Report, r.c.out.Rare = true, true, true
	}
}

// Made sends a report to the ranks that have asked for it.
func (r *Reports) Made(text []byte) {
	r.text, r.madeAt, r.making = text, r.c.at, false
	r.answer()
	r.c.flush()
}

// answer sends the last report to the ranks that have asked for it.
func (r *Reports) answer() {
	askers := r.askers
	r.askers, r.answers = nil, false
	if r.c.state != running {
		return
	}
	for _, l := range askers {
		r.c.conns.list = l.machine().Answer(r.text, r.c.conns.list[:0])
		l.perform(nil)
	}
}
