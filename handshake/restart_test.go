package handshake_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var forgetful = flag.Bool("forgetful", false, "restart ranks without their kept state, to compare")

// moment is a time at which a rank's process is killed: at its nth datagram in or out, before or after that is handled
// or sent.
type moment struct {
	out, after bool
	nth        int
}

func (m moment) String() string {
	side, when := "received", "before"
	if m.out {
		side = "sent"
	}
	if m.after {
		when = "after"
	}
	return fmt.Sprintf("%s datagram %d is %s", when, m.nth, side)
}

// mortal is a rank whose process is killed once, and restarted after a while with the kept state.
type mortal struct {
	*rank
	cfg     handshake.Config
	at      moment
	down    time.Duration
	restore bool // by Restore, with the kept state
	lost    bool // the kept state is lost
	// again is the program of the new process.
	again func(now time.Duration)

	w                   *world
	in, sent            int
	upAt                time.Duration
	dying, dead, reborn bool
	kept, firstKept     handshake.SavedState // the latter by the process that was killed
}

func (m *mortal) kill() {
	m.dead, m.dying, m.upAt = true, false, m.w.now+m.down
}

// keep saves the state that must be kept before the packets of an event are sent.
func (m *mortal) keep() {
	m.kept = m.pair.SavedState()
	for _, b := range m.wire {
		if h, defect := m.cfg.Profile.Parse(b); defect.OK() {
			m.kept = m.kept.BeforeSending(h)
		}
	}
}

func (m *mortal) rise(now time.Duration) {
	if !m.dead || now < m.upAt {
		return
	}
	m.dead, m.reborn, m.firstKept = false, true, m.kept
	m.rank = newRank(m.cfg)
	switch {
	case m.restore && m.lost:
		m.pair.Restore(now, handshake.SavedState{})
	case m.restore:
		m.pair.Restore(now, m.kept)
	}
	m.again(now)
}

func (m *mortal) start(now time.Duration) {
	m.rise(now)
	if !m.dead {
		m.rank.start(now)
		m.keep()
	}
}

func (m *mortal) datagram(now time.Duration, b []byte) {
	if m.dead {
		return
	}
	hit := !m.reborn && !m.at.out && m.at.nth == m.in
	m.in++
	if hit && !m.at.after {
		m.kill()
		return
	}
	m.rank.datagram(now, b)
	m.keep()
	m.dying = hit
}

func (m *mortal) tick(now time.Duration) {
	m.rise(now)
	if !m.dead {
		m.rank.tick(now)
		m.keep()
	}
}

func (m *mortal) next() (time.Duration, bool) {
	if m.dead {
		return m.upAt, true
	}
	return m.rank.next()
}

func (m *mortal) out() [][]byte {
	if m.dead {
		return nil
	}
	var sent [][]byte
	for _, b := range m.rank.out() {
		hit := !m.reborn && m.at.out && m.at.nth == m.sent
		m.sent++
		if !hit || m.at.after {
			sent = append(sent, b)
			m.keep()
		}
		if hit {
			m.kill()
			return sent
		}
	}
	if m.dying {
		m.kill()
	}
	return sent
}

// restartRun is an exchange of a host with a deployed node: two messages in one direction. The host's process is killed
// at a moment, and the program of the next process makes the calls that match the remaining calls of the node.
type restartRun struct {
	kind    string // of node
	toNode  bool
	words   int
	at      moment
	down    time.Duration
	later   time.Duration // from the restart to the first call of the program
	restore bool
	lost    bool // the kept state is lost
}

func (r restartRun) String() string {
	direction := "receives"
	if r.toNode {
		direction = "sends"
	}
	return fmt.Sprintf("%s %s %d words, killed %v, up after %v, calls %v later", direction, r.kind, r.words, r.at,
		r.down, r.later)
}

// restartEnd is the outcome of a run.
type restartEnd struct {
	killed bool
	// errs are the errors of the new process's calls, waited the longest duration of one of its calls, and pending the
	// number of calls of both sides that are not done.
	errs    []error
	waited  time.Duration
	pending int
	// dead is the reason why the new process considers the node to be in a dead end, or nil.
	dead error
	// kept is the state that the first process kept.
	kept handshake.SavedState
	// wrong describes delivered data that was not sent, or a false conclusion.
	wrong string
	log   []sentAt
}

const restartLimit = 2 * time.Minute

