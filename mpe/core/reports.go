package core

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// Ranks ask each other for reports (E53). The engine treats a report as opaque bytes.

// ErrNoReport is returned when a rank of the extended profile does not answer, ErrNoQuestions when it runs a version
// that cannot answer, and ErrNotExtended when the rank's profile has no packet for questions.
var (
	ErrNoReport    = extended.ErrNoReport
	ErrNoQuestions = extended.ErrNoQuestions
	ErrNotExtended = errors.New("its link does not use the extended profile, which reports require")
)

// PeerReport is a rank's answer to a request for its report.
type PeerReport struct {
	Rank int
	// Report is nil if Err is set.
	Report []byte
	Err    error
}

// reportEvery is the minimum time between two reports of this rank, however many ranks ask.
const reportEvery = 100 * time.Millisecond

// Reports handles requests for reports. It holds this rank's last report, and the ranks that have asked for it.
type Reports struct {
	core *Core

	// lastReport is the last report, made at madeAt. inProgress means that the driver is making a report for the
	// askers. answerDue means that flush will send lastReport to the askers.
	lastReport []byte
	madeAt     handshake.Instant
	inProgress bool
	answerDue  bool
	askers     []*extendedLink
}

// Question is a pending request for the reports of several ranks.
type Question struct {
	Reports []PeerReport
	pending int
	wake    func() // called when pending reaches 0
}

// record records the answer of a rank.
func (q *Question) record(e *Core, rank int, report []byte, err error) {
	i := slices.IndexFunc(q.Reports, func(r PeerReport) bool { return r.Rank == rank })
	q.Reports[i].Report, q.Reports[i].Err = report, err
	if q.pending--; q.pending == 0 {
		e.wake(q.wake)
	}
}

// Ask asks ranks, which must be distinct peers, for their reports. The driver calls wake when all have answered.
func (r *Reports) Ask(ranks []int, wake func()) *Question {
	question := &Question{Reports: make([]PeerReport, len(ranks)), pending: len(ranks), wake: wake}
	if len(ranks) == 0 {
		r.core.wake(wake)
	}
	for i, rank := range ranks {
		question.Reports[i].Rank = rank
	}
	for _, rank := range ranks {
		switch l := r.core.peers.at(rank).extended; {
		case l == nil:
			question.record(r.core, rank, nil, ErrNotExtended)
		case r.core.state != running:
			question.record(r.core, rank, nil, ErrClosed)
		default:
			l.questions = append(l.questions, question)
			r.core.connActions.list = l.touchedConn().AskReport(r.core.now, r.core.connActions.list[:0])
			l.perform(nil)
		}
	}
	r.core.flush()
	return question
}

// Cancel drops a pending question.
func (r *Reports) Cancel(q *Question) {
	for _, of := range q.Reports {
		if l := r.core.peers.at(of.Rank).extended; l != nil {
			l.questions = slices.DeleteFunc(l.questions, func(other *Question) bool { return other == q })
		}
	}
}

// onReport records a peer's answer in all pending questions to that peer.
func (l *extendedLink) onReport(act *extended.Action) {
	for _, q := range l.questions {
		q.record(l.p.e, l.p.rank, bytes.Clone(act.Payload), act.Err)
	}
	l.questions = nil
}

// onQuestion makes the driver produce a report for a peer that asked for it, or schedules the last report if it is
// recent enough.
func (r *Reports) onQuestion(l *extendedLink) {
	if !r.core.cfg.Reports || r.core.state != running || slices.Contains(r.askers, l) {
		return
	}
	r.askers = append(r.askers, l)
	switch {
	case r.inProgress:
	case r.lastReport != nil && r.core.now-r.madeAt < reportEvery:
		r.answerDue = true
	default:
		r.inProgress, r.core.out.Report, r.core.out.Rare = true, true, true
	}
}

// Deliver stores a new report and sends it to the ranks that asked for it.
func (r *Reports) Deliver(text []byte) {
	r.lastReport, r.madeAt, r.inProgress = text, r.core.now, false
	r.answer()
	r.core.flush()
}

// answer sends the last report to the ranks that asked for it.
func (r *Reports) answer() {
	askers := r.askers
	r.askers, r.answerDue = nil, false
	if r.core.state != running {
		return
	}
	for _, l := range askers {
		r.core.connActions.list = l.touchedConn().AnswerReport(r.lastReport, r.core.connActions.list[:0])
		l.perform(nil)
	}
}
