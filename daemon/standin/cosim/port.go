package cosim

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// fifo is how many lines of a role wait for their call: the depth of the FIFO between role
// and engine of upstream's templates.
const fifo = 1 << 14

// lineLen is the length of a line in bytes.
const lineLen = 2 * protocol.WordLen

// lastKeep is tkeep of the last line of a message by the words in it: what the deployed engine
// takes from a datagram of a host. An FPGA that sends pads its messages to whole lines.
var lastKeep = [3]uint8{0x00, 0x0f, 0xff}

// The values of MPI_Feedback of upstream's wrapper.
const (
	feedbackOK   = 1
	feedbackFail = 2
)

// Call is a call of the role.
type Call struct {
	protocol.Call
	// Words is the count: the length of a message that is sent, the room for one that is
	// received. Rank is the other rank.
	Words, Rank uint32
	// Cycle is when it was transferred.
	Cycle uint64
	// during describes the call that was in progress then, or is empty.
	during string
}

func (c Call) String() string {
	direction, during := "from", ""
	if c.IsSend() {
		direction = "to"
	}
	if c.during != "" {
		during = ", while " + c.during + " was in progress"
	}
	return fmt.Sprintf("%v of %d words %s rank %d (cycle %d%s)", c.Call, c.Words, direction, c.Rank, c.Cycle, during)
}

// lines is how many lines a message has. One of 0 words has one, as of the deployed nodes.
func lines(words uint32) uint32 { return max(1, words/2+words%2) }

// FaultError is the error of a role that breaks the rules of its interface. The engine then
// waits forever, as a deployed one does or may do.
type FaultError struct {
	// Signal is the signal at fault, and Cycle when.
	Signal string
	Cycle  uint64
	// Problem says what is wrong, and what the role has to do.
	Problem string
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("%s at cycle %d: %s", e.Signal, e.Cycle, e.Problem)
}

// Wait is what the exchange waits for.
type Wait struct {
	// Signal is the signal that holds it up, or empty if that is the network.
	Signal string
	// Since is the cycle since which it does.
	Since uint64
	// Text describes it.
	Text string
}

// phase is where a call is.
type phase int

const (
	idle       phase = iota // no call
	collecting              // lines of a send
	asked                   // the engine is to carry the call out
	working                 // it does
	answering               // the lines of a receive, and the feedback
	faulty                  // for good
)

// early is a line that came before its call.
type early struct {
	record Record
	cycle  uint64
}

// Port is the engine's side of the role's interface. It has one call at a time, as the deployed
// engine, and room for the next one and its lines.
type Port struct {
	rank, size int
	room       uint32 // the longest message in words
	buf        []byte // the message

	phase  phase
	call   Call
	next   Call
	queued bool // next is a call that waits
	early  []early
	// done are the lines of the message that were collected, or handed over, of total.
	done, total uint32
	words       uint32 // of the message that is handed over
	feedback    uint8

	cycle uint64 // the last that was reported
	moved uint64 // the cycle of the last transfer of any stream
	// lines and feedbacks are what the simulator holds for the role, since is Result.Since.
	lines, feedbacks uint32
	since            [kinds]uint64
	fault            *FaultError
	findings
}

// NewPort returns the port of a rank. buf has Room for messages of words words.
func NewPort(rank, size int, words uint32, buf []byte) *Port {
	p := &Port{rank: rank, size: size, room: words, buf: buf}
	for i := range p.since {
		p.since[i] = Never
	}
	return p
}

// feedbackFIFO is how many feedbacks wait in the simulator at most.
const feedbackFIFO = 8

// Fill sets the records and the room of a step. lines is the simulator's Hello.FIFO. The error is
// a *FaultError.
func (p *Port) Fill(s *Step, lines uint32) error {
	s.Records, s.More, s.Calls, s.Lines = s.Records[:0], false, 0, 0
	if p.phase == faulty {
		return nil
	}
	if p.phase == answering {
		p.hand(s, lines)
		if s.More = p.done < p.total; !s.More && p.feedbacks < feedbackFIFO {
			s.Records = append(s.Records, Record{Kind: KindFeedback, Data: uint64(p.feedback), Keep: 1, Last: true})
			p.feedbacks++
			if err := p.finish(); err != nil {
				return p.fail(err)
			}
		}
	}
	if s.Lines = uint32(fifo - len(p.early)); !p.queued {
		s.Calls = 1
	}
	return nil
}

// hand appends the lines for which the simulator has room.
func (p *Port) hand(s *Step, lines uint32) {
	for ; p.done < p.total && p.lines < lines && len(s.Records) < MaxRecords-1; p.done++ {
		r := Record{Kind: KindIn, Keep: 0xff, Last: p.done == p.total-1, Data: binary.LittleEndian.Uint64(p.buf[p.done*lineLen:])}
		if r.Last {
			r.Keep = lastKeep[min(p.words-2*p.done, 2)]
		}
		s.Records = append(s.Records, r)
		p.lines++
	}
}