func (r restartRun) run() restartEnd {
	var node *party
	rules := handshake.FPGAPeer(1)
	switch r.kind {
	case "fpga":
		node = newFPGA(1, 0).party()
	case "cpu":
		rules, node = handshake.CPUPeer(), newCPU(1, 0).party()
	case "software":
		rules = handshake.SoftwarePeer()
		node = newRank(handshake.Config{Local: 1, Peer: rules, Timing: handshake.DefaultTiming(rules)}).party()
	}
	cfg := hostTo(1, rules)
	m := &mortal{rank: newRank(cfg), cfg: cfg, at: r.at, down: r.down, restore: r.restore, lost: r.lost}
	if r.restore {
		m.pair.Restore(0, handshake.SavedState{})
	}
	data := [][]byte{pattern(r.words, 1), pattern(r.words, 2)}
	there := make([]func() result, len(data))
	first := make([]*simOp, len(data))
	for i, d := range data {
		if r.toNode {
			there[i], first[i] = node.recv(r.words), m.postSend(d)
		} else {
			there[i], first[i] = node.send(d), m.postRecv(r.words)
		}
	}
	var ops []*simOp // of the new process
	begin, skipped := time.Duration(0), 0
	m.again = func(now time.Duration) {
		begin = now + r.later
		for i, d := range data {
			if done := there[i]().done; done || !r.toNode && first[i].done && !r.lost {
				skipped++
				continue
			}
			var op *simOp
			if r.toNode {
				op = m.postSend(d)
			} else {
				op = m.postRecv(r.words)
			}
			op.after = begin
			ops = append(ops, op)
		}
	}
	m.w = newWorld(m, node, nil)
	end := restartEnd{}
	done := make([]time.Duration, len(data))
	for m.w.now < restartLimit {
		m.w.run(m.w.now + 100*ms)
		for i, op := range ops {
			if op.done && done[i] == 0 {
				done[i] = m.w.now
			}
		}
	}
	end.killed, end.log, end.kept = m.reborn, m.w.log, m.firstKept
	previous := begin
	for i, op := range ops {
		if there[skipped+i]().err != nil && !op.done {
			break
		}
		if !op.done {
			end.pending++
			continue
		}
		end.waited = max(end.waited, done[i]-previous)
		previous = done[i]
		if op.err != nil {
			end.errs = append(end.errs, op.err)
			continue
		}
		got := there[skipped+i]()
		if got.err != nil { // a rank of zrlmpid ended the call with an error by itself
			break
		}
		if r.toNode && (!got.done || !bytes.Equal(got.data, data[skipped+i])) {
			end.wrong = fmt.Sprintf("message %d was sent; the node has it: %v", skipped+i, got.done)
		}
		if !r.toNode && !bytes.Equal(op.data, data[skipped+i]) {
			end.wrong = fmt.Sprintf("message %d was received, with other words", skipped+i)
		}
	}
	for i := range data {
		got := there[i]()
		if got.err != nil {
			break
		}
		if r.toNode && got.done && !bytes.Equal(got.data, data[i]) {
			end.wrong = fmt.Sprintf("the node has received other words as message %d", i)
		}
	}
	if node.broken() != "" {
		end.pending++
	}
	if dead := m.pair.DeadEnd(); dead != nil {
		end.dead = dead
	}
	return end
}

// moments returns all moments of a run without a restart.
func (r restartRun) moments() (all []moment) {
	r.at = moment{nth: -1}
	counts := [2]int{}
	for _, s := range r.run().log {
		counts[s.from]++
	}
	for out, n := range counts {
		for nth := range n {
			all = append(all, moment{out == 0, false, nth}, moment{out == 0, true, nth})
		}
	}
	return all
}

// namesRestart reports whether an error names a restart as its cause.
func namesRestart(err error) bool { return errors.Is(err, handshake.ErrRestart) }

// Verdicts of a run.
const (
	right   = "right"
	named   = "error that names the restart"
	forever = "waits forever"
)

func (e *restartEnd) verdict() string {
	switch {
	case e.wrong != "":
		return "WRONG: " + e.wrong
	case e.waited > 30*time.Second:
		return "an error after more than 30 s"
	case len(e.errs) > 0 && namesRestart(e.errs[0]):
		return named
	case len(e.errs) > 0:
		return "other error: " + e.errs[0].Error()
	case e.pending > 0 && namesRestart(e.dead): // and its program makes no call that could return it
		return named
	case e.pending > 0:
		return forever
	}
	return right
}

// eachRestart calls f with all runs of a kind of node.
func eachRestart(kind string, restore, lost bool, f func(r restartRun, end restartEnd)) {
	for _, toNode := range []bool{true, false} {
		for _, words := range []int{1, 346, 1000} {
			r := restartRun{kind: kind, toNode: toNode, words: words, restore: restore, lost: lost}
			for _, r.at = range r.moments() {
				for _, r.down = range []time.Duration{50 * ms, 1500 * ms, 5 * time.Second} {
					for _, r.later = range []time.Duration{0, 300 * ms, 2 * time.Second, 4 * time.Second,
						6 * time.Second} {
						f(r, r.run())
					}
				}
			}
		}
	}
}

