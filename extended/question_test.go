package extended

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// isQuestion and isReport recognize packets of E53.
func isQuestion(b []byte) bool {
	h := headerOf(b)
	_, ok := h.Question()
	return ok
}

func isReport(b []byte) bool {
	h := headerOf(b)
	_, ok := h.Report()
	return ok
}

// count counts the packets of a kind in a world.
func (w *world) count(of func([]byte) bool, then func(nth int, b []byte) []fate) *int {
	n := new(int)
	before := w.fault
	w.fault = func(from, nth int, b []byte) []fate {
		if !of(b) {
			return before(from, nth, b)
		}
		*n++
		return then(*n, b)
	}
	return n
}

func arrives(int, []byte) []fate { return onTime }

// A rank answers a question with its report, whatever its length and the limit of the path, and whether or not the two
// have exchanged anything before (E53).
func TestQuestion(t *testing.T) {
	for _, x := range []struct {
		what    string
		cfg     Config
		report  int
		met     bool
		packets int
	}{
		{"a byte", Config{}, 1, true, 1},
		{"a part", Config{}, maxReportPart, true, 1},
		{"more than a part", Config{}, maxReportPart + 1, true, 2},
		{"the most", Config{}, MaxReport, true, 8},
		{"on a short path", Config{MaxPayload: 101}, 1000, true, 11},
		{"on the shortest", Config{MaxPayload: 1}, 20, true, 3},
		{"without a session", Config{}, 3000, false, 3},
		{"over TCP", Config{Reliable: true}, 3000, true, 3},
		{"in memory", Config{Reliable: true, HeaderChecksum: true, ShortHeaders: true, MaxPayload: 32768}, 3000, false,
			3},
	} {
		t.Run(x.what, func(t *testing.T) {
			w := newWorld(x.cfg)
			want := string(pattern(x.report, 1))
			w.nodes[1].report = func() []byte { return []byte(want) }
			if x.met {
				w.nodes[0].send([]byte{1}, SendOp{})
				w.nodes[1].recv(0, 1)
				w.run(time.Second)
			}
			questions, parts := w.count(isQuestion, arrives), w.count(isReport, arrives)
			begun := w.now
			w.nodes[0].ask()
			w.nodes[0].ask() // the same question
			w.run(time.Minute)
			got := w.nodes[0].asked
			if len(got) != 1 || got[0].text != want || got[0].err != nil || got[0].at-begun > 10*time.Millisecond {
				t.Errorf("%+v", got)
			}
			if *questions != 1 || *parts != x.packets {
				t.Errorf("%d questions, %d parts", *questions, *parts)
			}
			if err := errors.Join(w.err(), quiet(w.nodes[0]), quiet(w.nodes[1])); err != nil {
				t.Error(err)
			}
		})
	}
}