// finish ends a call that was answered.
func (p *Port) finish() error {
	if p.feedback == feedbackFail && p.call.IsSend() { // the role sends the lines once more
		p.phase, p.done, p.total = collecting, 0, lines(p.call.Words)
		return p.collectEarly()
	}
	p.phase = idle
	if !p.queued {
		return nil
	}
	p.queued = false
	return p.begin(p.next)
}

// Advance takes what a step had as its result. The error is a *FaultError, once, or ErrFrame.
func (p *Port) Advance(s *Result) error {
	before := p.cycle
	if s.Cycle < before || s.Lines > p.lines || s.Feedbacks > p.feedbacks {
		return fmt.Errorf("%w: cycle %d after cycle %d, %d lines of %d, %d feedbacks of %d", ErrFrame, s.Cycle, before, s.Lines, p.lines, s.Feedbacks, p.feedbacks)
	}
	if s.Lines < p.lines || s.Feedbacks < p.feedbacks {
		p.moved = s.Cycle
	}
	p.cycle, p.lines, p.feedbacks, p.since = s.Cycle, s.Lines, s.Feedbacks, s.Since
	for i := range s.Records {
		r := &s.Records[i]
		at := before + uint64(r.At)
		if at > s.Cycle {
			return fmt.Errorf("%w: a transfer at cycle %d of %d", ErrFrame, at, s.Cycle)
		}
		if err := p.take(*r, at); err != nil {
			return p.fail(err)
		}
	}
	return nil
}

// fail makes a fault final.
func (p *Port) fail(err error) error {
	if f, ok := errors.AsType[*FaultError](err); ok {
		p.phase, p.fault = faulty, f
	}
	return err
}

// take takes a transfer from the role.
func (p *Port) take(r Record, at uint64) error {
	switch {
	case p.phase == faulty:
		return nil
	case r.Rule != RuleNone:
		if f := p.broken(BoundaryRole, r, at, p.context(r.Kind)); f != nil {
			return f
		}
		return nil
	}
	p.moved = at
	switch {
	case r.Kind == KindOut && p.phase == collecting:
		return p.collect(r, at)
	case r.Kind == KindOut && len(p.early) == fifo || r.Kind == KindCall && p.queued:
		return fmt.Errorf("%w: a transfer on %v at cycle %d, without room for it", ErrFrame, r.Kind, at)
	case r.Kind == KindOut:
		p.early = append(p.early, early{r, at})
		return nil
	}
	c := Call{Call: protocol.Call(r.Keep), Words: uint32(r.Data), Rank: uint32(r.Data >> 32), Cycle: at}
	if p.phase == idle {
		return p.begin(c)
	}
	c.during = fmt.Sprintf("%v of cycle %d", p.call.Call, p.call.Cycle)
	p.next, p.queued = c, true
	return nil
}

// context says where in its call the role is on a stream, for a fault on it.
func (p *Port) context(k Kind) string {
	switch {
	case p.phase == idle:
		return ""
	case k == KindOut && p.phase == collecting:
		return fmt.Sprintf(", on line %d of %d of %v", p.done+1, p.total, p.call)
	}
	return fmt.Sprintf(", in %v", p.call)
}

// begin begins a call.
func (p *Port) begin(c Call) error {
	problem := ""
	switch {
	case !c.IsSend() && !c.IsRecv():
		problem = fmt.Sprintf("mpi_call is %d: the deployed engine has 0 SEND_INT, 1 RECV_INT, 2 SEND_FLOAT and 3 RECV_FLOAT", uint8(c.Call))
	case int64(c.Rank) >= int64(p.size):
		problem = fmt.Sprintf("rank is %d: the cluster has ranks 0 to %d", c.Rank, p.size-1)
	case int64(c.Rank) == int64(p.rank):
		problem = fmt.Sprintf("rank is %d, that of the role itself: a rank cannot exchange messages with itself", c.Rank)
	case c.Words > p.room:
		problem = fmt.Sprintf("count is %d: messages have at most %d words: raise kernel_options.words", c.Words, p.room)
	}
	if problem != "" {
		return &FaultError{KindCall.String() + "_tdata", c.Cycle, problem}
	}
	p.call, p.phase, p.done, p.total = c, asked, 0, 0
	if !c.IsSend() {
		return nil
	}
	p.phase, p.total = collecting, lines(c.Words)
	return p.collectEarly()
}

