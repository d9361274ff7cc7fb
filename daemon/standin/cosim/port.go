package cosim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// lineFIFO is the number of lines from a role that can wait for their call. It equals the depth of the FIFO between
// role and engine in upstream's templates.
const lineFIFO = 1 << 14

// lineLen is the length of a line in bytes.
const lineLen = 2 * protocol.WordLen

// lastKeep contains the value of tkeep for the last line of a message, indexed by the number of words in that line. The
// deployed engine sets these values for a datagram from a host. An FPGA pads its own messages to whole lines.
var lastKeep = [3]uint8{0x00, 0x0f, 0xff}

// Values of MPI_Feedback in upstream's wrapper.
const (
	feedbackOK   = 1
	feedbackFail = 2
)

// Call is a call made by the role.
type Call struct {
	protocol.Call
	// Words is the count in the call: the length of an outgoing message, or of the buffer for an incoming one. Rank is
	// the rank to send to or receive from.
	Words, Rank uint32
	// Cycle is the cycle in which the call was transferred.
	Cycle uint64
	// callInProgress describes the call that was in progress when this one was transferred. It is empty if no call was
	// in progress.
	callInProgress string
}

func (c Call) String() string {
	direction, during := "from", ""
	if c.IsSend() {
		direction = "to"
	}
	if c.callInProgress != "" {
		during = ", while " + c.callInProgress + " was in progress"
	}
	return fmt.Sprintf("%v of %d words %s rank %d (cycle %d%s)", c.Call, c.Words, direction, c.Rank, c.Cycle, during)
}

// messageLines returns the number of lines of a message. As on deployed nodes, a message of 0 words occupies one line.
func messageLines(words uint32) uint32 { return max(1, words/2+words%2) }

// FaultError reports that a role broke a rule of its interface. The engine then waits forever, as a deployed engine
// does or may do.
type FaultError struct {
	// Signal is the signal that broke the rule, and Cycle is the cycle in which it did.
	Signal string
	Cycle  uint64
	// Problem describes the fault and the correct behavior.
	Problem string
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("%s at cycle %d: %s", e.Signal, e.Cycle, e.Problem)
}

// Wait describes an event for which the exchange with the simulator is waiting.
type Wait struct {
	// Signal is the signal that delays the exchange, or empty if the network causes the delay.
	Signal string
	// Since is the cycle in which the wait began.
	Since uint64
	// Text describes the wait.
	Text string
}

// phase is the phase of the current call.
type phase int

const (
	idle       phase = iota // no call
	collecting              // the role is sending the lines of a message
	callReady               // the call is ready for the engine
	executing               // the engine is executing the call
	answering               // the role is receiving lines and the feedback
	faulty                  // final: the role has broken a rule
)

// earlyLine is a line of a message that arrived before the call it belongs to.
type earlyLine struct {
	record Record
	cycle  uint64
}

// Port implements the engine's side of the role's interface. Like the deployed engine, it handles one call at a time,
// and stores the next call and its lines meanwhile.
type Port struct {
	rank, size int
	maxWords   uint32 // maximum message length in words
	buf        []byte // holds the message

	phase    phase
	call     Call
	nextCall Call
	hasNext  bool // nextCall is pending
	early    []earlyLine
	// linesDone is the number of lines, out of linesTotal, collected from the role or handed over to it so far.
	linesDone, linesTotal uint32
	messageWords          uint32 // length of the message being handed over
	feedback              uint8

	cycle        uint64 // the most recent one reported
	lastTransfer uint64 // cycle of the last transfer on any stream
	// lines and feedbacks are the numbers of records that the simulator holds for the role. stalledSince is a copy of
	// StreamState.StalledSince.
	lines, feedbacks uint32
	stalledSince     [numKinds]uint64
	fault            *FaultError
	findings
}

// NewPort returns the Port of a rank for messages of at most words words. buf must have length BufferLen(words).
func NewPort(rank, size int, words uint32, buf []byte) *Port {
	p := &Port{rank: rank, size: size, maxWords: words, buf: buf}
	for i := range p.stalledSince {
		p.stalledSince[i] = Never
	}
	return p
}