// TestRestart: whenever the process of a rank is killed, and however soon it and its program are back, every call of
// the new program succeeds, or ends within 30 s with an error that names the restart, and nobody draws a false
// conclusion. A peer that sent its last packet before the process was back, of a message of which no state could be
// kept, is not noticed.
func TestRestart(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fpga", "cpu", "software"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tally := map[string]int{}
			eachRestart(kind, !*forgetful, false, func(r restartRun, end restartEnd) {
				v := end.verdict()
				tally[fmt.Sprintf("up after %v: %.28s", r.down, v)]++
				unknown := !r.toNode && r.down > 4*time.Second && end.kept.In.Progress == handshake.NoMessage
				if v != right && v != named && !(v == forever && unknown) && !*forgetful {
					t.Errorf("%v: %s", r, v)
				}
				if !end.killed {
					t.Errorf("%v: not killed", r)
				}
			})
			for _, what := range slices.Sorted(maps.Keys(tally)) {
				t.Logf("%5d %s", tally[what], what)
			}
		})
	}
}

// TestRestartWithoutState: if the kept state is lost, a message is received if its sender retransmits it twice, and a
// CLEAR_TO_SEND that comes twice is answered. Nobody draws a false conclusion.
func TestRestartWithoutState(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"fpga", "cpu", "software"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			tally := map[string]int{}
			eachRestart(kind, true, true, func(r restartRun, end restartEnd) {
				v := end.verdict()
				tally[fmt.Sprintf("up after %v: %.28s", r.down, v)]++
				early := r.down+r.later < 400*ms && !(r.toNode && r.words > 346) // it may be in mid-message
				if v != right && (early || v != named && v != forever) {
					t.Errorf("%v: %s", r, v)
				}
			})
			for _, what := range slices.Sorted(maps.Keys(tally)) {
				t.Logf("%5d %s", tally[what], what)
			}
		})
	}
}

// TestUnclearedData: DATA that a process has not cleared is received only if it comes again at its sender's spacing, or
// if the kept state shows that it was cleared; and never if the kept state shows that it was acknowledged.
func TestUnclearedData(t *testing.T) {
	rules := handshake.FPGAPeer(1)
	h := protocol.Header{Src: 1, Type: protocol.Data, Size: 5}
	data := append(protocol.CloudFPGA.Append(nil, h), append(pattern(5, 1), 0, 0, 0, 0)...)
	cleared := handshake.SavedState{In: handshake.SavedMessage{Progress: handshake.Cleared}}
	acknowledged := newRank(hostTo(1, rules))
	acknowledged.postRecv(5)
	acknowledged.start(0)
	request := protocol.Header{Src: 1, Type: protocol.SendRequest}
	acknowledged.datagram(0, protocol.CloudFPGA.Append(nil, request))
	acknowledged.datagram(0, data)
	for _, tt := range []struct {
		name string
		kept handshake.SavedState
		at   []time.Duration
		want bool
	}{
		{"once", handshake.SavedState{}, []time.Duration{0}, false},
		{"a copy", handshake.SavedState{}, []time.Duration{0, 5 * ms, 150 * ms}, false},
		{"again", handshake.SavedState{}, []time.Duration{0, 203 * ms}, true},
		{"cleared", cleared, []time.Duration{0}, true},
		{"acknowledged", acknowledged.pair.SavedState(), []time.Duration{0, 203 * ms, 1400 * ms}, false},
	} {
		r := newRank(hostTo(1, rules))
		r.pair.Restore(0, tt.kept)
		op := r.postRecv(5)
		r.start(0)
		for _, at := range tt.at {
			r.datagram(at, data)
		}
		if op.done != tt.want {
			t.Errorf("%s: received %v", tt.name, op.done)
		}
	}
}

