package collcheck

import (
	"errors"
	"math"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// memory holds the content of the ranks' buffers, as contributions or as data.
type memory interface {
	// move transfers a message, or copies within a rank if the ranks are equal.
	move(fromRank int, from coll.Loc, rank int, into coll.Loc, n int) error
	// reduce combines bytes of fromRank with bytes of rank.
	reduce(fromRank, rank int, s *coll.Step) error
}

// operands returns the bytes of a reduction: both operands and the result. fromRank is the rank whose shared buffer the
// step reads, or the rank itself.
func operands[T any](view func(rank int, at coll.Loc, n int) ([]T, error), fromRank, rank int, step *coll.Step) (from,
	with, into []T, err error) {
	operand := func(at coll.Loc) ([]T, error) {
		if at.Buf == coll.Shared {
			return view(fromRank, at, step.Len)
		}
		return view(rank, at, step.Len)
	}
	if from, err = operand(step.From); err != nil {
		return nil, nil, nil, err
	}
	if into, err = view(rank, step.Into, step.Len); err != nil {
		return nil, nil, nil, err
	}
	if with = into; step.With.Buf != 0 {
		with, err = operand(step.With)
	}
	return from, with, into, err
}

// clock is a time, counted separately for α, β and γ.
type clock [3]int

func (c clock) max(d clock) clock {
	return clock{max(c[0], d[0]), max(c[1], d[1]), max(c[2], d[2])}
}

// message and reduction return the clock advanced by the cost of a message or reduction of n bytes.
func (c clock) message(n int) clock   { return clock{c[0] + 1, c[1] + n, c[2]} }
func (c clock) reduction(n int) clock { return clock{c[0], c[1], c[2] + n} }

// stepQueue is a sequence of steps that a rank executes in order.
type stepQueue struct {
	steps []int
	free  clock
}

// process is a rank that executes its program.
type process struct {
	*Program
	rank, window int
	// completed is the index of the first incomplete step. through[i] is the time at which the first i steps were
	// complete.
	completed int
	done      []bool
	end       []clock
	through   []clock
	// begun holds the times at which forward steps that have received can begin to send.
	begun              map[int]clock
	sends, recvs, work stepQueue
	// needs contains a row of bits per step: the ranks whose entry into the call the step depends on. It is empty
	// unless requested.
	needs []uint64
	words int
	woken bool
}

// simulation executes the programs of all ranks.
type simulation struct {
	ranks []*process
	queue []*process
	mem   memory
	sum   Cost
	// failed is the mistake of a rank, or nil.
	failed error
}

// unlimited is a window that holds any number of steps.
const unlimited = math.MaxInt / 2

// newSimulation returns a simulation of ranks with a window of window steps; 0 means each program's Window. If needs is
// set, the simulation records the ranks that each step depends on.
func newSimulation(programs []Program, mem memory, window int, needs bool) *simulation {
	w := &simulation{mem: mem}
	for r := range programs {
		n := len(programs[r].Steps)
		p := &process{
			Program: &programs[r], rank: r, window: window,
			done: make([]bool, n), end: make([]clock, n), through: make([]clock, n+1),
			woken: true,
		}
		if window == 0 {
			p.window = p.Window
		}
		if needs {
			p.words = (len(programs) + 63) / 64
			p.needs = make([]uint64, n*p.words)
		}
		for i := range p.Steps {
			step := &p.Steps[i]
			if step.Sends() {
				p.sends.steps = append(p.sends.steps, i)
			}
			if step.Receives() {
				p.recvs.steps = append(p.recvs.steps, i)
			}
			if !step.Sends() && !step.Receives() {
				p.work.steps = append(p.work.steps, i)
			}
		}
		w.ranks = append(w.ranks, p)
		w.queue = append(w.queue, p)
	}
	return w
}

// run executes steps until no rank can continue, and returns an error if a rank did not complete its program.
func (w *simulation) run() error {
	for w.pass() {
		// A rank far down the chain may have enabled a flow to begin, so retry all ranks.
		for _, p := range w.ranks {
			if p.completed < len(p.Steps) {
				w.wake(p)
			}
		}
	}
	if w.failed != nil {
		return w.failed
	}
	for _, p := range w.ranks {
		if p.completed < len(p.Steps) {
			s := &p.Steps[p.completed]
			return scheduleError(p.rank, p.completed+1, "deadlock: the %v of %d bytes, peer %d, never ends with a window of %d",
				s.Kind, s.Len, s.Peer, p.window)
		}
		last := p.through[len(p.Steps)]
		w.sum.Rounds, w.sum.Bytes, w.sum.Reduced = max(w.sum.Rounds, last[0]), max(w.sum.Bytes, last[1]),
			max(w.sum.Reduced, last[2])
	}
	return nil
}

// pass executes steps of woken ranks until none can continue, and reports whether it executed any.
func (w *simulation) pass() (any bool) {
	for len(w.queue) > 0 {
		p := w.queue[len(w.queue)-1]
		w.queue = w.queue[:len(w.queue)-1]
		p.woken = false
		for {
			moved, err := w.step(p)
			if err != nil {
				w.failed = err
				return false
			}
			if !moved {
				break
			}
			any = true
		}
	}
	return any
}

// wake queues a rank whose next steps may have become possible. A rank is queued at most once.
func (w *simulation) wake(p *process) {
	if !p.woken {
		p.woken = true
		w.queue = append(w.queue, p)
	}
}

// ready returns the time at which step i can begin. ok is false if the step cannot begin yet.
func (p *process) ready(i int) (at clock, ok bool) {
	if i >= p.completed+p.window {
		return at, false
	}
	if i >= p.window {
		at = p.through[i-p.window+1]
	}
	for _, a := range p.Steps[i].After {
		switch {
		case a == 0:
		case a == coll.AllEarlier:
			if p.completed < i {
				return at, false
			}
			at = at.max(p.through[i])
		case !p.done[a-1]:
			return at, false
		default:
			at = at.max(p.end[a-1])
		}
	}
	return at, true
}

// finish completes step i.
func (p *process) finish(i int, at clock) {
	p.done[i], p.end[i] = true, at
	if p.needs != nil {
		p.addNeeds(i, p, i)
	}
	for p.completed < len(p.Steps) && p.done[p.completed] {
		p.through[p.completed+1] = p.through[p.completed].max(p.end[p.completed])
		p.completed++
	}
}

// addNeeds adds the dependencies of step j of from, and from itself, to the ranks that step i depends on.
func (p *process) addNeeds(i int, from *process, j int) {
	row := p.needs[i*p.words : (i+1)*p.words]
	row[from.rank/64] |= 1 << (from.rank % 64)
	for _, a := range from.Steps[j].After {
		first, last := a-1, a
		if a == coll.AllEarlier {
			first, last = 0, j
		}
		for k := max(first, 0); k < last; k++ {
			for x := range row {
				row[x] |= from.needs[k*p.words+x]
			}
		}
	}
}

// step executes one local step of the rank or transfers one message to or from it, and reports whether it did.
func (w *simulation) step(p *process) (bool, error) {
	if len(p.work.steps) > 0 {
		i := p.work.steps[0]
		if at, ok := p.ready(i); ok {
			return true, w.local(p, i, at)
		}
	}
	if len(p.sends.steps) > 0 {
		dest := p.Steps[p.sends.steps[0]].Dest()
		if dest < 0 || dest >= len(w.ranks) || dest == p.rank {
			return false, scheduleError(p.rank, p.sends.steps[0]+1, "sends to rank %d", dest)
		}
		if ok, err := w.message(p, w.ranks[dest]); ok || err != nil {
			return ok, err
		}
	}
	if len(p.recvs.steps) > 0 {
		source := p.Steps[p.recvs.steps[0]].Peer
		if source < 0 || source >= len(w.ranks) || source == p.rank {
			return false, scheduleError(p.rank, p.recvs.steps[0]+1, "receives from rank %d", source)
		}
		return w.message(w.ranks[source], p)
	}
	return false, nil
}

// local executes a step that involves no other rank.
func (w *simulation) local(p *process, i int, at clock) error {
	step := &p.Steps[i]
	p.work.steps = p.work.steps[1:]
	var err error
	switch step.Kind {
	case coll.StepCopy:
		err = w.mem.move(p.rank, step.From, p.rank, step.Into, step.Len)
	case coll.StepPack:
		for k := range step.Count {
			err = errors.Join(err, w.mem.move(p.rank, coll.Loc{Buf: step.From.Buf, Off: step.From.Off + k*step.Stride},
				p.rank, coll.Loc{Buf: step.Into.Buf, Off: step.Into.Off + k*step.Len}, step.Len))
		}
	case coll.StepReduce, coll.StepReduceRight:
		err = w.mem.reduce(p.rank, p.rank, step)
		at = at.max(p.work.free).reduction(step.Len)
		p.work.free = at
	case coll.StepJoin:
	default:
		return scheduleError(p.rank, i+1, "kind %d is not known", step.Kind)
	}
	if err != nil {
		return scheduleError(p.rank, i+1, "%v: %v", step.Kind, err)
	}
	p.finish(i, at)
	return nil
}

// cleared returns the time at which rank to clears step i of from, the rank before it in a flow: when its own receive
// is posted, the message has been announced, and its own send has been cleared. ok is false before that.
func (w *simulation) cleared(from *process, i int, to *process) (at clock, ok bool) {
	if len(to.recvs.steps) == 0 {
		return at, false
	}
	j := to.recvs.steps[0]
	in := &to.Steps[j]
	announced, begun := from.ready(i)
	posted, posts := to.ready(j)
	if !begun || !posts || in.Peer != from.rank {
		return at, false
	}
	at = announced.message(0).max(posted)
	if in.Kind == coll.StepForward && in.To >= 0 && in.To < len(w.ranks) {
		next, ok := w.cleared(to, j, w.ranks[in.To])
		return at.max(next.message(0)), ok
	}
	return at, true
}

// message transfers the next message between two ranks if both are ready, and reports whether it did.
func (w *simulation) message(from, to *process) (bool, error) {
	if len(from.sends.steps) == 0 || len(to.recvs.steps) == 0 {
		return false, nil
	}
	i, j := from.sends.steps[0], to.recvs.steps[0]
	out, in := &from.Steps[i], &to.Steps[j]
	if out.Dest() != to.rank || in.Peer != from.rank {
		return false, nil
	}
	sent, ok := from.ready(i)
	if out.Kind == coll.StepForward && ok {
		sent, ok = from.begun[i]
	}
	posted, posts := to.ready(j)
	if !ok || !posts {
		return false, nil
	}
	if out.Piece > 0 {
		cleared, ok := w.cleared(from, i, to)
		if !ok {
			return false, nil
		}
		posted = cleared.message(0)
	}
	if out.Len != in.Len || out.Piece != in.Piece {
		return false, scheduleError(to.rank, j+1,
			"receives %d bytes in pieces of %d from rank %d, whose step %d sends %d in pieces of %d",
			in.Len, in.Piece, from.rank, i+1, out.Len, out.Piece)
	}
	at := out.From
	if out.Kind == coll.StepForward {
		at = out.Into
	}
	if err := w.mem.move(from.rank, at, to.rank, in.Into, in.Len); err != nil {
		return false, scheduleError(to.rank, j+1, "%v from rank %d, whose step is %d: %v", in.Kind, from.rank, i+1, err)
	}
	start := sent.max(posted).max(from.sends.free).max(to.recvs.free)
	end := start.message(out.Len)
	if out.Kind == coll.StepForward { // the last piece is forwarded after it was received
		end = end.max(from.end[i].message(min(out.Piece, out.Len)))
	}
	from.sends.free, to.recvs.free = end, end
	from.sends.steps, to.recvs.steps = from.sends.steps[1:], to.recvs.steps[1:]
	w.sum.Messages++
	w.sum.Volume += out.Len
	if to.needs != nil {
		to.addNeeds(j, from, i)
	}
	if in.Kind == coll.StepForward {
		// Forwarding can begin when the first piece has been received.
		if to.begun == nil {
			to.begun = map[int]clock{}
		}
		to.begun[j], to.end[j] = start.message(min(in.Piece, in.Len)), end
	} else {
		to.finish(j, end)
	}
	from.finish(i, end)
	w.wake(from)
	w.wake(to)
	return true, nil
}