// feedbackFIFO is the maximum number of feedbacks pending in the simulator.
const feedbackFIFO = 8

// PrepareStep sets the records and limits of a step. The argument lines is the value of Hello.FIFO that the simulator
// sent. The error is a *FaultError.
func (p *Port) PrepareStep(step *Step, lines uint32) error {
	step.Records, step.StopWhenDrained, step.Calls, step.Lines = step.Records[:0], false, 0, 0
	if p.phase == faulty {
		return nil
	}
	if p.phase == answering {
		p.appendLines(step, lines)
		if step.StopWhenDrained = p.linesDone < p.linesTotal; !step.StopWhenDrained && p.feedbacks < feedbackFIFO {
			step.Records = append(step.Records, Record{Kind: KindFeedback, Data: uint64(p.feedback), Keep: 1, Last: true})
			p.feedbacks++
			if err := p.finish(); err != nil {
				return p.fail(err)
			}
		}
	}
	if step.Lines = uint32(lineFIFO - len(p.early)); !p.hasNext {
		step.Calls = 1
	}
	return nil
}

// appendLines appends to the step as many lines as fit both in it and in the simulator's FIFO.
func (p *Port) appendLines(step *Step, lines uint32) {
	for ; p.linesDone < p.linesTotal && p.lines < lines && len(step.Records) < MaxRecords-1; p.linesDone++ {
		r := Record{Kind: KindIn, Keep: 0xff, Last: p.linesDone == p.linesTotal-1,
			Data: binary.LittleEndian.Uint64(p.buf[p.linesDone*lineLen:])}
		if r.Last {
			r.Keep = lastKeep[min(p.messageWords-2*p.linesDone, 2)]
		}
		step.Records = append(step.Records, r)
		p.lines++
	}
}

// finish ends a call once the role has received its feedback.
func (p *Port) finish() error {
	if p.feedback == feedbackFail && p.call.IsSend() { // the role sends its lines again
		p.phase, p.linesDone, p.linesTotal = collecting, 0, messageLines(p.call.Words)
		return p.addEarlyLines()
	}
	p.phase = idle
	if !p.hasNext {
		return nil
	}
	p.hasNext = false
	return p.startCall(p.nextCall)
}

// Advance processes the result of a step. The error is either ErrFrame or a *FaultError. A *FaultError is returned only
// once.
func (p *Port) Advance(result *Result) error {
	before := p.cycle
	if result.Cycle < before || result.Lines > p.lines || result.Feedbacks > p.feedbacks {
		return fmt.Errorf("%w: cycle %d after cycle %d, %d lines of %d, %d feedbacks of %d", ErrFrame, result.Cycle, before,
			result.Lines, p.lines, result.Feedbacks, p.feedbacks)
	}
	if result.Lines < p.lines || result.Feedbacks < p.feedbacks {
		p.lastTransfer = result.Cycle
	}
	p.cycle, p.lines, p.feedbacks, p.stalledSince = result.Cycle, result.Lines, result.Feedbacks, result.StalledSince
	for i := range result.Records {
		r := &result.Records[i]
		at := before + uint64(r.CycleOffset)
		if at > result.Cycle {
			return fmt.Errorf("%w: a transfer at cycle %d of %d", ErrFrame, at, result.Cycle)
		}
		if err := p.handleTransfer(*r, at); err != nil {
			return p.fail(err)
		}
	}
	return nil
}

// fail records a fault of the role. The port never recovers from a fault.
func (p *Port) fail(err error) error {
	if f, ok := errors.AsType[*FaultError](err); ok {
		p.phase, p.fault = faulty, f
	}
	return err
}