// TestSavedDeadEnd: a dead end is kept, and ends when the peer shows that it continues, or by Reset.
func TestSavedDeadEnd(t *testing.T) {
	for _, kept := range []handshake.SavedState{{DeadEnd: true, DeadOnSend: true, DeadWords: 1000},
		{DeadEnd: true, Rebooted: true}} {
		for name, end := range map[string]func(r *rank){
			"reset": func(r *rank) { r.pair.Reset() },
			"asks": func(r *rank) {
				for _, at := range []time.Duration{0, 102 * ms} {
					r.datagram(at, protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: protocol.SendRequest}))
				}
			},
		} {
			r := newRank(hostTo(1, handshake.FPGAPeer(1)))
			r.pair.Restore(0, kept)
			first := r.postSend(pattern(1, 1))
			r.start(0)
			if !namesRestart(first.err) || !errors.Is(first.err, handshake.ErrDeadEnd) {
				t.Errorf("%s, %+v: %v", name, kept, first.err)
			}
			if k := r.pair.SavedState(); k.DeadEnd != kept.DeadEnd || k.DeadOnSend != kept.DeadOnSend ||
				k.DeadWords != kept.DeadWords {
				t.Errorf("%s, %+v: then %+v is kept", name, kept, k)
			}
			end(r)
			second := r.postSend(pattern(1, 2))
			r.start(0)
			if second.err != nil || r.pair.SavedState().DeadEnd {
				t.Errorf("%s, %+v: %v, and %+v is kept", name, kept, second.err, r.pair.SavedState())
			}
		}
	}
}

// TestRestartInMidMessage: while an FPGA may be in the middle of a message of an earlier process, a SEND_REQUEST that
// may be a late copy is not answered, and nothing is sent. A real one comes again, or later than any copy.
func TestRestartInMidMessage(t *testing.T) {
	kept := handshake.SavedState{Out: handshake.SavedMessage{Progress: handshake.Cleared, Words: 1000}}
	request := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: protocol.SendRequest})
	acknowledged := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt})
	for name, tt := range map[string]struct {
		requests []time.Duration
		acked    time.Duration
		want     bool
	}{
		"a copy":            {[]time.Duration{60 * ms, 65 * ms}, 0, false},
		"again":             {[]time.Duration{60 * ms, 163 * ms}, 0, true},
		"late":              {[]time.Duration{1001 * ms}, 0, true},
		"overtaken by ACK":  {[]time.Duration{60 * ms}, 61 * ms, true},
		"which it overtook": {[]time.Duration{60 * ms}, 59 * ms, true},
	} {
		for _, posted := range []bool{true, false} {
			r := newRank(hostTo(1, handshake.FPGAPeer(1)))
			r.pair.Restore(50*ms, kept)
			send := r.postSend(pattern(1, 1))
			var recv *simOp
			if posted {
				recv = r.postRecv(1)
			}
			r.start(50 * ms)
			ack := func(from, to time.Duration) {
				if from < tt.acked && tt.acked <= to {
					r.datagram(tt.acked, acknowledged)
				}
			}
			now := 50 * ms
			for _, at := range tt.requests {
				ack(now, at)
				now = at
				r.datagram(now, request)
			}
			ack(now, now+time.Second)
			if _, _, asked := r.pair.Deferred(); asked != (tt.want && !posted) {
				t.Errorf("%s, posted %v: it has asked to send: %v", name, posted, asked)
			}
			if out := r.out(); len(out) > 0 != tt.want {
				t.Errorf("%s, posted %v: %d packets were sent", name, posted, len(out))
			}
			if tt.want {
				continue
			}
			r.tick(now + time.Minute)
			if !namesRestart(send.err) || recv != nil && !namesRestart(recv.err) {
				t.Errorf("%s, posted %v: %v", name, posted, send.err)
			}
		}
	}
}

// TestSavedBeforeAck: if a process ends before it has sent an ACK, its peer waits forever after its last
// retransmission. If it has sent the ACK, the peer does not.
func TestSavedBeforeAck(t *testing.T) {
	rules := handshake.FPGAPeer(1)
	earlier := newRank(hostTo(1, rules))
	earlier.postRecv(5)
	earlier.start(0)
	earlier.datagram(0, protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: protocol.SendRequest}))
	data := append(protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: protocol.Data, Size: 5}),
		append(pattern(5, 1), 0, 0, 0, 0)...)
	earlier.datagram(0, data)
	sent := earlier.pair.SavedState()
	unsent := sent.BeforeSending(protocol.Header{Type: protocol.Ack})
	for name, tt := range map[string]struct {
		kept handshake.SavedState
		data []time.Duration
		want bool // an error
	}{
		"sent":               {sent, nil, false},
		"not sent":           {unsent, nil, true},
		"asked for again":    {unsent, []time.Duration{1450 * ms}, false},
		"a copy of the DATA": {unsent, []time.Duration{150 * ms}, true},
	} {
		r := newRank(hostTo(1, rules))
		r.pair.Restore(50*ms, tt.kept)
		op := r.postRecv(5)
		r.start(50 * ms)
		for _, at := range tt.data {
			r.tick(at)
			r.datagram(at, data)
		}
		r.tick(time.Minute)
		if op.done != tt.want || tt.want && !namesRestart(op.err) {
			t.Errorf("%s: %v, %v", name, op.done, op.err)
		}
	}
}
