package extended

import (
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// MaxReport is the maximum length of a report in bytes (E53).
const MaxReport = 8192

// Limits for questions and answers (E53).
const (
	// maxReportPart is the maximum number of bytes of a report in one packet.
	maxReportPart = 1024
	// reportUnit is the unit, in bytes, by which parts of a report are aligned: every offset is a multiple of it.
	reportUnit = 8
	// maxQuestions is the maximum number of times that a question is sent, and questionInterval is the interval between
	// them. questionTimeout is the time after which an unanswered question fails.
	maxQuestions     = 3
	questionInterval = 300 * time.Millisecond
	questionTimeout  = 900 * time.Millisecond
	// olderEchoes is the number of questions that a peer must answer like HELLOs before this rank concludes that the
	// peer does not know questions. A single such answer proves nothing, because it may belong to another packet sent
	// in the same microsecond.
	olderEchoes = 2
	// answerInterval is the minimum time between two reports that are sent to the same peer.
	answerInterval = 100 * time.Millisecond
)

// reporting is the state of questions for a report: of the one that we ask the peer, and of the one that the peer asks
// us.
type reporting struct {
	// inProgress is set from AskReport until the Report action. The last question sent has the number questionNumber
	// and was transmitted questionsSent times. It is transmitted next at nextSendAt, and fails at failAt.
	inProgress         bool
	questionNumber     uint32
	questionsSent      int
	nextSendAt, failAt Instant
	// questionClock is the clock value that the last question carried. It is 0 if the peer answered that question like
	// a HELLO. The field echoes counts such answers.
	questionClock uint32
	echoes        int
	// buf holds the parts of the report received so far. It is nil, and length is 0, until the first part arrives. From
	// then on, length is the length of the whole report. receivedUnits holds one bit per unit of the report, which is
	// set once the unit was received.
	buf           []byte
	length        uint32
	receivedUnits [MaxReport / reportUnit / 64]uint64
	missingUnits  int

	// peerQuestion is the number of the peer's question that AnswerReport will answer, or 0. Further
	// questions are ignored until the time ignoreUntil.
	peerQuestion uint32
	ignoreUntil  Instant
}

// isAsking reports whether our question is in progress.
func (r *reporting) isAsking() bool { return r != nil && r.inProgress }

// deadline returns the time at which sendDueQuestion must next be called, or never.
func (r *reporting) deadline(known bool) Instant {
	switch {
	case !r.isAsking():
		return never
	case known && r.questionsSent < maxQuestions:
		return min(r.nextSendAt, r.failAt)
	}
	return r.failAt
}

// reset begins a new pair of sessions. It discards the peer's question and the parts received so far; our own question
// continues.
func (r *reporting) reset() {
	if r != nil {
		r.peerQuestion, r.length = 0, 0
	}
}

// ensureReports allocates the state for questions, which most Conns never need.
func (c *Conn) ensureReports() *reporting {
	if c.reports == nil {
		c.reports = new(reporting)
	}
	return c.reports
}

// AskReport asks the peer for its report (E53). A Report action follows within a second, or at Close. AskReport does
// nothing while a question is in progress, or after Close.
func (c *Conn) AskReport(now Instant, acts []Action) []Action {
	r := c.ensureReports()
	if r.inProgress || c.closed {
		return acts
	}
	c.acts, c.changed = acts, true
	r.inProgress, r.questionsSent, r.questionClock, r.echoes, r.length = true, 0, 0, 0, 0
	r.nextSendAt, r.failAt = now, now+questionTimeout
	return c.acts
}

// sendDueQuestion sends the question if it is due, or fails it if it has timed out.
func (c *Conn) sendDueQuestion(now Instant) {
	r := c.reports
	switch {
	case now < r.deadline(c.session.remote != 0):
		return
	case now >= r.failAt:
		r.finish(&c.common, nil, ErrNoReport)
		return
	}
	r.questionNumber = r.questionNumber%protocol.MaxExtTag + 1 // parts of the answers to two questions must not be mixed
	r.length, r.questionClock, r.nextSendAt = 0, clockAt(now), now+questionInterval
	r.questionsSent++
	h := c.header(protocol.Ack, protocol.RecvInt)
	h.Flags |= protocol.FlagHello
	h.Clock, h.Tag = r.questionClock, r.questionNumber
	c.appendAck(now, &h)
}

// finish ends our question. It passes the caller either the peer's report or the error err.
func (r *reporting) finish(c *common, report []byte, err error) {
	r.inProgress, r.buf = false, nil
	a := c.nextAction()
	a.Kind, a.Payload, a.Err = Report, report, err
}

// onEcho handles the clock that an ACK echoes. An echo of a question's clock suggests that the peer does not know
// questions and has answered the question like a HELLO.
func (r *reporting) onEcho(c *common, clock uint32) {
	if !r.isAsking() || clock == 0 || clock != r.questionClock || r.length != 0 {
		return
	}
	r.questionClock = 0 // count each question once, even if its ACK is duplicated
	if r.echoes++; r.echoes >= olderEchoes {
		r.finish(c, nil, ErrNoQuestions)
	}
}

// onReport handles a part of the peer's report.
func (r *reporting) onReport(c *common, header *protocol.ExtHeader, payload []byte) {
	end := uint64(header.Offset) + uint64(len(payload))
	switch {
	// The report is complete, or the part answers an earlier question.
	case !r.isAsking() || header.Tag != r.questionNumber:
		c.drop(ReasonStale, header)
		return
	case len(payload) == 0 || header.Length > MaxReport || header.Offset%reportUnit != 0 ||
		end > uint64(header.Length) || end%reportUnit != 0 && end != uint64(header.Length) ||
		r.length != 0 && r.length != header.Length:
		c.drop(ReasonMismatch, header)
		return
	}
	if r.length == 0 {
		if r.buf == nil {
			r.buf = make([]byte, MaxReport)
		}
		r.length, r.receivedUnits = header.Length, [len(r.receivedUnits)]uint64{}
		r.missingUnits = int(header.Length+reportUnit-1) / reportUnit
	}
	copy(r.buf[header.Offset:], payload)
	for unit := header.Offset / reportUnit; uint64(unit)*reportUnit < end; unit++ {
		if word, bit := &r.receivedUnits[unit/64], uint64(1)<<(unit%64); *word&bit == 0 {
			*word |= bit
			r.missingUnits--
		}
	}
	if r.missingUnits == 0 {
		r.finish(c, r.buf[:r.length], nil)
	}
}

// onQuestion handles a question from the peer. It ignores a question that follows another one too soon.
func (r *reporting) onQuestion(c *common, now Instant, h *protocol.ExtHeader) {
	if now < r.ignoreUntil {
		return
	}
	r.peerQuestion, r.ignoreUntil = h.Tag, now+answerInterval
	c.nextAction().Kind = Question
}

// AnswerReport answers the peer's question with the first MaxReport bytes of a report. The packets refer to the memory
// of report. AnswerReport does nothing if there is no question, and sends nothing if the report is empty.
func (c *Conn) AnswerReport(report []byte, acts []Action) []Action {
	r := c.reports
	if r == nil || r.peerQuestion == 0 || c.closed || c.session.remote == 0 {
		return acts
	}
	c.acts, c.changed = acts, true
	report = report[:min(len(report), MaxReport)]
	part := max(min(maxReportPart, int(c.path.maxPayload))&^(reportUnit-1), reportUnit)
	for at := 0; at < len(report); at += part {
		h := c.header(protocol.Ack, protocol.RecvInt)
		h.Tag, h.Offset, h.Length = r.peerQuestion, uint32(at), uint32(len(report))
		c.transmitUnnumbered(TransmitAck, &h, report[at:min(at+part, len(report))])
	}
	r.peerQuestion = 0
	return c.acts
}