// handleTransfer processes a transfer from the role.
func (p *Port) handleTransfer(record Record, at uint64) error {
	switch {
	case p.phase == faulty:
		return nil
	case record.Rule != RuleNone:
		if f := p.brokenRule(BoundaryRole, record, at, p.context(record.Kind)); f != nil {
			return f
		}
		return nil
	}
	p.lastTransfer = at
	switch {
	case record.Kind == KindOut && p.phase == collecting:
		return p.addLine(record, at)
	case record.Kind == KindOut && len(p.early) == lineFIFO || record.Kind == KindCall && p.hasNext:
		return fmt.Errorf("%w: a transfer on %v at cycle %d, without space for it", ErrFrame, record.Kind, at)
	case record.Kind == KindOut:
		p.early = append(p.early, earlyLine{record, at})
		return nil
	}
	c := Call{Call: protocol.Call(record.Keep), Words: uint32(record.Data), Rank: uint32(record.Data >> 32), Cycle: at}
	if p.phase == idle {
		return p.startCall(c)
	}
	c.callInProgress = fmt.Sprintf("%v of cycle %d", p.call.Call, p.call.Cycle)
	p.nextCall, p.hasNext = c, true
	return nil
}

// context describes how far the role's current call has progressed on stream k, for use in the message of a fault.
func (p *Port) context(k Kind) string {
	switch {
	case p.phase == idle:
		return ""
	case k == KindOut && p.phase == collecting:
		return fmt.Sprintf(", on line %d of %d of %v", p.linesDone+1, p.linesTotal, p.call)
	}
	return fmt.Sprintf(", in %v", p.call)
}

// startCall starts to process a call.
func (p *Port) startCall(c Call) error {
	problem := ""
	switch {
	case !c.IsSend() && !c.IsRecv():
		problem = fmt.Sprintf("mpi_call is %d: the deployed engine has 0 SEND_INT, 1 RECV_INT, 2 SEND_FLOAT and 3 "+
			"RECV_FLOAT", uint8(c.Call))
	case int64(c.Rank) >= int64(p.size):
		problem = fmt.Sprintf("rank is %d: the cluster has ranks 0 to %d", c.Rank, p.size-1)
	case int64(c.Rank) == int64(p.rank):
		problem = fmt.Sprintf("rank is %d, the role's own rank: a rank cannot exchange messages with itself", c.Rank)
	case c.Words > p.maxWords:
		problem = fmt.Sprintf("count is %d: messages have at most %d words: raise kernel_options.words", c.Words,
			p.maxWords)
	}
	if problem != "" {
		return &FaultError{KindCall.String() + "_tdata", c.Cycle, problem}
	}
	p.call, p.phase, p.linesDone, p.linesTotal = c, callReady, 0, 0
	if !c.IsSend() {
		return nil
	}
	p.phase, p.linesTotal = collecting, messageLines(c.Words)
	return p.addEarlyLines()
}

// addEarlyLines adds the lines that arrived before their call to the call's message.
func (p *Port) addEarlyLines() error {
	n := 0
	for ; n < len(p.early) && p.phase == collecting; n++ {
		if err := p.addLine(p.early[n].record, p.early[n].cycle); err != nil {
			return err
		}
	}
	p.early = p.early[:copy(p.early, p.early[n:])]
	return nil
}

// addLine stores one line of an outgoing message.
func (p *Port) addLine(record Record, at uint64) error {
	last := p.linesDone == p.linesTotal-1
	faulty := func(signal, format string, args ...any) error {
		return &FaultError{
			KindOut.String() + "_" + signal, at,
			fmt.Sprintf(format, args...) + fmt.Sprintf(" on line %d of %d of %v", p.linesDone+1, p.linesTotal, p.call),
		}
	}
	switch {
	case last && !record.Last:
		return faulty("tlast", "not set")
	case !last && record.Last:
		return faulty("tlast", "set %d words too early,", p.call.Words-2*(p.linesDone+1))
	case record.Keep != 0xff && !(last && record.Keep == 0x0f && p.call.Words%2 == 1):
		want := "0xff"
		if last && p.call.Words%2 == 1 {
			want = "0x0f or 0xff"
		}
		return faulty("tkeep", "0x%02x, and not %s,", record.Keep, want)
	}
	binary.LittleEndian.PutUint64(p.buf[p.linesDone*lineLen:], record.Data)
	if p.linesDone++; last {
		p.phase = callReady
	}
	return nil
}