// After the loss of a question or of a part of a report, the question is repeated, but no more than three times in
// all (E53).
func TestLostQuestions(t *testing.T) {
	const two = maxReportPart + 8 // a report of two parts
	for _, x := range []struct {
		what             string
		questions, parts []int // the lost ones; 0: all
		sentParts, sentQ int
		within           time.Duration
		err              error
		dumb, older      bool
	}{
		{what: "a question", questions: []int{1}, sentQ: 2, sentParts: 2, within: questionInterval + 10*time.Millisecond},
		{what: "two questions", questions: []int{1, 2}, sentQ: 3, sentParts: 2,
			within: 2*questionInterval + 10*time.Millisecond},
		{what: "a part", parts: []int{2}, sentQ: 2, sentParts: 4, within: questionInterval + 10*time.Millisecond},
		{what: "other parts", parts: []int{2, 3}, sentQ: 3, sentParts: 6,
			within: 2*questionInterval + 10*time.Millisecond},
		{what: "all questions", questions: []int{0}, sentQ: maxQuestions, within: questionTimeout, err: ErrNoReport},
		{what: "all parts", parts: []int{0}, sentQ: maxQuestions, sentParts: 6, within: questionTimeout, err: ErrNoReport},
		{what: "no report is made", dumb: true, sentQ: maxQuestions, within: questionTimeout, err: ErrNoReport},
		{what: "an older version", older: true, sentQ: olderEchoes, within: questionInterval + 10*time.Millisecond,
			err: ErrNoQuestions},
	} {
		t.Run(x.what, func(t *testing.T) {
			w := newWorld(Config{})
			loses := func(of []int) func(int, []byte) []fate {
				return func(nth int, _ []byte) []fate {
					for _, n := range of {
						if n == 0 || n == nth {
							return nil
						}
					}
					return onTime
				}
			}
			want := string(pattern(two, 1))
			if !x.dumb {
				w.nodes[1].report = func() []byte { return []byte(want) }
			}
			w.nodes[0].send([]byte{1}, SendOp{})
			w.nodes[1].recv(0, 1)
			w.run(time.Second)
			questions, parts := w.count(isQuestion, loses(x.questions)), w.count(isReport, loses(x.parts))
			if x.older { // an older version ignores the tag of an ACK
				questions = w.count(isQuestion, func(_ int, b []byte) []fate {
					h, payload, _ := protocol.ParseExtended(b)
					h.Tag = 0
					w.arrive(0, protocol.AppendExtended(nil, &h, payload), 0)
					return nil
				})
			}
			begun := w.now
			w.nodes[0].ask()
			w.run(time.Minute)
			got := w.nodes[0].asked
			if len(got) != 1 || !errors.Is(got[0].err, x.err) || x.err == nil && got[0].text != want ||
				got[0].at-begun > x.within {
				t.Errorf("%d answers, %v, after %v", len(got), got[0].err, got[0].at-begun)
			}
			if *questions != x.sentQ || *parts != x.sentParts {
				t.Errorf("%d questions, %d parts", *questions, *parts)
			}
			if err := errors.Join(w.err(), quiet(w.nodes[0]), quiet(w.nodes[1])); err != nil {
				t.Error(err)
			}
		})
	}
}

// A peer that does not exist is asked for a session only, and no longer than a question lasts.
func TestQuestionToNobody(t *testing.T) {
	w := newWorld(Config{})
	w.fault = func(_, _ int, b []byte) []fate {
		if isQuestion(b) {
			t.Error("a question without a session")
		}
		return nil
	}
	w.nodes[0].ask()
	w.run(time.Minute)
	if got := w.nodes[0].asked; len(got) != 1 || !errors.Is(got[0].err, ErrNoReport) || w.now > questionTimeout {
		t.Errorf("%+v at %v", got, w.now)
	}
	w.nodes[0].ask()
	n := w.nodes[0]
	n.acts = n.conn.Close(w.now, n.acts)
	n.do()
	if len(n.asked) != 2 || !errors.Is(n.asked[1].err, ErrNoReport) {
		t.Errorf("closed: %+v", n.asked)
	}
	n.ask()
	w.run(2 * time.Minute)
	if len(n.asked) != 2 {
		t.Errorf("after close: %+v", n.asked)
	}
}

// A peer that asks continuously is answered every 100 ms (E53).
func TestQuestionsAreLimited(t *testing.T) {
	s := meet(t, Config{})
	question := func(number uint32) bool {
		h := protocol.ExtHeader{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello,
			Session:     scriptedSession,
			PeerSession: s.c.session.local, Acknowledged: s.c.path.flight.base, Clock: 7, Tag: number}
		payload := protocol.AppendAck(nil, &protocol.AckInfo{MessageLimit: 65537, EagerLimit: 1 << 20})
		s.last = s.c.Packet(s.now, protocol.AppendExtended(nil, &h, payload), nil)
		return s.count(Question) == 1
	}
	answers := 0
	for number := uint32(1); s.now < 2*time.Second; number++ {
		if question(number) {
			answers++
			s.last = s.c.AnswerReport(make([]byte, 5000), nil)
			if n := s.count(TransmitAck); n != 5 || s.last[4].Header.Tag != number || s.last[4].Header.Offset != 4096 ||
				s.last[4].Header.Length != 5000 {
				t.Fatalf("%d parts, %+v", n, s.last)
			}
			if s.last = s.c.AnswerReport(make([]byte, 5000), nil); len(s.last) != 0 {
				t.Fatal("answered twice")
			}
		}
		if s.flush(); s.count(TransmitAck) != 0 {
			t.Fatalf("a question is answered as a HELLO: %v", &s.last[0].Header)
		}
		s.now += 7 * time.Millisecond
	}
	if answers < 9 || answers > 10 {
		t.Errorf("%d answers in a second", answers)
	}
}