// collectEarly collects lines that came before.
func (p *Port) collectEarly() error {
	n := 0
	for ; n < len(p.early) && p.phase == collecting; n++ {
		if err := p.collect(p.early[n].record, p.early[n].cycle); err != nil {
			return err
		}
	}
	p.early = p.early[:copy(p.early, p.early[n:])]
	return nil
}

// collect stores a line of a send.
func (p *Port) collect(r Record, at uint64) error {
	last := p.done == p.total-1
	faulty := func(signal, format string, args ...any) error {
		return &FaultError{
			KindOut.String() + "_" + signal, at,
			fmt.Sprintf(format, args...) + fmt.Sprintf(" on line %d of %d of %v", p.done+1, p.total, p.call),
		}
	}
	switch {
	case last && !r.Last:
		return faulty("tlast", "not set")
	case !last && r.Last:
		return faulty("tlast", "set %d words too early,", p.call.Words-2*(p.done+1))
	case r.Keep != 0xff && !(last && r.Keep == 0x0f && p.call.Words%2 == 1):
		want := "0xff"
		if last && p.call.Words%2 == 1 {
			want = "0x0f or 0xff"
		}
		return faulty("tkeep", "0x%02x, and not %s,", r.Keep, want)
	}
	binary.LittleEndian.PutUint64(p.buf[p.done*lineLen:], r.Data)
	if p.done++; last {
		p.phase = asked
	}
	return nil
}

// Next returns the call that is to be carried out, once, and its message or the room for it.
func (p *Port) Next() (c Call, data []byte, ok bool) {
	if p.phase != asked {
		return c, nil, false
	}
	p.phase = working
	return p.call, p.buf[:int(p.call.Words)*protocol.WordLen], true
}

// Sent ends a send. If it has failed, the role sends the lines once more.
func (p *Port) Sent(ok bool) {
	p.phase, p.total, p.done, p.feedback = answering, 0, 0, feedbackOK
	if !ok {
		p.feedback = feedbackFail
	}
}

// Received ends a receive of a message of words words, which are in the room that Next has given.
func (p *Port) Received(words uint32) {
	p.phase, p.words, p.total, p.done, p.feedback = answering, words, lines(words), 0, feedbackOK
	clear(p.buf[int(words)*protocol.WordLen : int(p.total)*lineLen]) // the rest of the last line
}

// Retry has Next return a receive that has failed once more: the role waits for its lines.
func (p *Port) Retry() { p.phase = asked }

// Room returns the length of a port's buffer for messages of up to words words: whole lines.
func Room(words uint32) int { return int(lines(words)) * lineLen }

// Faulty reports whether the role has broken the rules of its interface.
func (p *Port) Faulty() bool { return p.fault != nil }

// Overdue reports whether the role holds up a message for as many cycles, and since when.
func (p *Port) Overdue(cycles uint64) (since uint64, ok bool) {
	switch {
	case p.phase == faulty:
		return 0, false
	case p.since[KindIn] != Never:
		since = p.since[KindIn]
	case p.since[KindFeedback] != Never:
		since = p.since[KindFeedback]
	case p.phase == collecting:
		since = p.moved
	default:
		return 0, false
	}
	return since, p.cycle-since >= cycles
}

// Between reports whether no call is under way.
func (p *Port) Between() bool { return p.phase == idle && p.lines == 0 && p.feedbacks == 0 }

// Cycle returns the cycle that the simulator has reported last.
func (p *Port) Cycle() uint64 { return p.cycle }

// Wait returns what the exchange waits for.
func (p *Port) Wait() Wait {
	switch {
	case p.fault != nil:
		return Wait{p.fault.Signal, p.fault.Cycle, p.fault.Problem}
	case p.since[KindIn] != Never:
		text := "low, with a line offered"
		if p.done >= p.lines { // not those of an earlier call
			text = fmt.Sprintf("low, with line %d of %d of %v offered", p.done-p.lines+1, p.total, p.call)
		}
		return Wait{KindIn.String() + "_tready", p.since[KindIn], text}
	case p.since[KindFeedback] != Never:
		return Wait{KindFeedback.String() + "_tready", p.since[KindFeedback], fmt.Sprintf("low, with the feedback of %v offered", p.call)}
	case p.phase == collecting:
		return Wait{KindOut.String() + "_tvalid", p.moved, fmt.Sprintf("low, with line %d of %d of %v expected", p.done+1, p.total, p.call)}
	case p.phase == idle:
		return Wait{KindCall.String() + "_tvalid", p.moved, "low: the role makes no call"}
	case p.queued && p.next.IsSend() && p.call.IsRecv():
		return Wait{KindCall.String() + "_tdata", p.next.Cycle, fmt.Sprintf("%v waits until the end of %v", p.next, p.call)}
	}
	return Wait{Since: p.call.Cycle, Text: p.call.String()}
}