// NextCall returns a call to execute, together with the message to send or the buffer for the received message. It
// returns each call only once.
func (p *Port) NextCall() (c Call, data []byte, ok bool) {
	if p.phase != callReady {
		return c, nil, false
	}
	p.phase = executing
	return p.call, p.buf[:int(p.call.Words)*protocol.WordLen], true
}

// CompleteSend completes a send. If ok is false, the role must transfer all lines of the message once more.
func (p *Port) CompleteSend(ok bool) {
	p.phase, p.linesTotal, p.linesDone, p.feedback = answering, 0, 0, feedbackOK
	if !ok {
		p.feedback = feedbackFail
	}
}

// CompleteReceive completes a receive. The caller must have written the message, of the given number of words, to the
// buffer returned by NextCall.
func (p *Port) CompleteReceive(words uint32) {
	p.phase, p.messageWords, p.linesTotal, p.linesDone, p.feedback = answering, words, messageLines(words), 0, feedbackOK
	clear(p.buf[int(words)*protocol.WordLen : int(p.linesTotal)*lineLen]) // clear the rest of the last line
}

// Retry makes NextCall return a failed receive again, because the role is still waiting for its lines.
func (p *Port) Retry() { p.phase = callReady }

// BufferLen returns the length of a Port's buffer for messages of at most words words, a multiple of the length of a
// line.
func BufferLen(words uint32) int { return int(messageLines(words)) * lineLen }

// IsFaulty reports whether the role has broken a rule of its interface.
func (p *Port) IsFaulty() bool { return p.fault != nil }

// Overdue reports whether the role has been delaying a message for at least the given number of cycles, and returns the
// cycle in which the delay began.
func (p *Port) Overdue(cycles uint64) (since uint64, ok bool) {
	switch {
	case p.phase == faulty:
		return 0, false
	case p.stalledSince[KindIn] != Never:
		since = p.stalledSince[KindIn]
	case p.stalledSince[KindFeedback] != Never:
		since = p.stalledSince[KindFeedback]
	case p.phase == collecting:
		since = p.lastTransfer
	default:
		return 0, false
	}
	return since, p.cycle-since >= cycles
}

// IsIdle reports whether no call is in progress.
func (p *Port) IsIdle() bool { return p.phase == idle && p.lines == 0 && p.feedbacks == 0 }

// Cycle returns the most recent cycle reported by the simulator.
func (p *Port) Cycle() uint64 { return p.cycle }

// Wait describes the event for which the exchange with the simulator is waiting.
func (p *Port) Wait() Wait {
	switch {
	case p.fault != nil:
		return Wait{p.fault.Signal, p.fault.Cycle, p.fault.Problem}
	case p.stalledSince[KindIn] != Never:
		text := "low, with a line offered"
		if p.linesDone >= p.lines { // the simulator holds no lines of an earlier call
			text = fmt.Sprintf("low, with line %d of %d of %v offered", p.linesDone-p.lines+1, p.linesTotal, p.call)
		}
		return Wait{KindIn.String() + "_tready", p.stalledSince[KindIn], text}
	case p.stalledSince[KindFeedback] != Never:
		return Wait{KindFeedback.String() + "_tready", p.stalledSince[KindFeedback],
			fmt.Sprintf("low, with the feedback of %v offered", p.call)}
	case p.phase == collecting:
		return Wait{KindOut.String() + "_tvalid", p.lastTransfer,
			fmt.Sprintf("low, with line %d of %d of %v expected", p.linesDone+1, p.linesTotal, p.call)}
	case p.phase == idle:
		return Wait{KindCall.String() + "_tvalid", p.lastTransfer, "low: the role makes no call"}
	case p.hasNext && p.nextCall.IsSend() && p.call.IsRecv():
		return Wait{KindCall.String() + "_tdata", p.nextCall.Cycle,
			fmt.Sprintf("%v waits until the end of %v", p.nextCall, p.call)}
	}
	return Wait{Since: p.call.Cycle, Text: p.call.String()}
}