// Parts that do not fit are dropped, and do not determine the memory used.
func TestForgedReports(t *testing.T) {
	s := meet(t, Config{})
	part := func(number, offset, length uint32, bytes int) protocol.ExtHeader {
		h := protocol.ExtHeader{Type: protocol.Ack, Call: protocol.RecvInt, Tag: number, Offset: offset, Length: length}
		s.put(h, bytes)
		return h
	}
	part(1, 0, 8, 8)
	s.want("nothing was asked", ReasonStale, 0)
	s.c.AskReport(s.now, nil)
	s.flush()
	number := s.c.reports.questionNumber
	part(number, 0, 16, 8)
	s.want("the first part", ReasonNone, 0)
	for _, x := range []struct {
		what                   string
		number, offset, length uint32
		bytes                  int
		reason                 Reason
	}{
		{"another question", number + 1, 8, 16, 8, ReasonStale},
		{"another length", number, 8, 24, 8, ReasonMismatch},
		{"beyond the length", number, 8, 16, 16, ReasonMismatch},
		{"beyond all", number, 1<<32 - 8, 16, 8, ReasonMismatch},
		{"no multiple of 8", number, 9, 16, 7, ReasonMismatch},
		{"a hole", number, 0, 16, 9, ReasonMismatch},
		{"nothing", number, 8, 16, 0, ReasonMismatch},
	} {
		part(x.number, x.offset, x.length, x.bytes)
		s.want(x.what, x.reason, 0)
	}
	part(number, 0, 16, 8)
	s.want("a duplicate", ReasonNone, 0)
	if s.count(Report) != 0 {
		t.Error("a part is missing, and there is a report")
	}
	part(number, 8, 16, 8)
	if s.count(Report) != 1 {
		t.Error("there is no report")
	}
	part(number, 8, 16, 8)
	s.want("a duplicate after the last part", ReasonStale, 0)
	s.c.AskReport(s.now, nil)
	s.flush()
	part(s.c.reports.questionNumber, 0, MaxReport+8, 8)
	s.want("longer than a report is", ReasonMismatch, 0)
	if s.c.reports.buf != nil {
		t.Errorf("a buffer of %d bytes for nothing", len(s.c.reports.buf))
	}
	part(s.c.reports.questionNumber, 0, 16, 8)
	if len(s.c.reports.buf) != MaxReport {
		t.Errorf("a buffer of %d bytes", len(s.c.reports.buf))
	}
}

// Every question ends exactly once, with or without the report, whatever faults the network has, even if the peer is
// restarted meanwhile.
func TestQuestionsInBadWeather(t *testing.T) {
	reports := 0
	for seed := range 300 {
		rng := rand.New(rand.NewPCG(uint64(seed), 9))
		cfg := randomConfig(rng)
		cfg.HeaderChecksum = false
		w := newWorld(cfg)
		wt := weather{loss: pick(rng, 0, 0.1, 0.5), dup: pick(rng, 0, 0.3), late: pick(rng, 0, 0.3),
			flip: pick(rng, 0, 0.01), delay: pick(rng, time.Millisecond, 400*time.Millisecond)}
		w.fault = wt.fault(rng)
		want := string(pattern(1+rng.IntN(MaxReport), uint64(seed)))
		answer := func() []byte { return []byte(want) }
		w.nodes[1].report = answer
		plan(w, rng, 0, 5, time.Second)
		for i := range 5 {
			w.at(time.Duration(i)*2*time.Second, 0, func() { w.nodes[0].ask() })
		}
		if seed%4 == 0 {
			w.at(time.Duration(rng.IntN(10))*time.Second, 1, func() { w.start(1, cfg).report = answer })
		}
		w.run(3 * time.Hour)
		n := w.nodes[0]
		if len(n.asked) != 5 || n.conn.reports.isAsking() {
			t.Fatalf("world %d: %d of 5 questions are done", seed, len(n.asked))
		}
		for i, a := range n.asked {
			if a.err == nil {
				reports++
			}
			if a.err == nil && a.text != want || a.err != nil && !errors.Is(a.err, ErrNoReport) ||
				a.at > time.Duration(2*i+1)*time.Second {
				t.Fatalf("world %d: question %d: %d bytes, %v at %v", seed, i, len(a.text), a.err, a.at)
			}
		}
	}
	if reports < 500 {
		t.Errorf("%d reports", reports)
	}
}
