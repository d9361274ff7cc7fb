package mpe

import (
	"bytes"
	"errors"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
)

// How ranks ask each other for reports (E53). What a report says is its maker's and its reader's business: to the engine it is bytes.

// MaxReport is the most bytes of a report.
const MaxReport = extended.MaxReport

// ErrNoReport and ErrNoQuestions are why a rank of the extended profile has no report: it has not answered, or is of an older version.
// ErrNotExtended: the link to the rank is of another profile, of which no packet asks.
var (
	ErrNoReport    = extended.ErrNoReport
	ErrNoQuestions = extended.ErrNoQuestions
	ErrNotExtended = errors.New("its link is not of the profile extended, which alone has questions for reports")
)

// PeerReport is what a rank has answered.
type PeerReport struct {
	Rank int
	// Report is nil if there is none because of Err.
	Report []byte
	Err    error
}

// reportEvery is the shortest time between two reports that a rank makes, however many ask.
const reportEvery = 100 * time.Millisecond

// reports is what a core has of the questions of other ranks, and of its own.
type reports struct {
	// text is the report that was made last, at madeAt. making: the driver makes one for the askers.
	text   []byte
	madeAt handshake.Instant
	making bool
	askers []*extendedLink
}

// questioning is a question to several ranks.
type questioning struct {
	reports []PeerReport
	left    int
	done    chan struct{} // closed when none is left
}

// answered notes what the i-th of the ranks has answered.
func (q *questioning) answered(rank int, report []byte, err error) {
	i := slices.IndexFunc(q.reports, func(r PeerReport) bool { return r.Rank == rank })
	q.reports[i].Report, q.reports[i].Err = report, err
	if q.left--; q.left == 0 {
		close(q.done)
	}
}

// ask asks ranks for their reports. All of them have to be peers, and none may come twice.
func (e *core) ask(ranks []int) *questioning {
	q := &questioning{reports: make([]PeerReport, len(ranks)), left: len(ranks), done: make(chan struct{})}
	if len(ranks) == 0 {
		close(q.done)
	}
	for i, rank := range ranks {
		q.reports[i].Rank = rank
	}
	for _, rank := range ranks {
		switch l := e.peers[rank].extended; {
		case l == nil:
			q.answered(rank, nil, ErrNotExtended)
		case e.state != running:
			q.answered(rank, nil, ErrClosed)
		default:
			l.questions = append(l.questions, q)
			e.conns.list = l.machine().Ask(e.at, e.conns.list[:0])
			l.perform(nil)
		}
	}
	e.flush()
	return q
}

// forget drops a question that has not ended.
func (q *questioning) forget(e *core) {
	for _, r := range q.reports {
		if l := e.peers[r.Rank].extended; l != nil {
			l.questions = slices.DeleteFunc(l.questions, func(other *questioning) bool { return other == q })
		}
	}
}

// reported ends the questions to a peer.
func (l *extendedLink) reported(act *extended.Action) {
	for _, q := range l.questions {
		q.answered(l.p.rank, bytes.Clone(act.Payload), act.Err)
	}
	l.questions = nil
}

// onQuestion has a report made for a peer that asks, or sends the one that was just made. The driver does so: it calls reportMade.
func (e *core) onQuestion(l *extendedLink) {
	r := &e.reports
	if e.cfg.Report == nil || e.state != running || slices.Contains(r.askers, l) {
		return
	}
	if r.askers = append(r.askers, l); r.making {
		return
	}
	r.making = true
	if recent := r.text; recent != nil && e.at-r.madeAt < reportEvery {
		e.driver.report(func() []byte { return recent })
		return
	}
	r.text = nil
	e.driver.report(e.cfg.Report)
}

// reportMade sends a report to the ranks that have asked for it.
func (e *core) reportMade(text []byte) {
	r := &e.reports
	r.making = false
	if r.text == nil {
		r.text, r.madeAt = text, e.at
	}
	askers := r.askers
	r.askers = nil
	if e.state != running {
		return
	}
	for _, l := range askers {
		e.conns.list = l.machine().Answer(text, e.conns.list[:0])
		l.perform(nil)
	}
	e.flush()
}
