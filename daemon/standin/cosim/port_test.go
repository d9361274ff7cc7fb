package cosim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// never is the value of StalledSince when no stream is waiting.
var never = [numKinds]uint64{Never, Never, Never, Never}

// bench plays a simulator.
type bench struct {
	t    *testing.T
	port *Port
	// lines and feedbacks contain the records that the role has not accepted yet.
	lines, feedbacks []Record
	handed           []Record // all lines that have been passed to the role
	cycle            uint64
	fifo             uint32
	since            [numKinds]uint64
}

func newBench(t *testing.T, words uint32) *bench {
	return &bench{t: t, port: NewPort(1, 3, words, make([]byte, BufferLen(words))), fifo: 4, since: never}
}

// step performs transfers from the role, one in each cycle. The role accepts the given numbers of lines and
// feedbacks.
func (b *bench) step(lines, feedbacks int, transfers ...Record) error {
	b.t.Helper()
	var s Step
	if err := b.port.PrepareStep(&s, b.fifo); err != nil {
		return err
	}
	for _, r := range s.Records {
		if r.Kind == KindIn {
			b.lines, b.handed = append(b.lines, r), append(b.handed, r)
		} else {
			b.feedbacks = append(b.feedbacks, r)
		}
	}
	if len(b.lines) > int(b.fifo) {
		b.t.Fatalf("%d lines in a FIFO of %d", len(b.lines), b.fifo)
	}
	b.lines, b.feedbacks = b.lines[min(lines, len(b.lines)):], b.feedbacks[min(feedbacks, len(b.feedbacks)):]
	for i := range transfers {
		transfers[i].CycleOffset = uint32(i + 1)
	}
	b.cycle += uint64(len(transfers)) + 1
	return b.port.Advance(&Result{Cycle: b.cycle,
		StreamState: StreamState{Lines: uint32(len(b.lines)), Feedbacks: uint32(len(b.feedbacks)), StalledSince: b.since},
		Records:     transfers})
}

func call(c protocol.Call, words, rank uint32) Record {
	return Record{Kind: KindCall, Keep: uint8(c), Data: uint64(words) | uint64(rank)<<32}
}

// message returns the lines of a message that consists of the words 1, 2, 3, …
func message(words uint32) (records []Record) {
	for i := range messageLines(words) {
		r := Record{Kind: KindOut, Data: uint64(2*i+1) | uint64(2*i+2)<<32, Keep: 0xff, Last: i == messageLines(words)-1}
		records = append(records, r)
	}
	return records
}

func TestPortSends(t *testing.T) {
	for _, words := range []uint32{0, 1, 2, 3, 4, 99} {
		b := newBench(t, 100)
		if err := b.step(0, 0, append([]Record{call(protocol.SendFloat, words, 2)}, message(words)...)...); err != nil {
			t.Fatal(err)
		}
		c, data, ok := b.port.NextCall()
		if !ok || c.Call != protocol.SendFloat || c.Words != words || c.Rank != 2 || len(data) != int(words)*4 ||
			c.Cycle != 1 {
			t.Fatalf("%d words: %v, %d bytes, %v", words, c, len(data), ok)
		}
		for i := range words {
			if v := binary.LittleEndian.Uint32(data[4*i:]); v != i+1 {
				t.Errorf("word %d is %d", i, v)
			}
		}
		if _, _, ok := b.port.NextCall(); ok {
			t.Error("a call is executed twice")
		}
		b.port.CompleteSend(true)
		if err := b.step(0, 0); err != nil || len(b.feedbacks) != 1 || b.feedbacks[0].Data != feedbackOK {
			t.Errorf("feedback %+v, %v", b.feedbacks, err)
		}
		if b.port.IsIdle() {
			t.Error("the role has not taken the feedback")
		}
		if b.step(0, 1); !b.port.IsIdle() {
			t.Error("the call is not done")
		}
	}
}

// TestPortSendFails checks that a failed send is answered with FAIL, and that the role may then send its lines
// again.
func TestPortSendFails(t *testing.T) {
	b := newBench(t, 4)
	b.step(0, 0, append([]Record{call(protocol.SendInt, 4, 0)}, message(4)...)...)
	b.port.NextCall()
	b.port.CompleteSend(false)
	if b.step(0, 1); len(b.feedbacks) != 0 {
		t.Fatalf("feedbacks %+v", b.feedbacks)
	}
	b.step(0, 0, message(4)...)
	if c, _, ok := b.port.NextCall(); !ok || c.Words != 4 {
		t.Errorf("the message is not sent once more: %v", c)
	}
}

// TestPortLinesBeforeCall checks that lines that arrive before their call wait for it, as they do in the FIFO
// of a deployed role.
func TestPortLinesBeforeCall(t *testing.T) {
	b := newBench(t, 4)
	b.step(0, 0, message(3)...)
	if err := b.step(0, 0, call(protocol.SendInt, 3, 0)); err != nil {
		t.Fatal(err)
	}
	if c, data, ok := b.port.NextCall(); !ok || c.Words != 3 || data[8] != 3 {
		t.Errorf("%v, % x", c, data)
	}
}

// TestPortNamesCallsAtOnce checks that a call taken during another one names it, and a send after a receive
// names both.
func TestPortNamesCallsAtOnce(t *testing.T) {
	b := newBench(t, 4)
	b.step(0, 0, call(protocol.RecvInt, 4, 0), call(protocol.RecvInt, 4, 0)) // as from a role that keeps valid set
	b.port.NextCall()
	b.port.CompleteReceive(4)
	b.step(2, 1)
	b.port.NextCall()
	b.step(0, 0, call(protocol.SendInt, 2, 2))
	w := b.port.Wait()
	want := "SEND_INT of 2 words to rank 2 (cycle 5, while RECV_INT of cycle 2 was in progress) waits until the end " +
		"of RECV_INT of 4 words from rank 0 (cycle 2, while RECV_INT of cycle 1 was in progress)"
	if w.Signal != "soMPIif_tdata" || w.Since != 5 || w.Text != want {
		t.Errorf("waits for %+v", w)
	}
	if _, ok := b.port.Overdue(1); ok {
		t.Error("a role may make its next call early")
	}
}

// TestPortQueuesCall checks that a second call waits until the first one is complete, and that a third call is not
// accepted.
func TestPortQueuesCall(t *testing.T) {
	b := newBench(t, 4)
	b.step(0, 0, call(protocol.RecvInt, 4, 0), call(protocol.SendInt, 2, 2))
	b.step(0, 0, message(2)...)
	var s Step
	if b.port.PrepareStep(&s, 4); s.Calls != 0 {
		t.Errorf("capacity for %d calls", s.Calls)
	}
	if c, _, ok := b.port.NextCall(); !ok || c.Call != protocol.RecvInt {
		t.Fatalf("%v", c)
	}
	b.port.CompleteReceive(4)
	b.step(2, 1)
	if c, _, ok := b.port.NextCall(); !ok || c.Call != protocol.SendInt {
		t.Errorf("the second call: %v, %v", c, ok)
	}
	if err := b.step(0, 0, call(protocol.RecvInt, 1, 0), call(protocol.RecvInt, 1, 0)); !errors.Is(err, ErrFrame) {
		t.Errorf("a third call: %v", err)
	}
}

func TestPortReceives(t *testing.T) {
	for _, words := range []uint32{0, 1, 2, 3, 9, 50} {
		b := newBench(t, 100)
		b.step(0, 0, call(protocol.RecvInt, 100, 0))
		_, data, ok := b.port.NextCall()
		if !ok || len(data) != 400 {
			t.Fatalf("buffer of %d bytes", len(data))
		}
		for i := range data {
			data[i] = 0xee // left over from an earlier message
		}
		for i := range words {
			binary.LittleEndian.PutUint32(data[4*i:], i+1)
		}
		b.port.CompleteReceive(words)
		for n := 0; len(b.feedbacks) == 0; n++ {
			if n > 1000 {
				t.Fatal("it does not end")
			}
			if err := b.step(n%4, 0); err != nil {
				t.Fatal(err)
			}
		}
		got := b.handed
		if len(got) != int(messageLines(words)) {
			t.Errorf("%d words: %d lines", words, len(got))
		}
		for i, r := range got {
			want := message(words)[i]
			want.Kind = KindIn
			switch {
			case r.Last && words == 0:
				want.Data, want.Keep = 0, 0
			case r.Last && words%2 == 1:
				want.Data, want.Keep = uint64(words), 0x0f
			}
			if r != want {
				t.Errorf("%d words, line %d: %+v, want %+v", words, i, r, want)
			}
		}
	}
}

func TestPortFaults(t *testing.T) {
	dropsLast := message(4)
	dropsLast[1].Last = false
	early := message(6)
	early[1].Last = true
	short := message(4)
	short[1].Keep = 0x0f
	hole := message(4)
	hole[0].Keep = 0xf7
	send := func(words uint32, lines []Record) []Record {
		return append([]Record{call(protocol.SendInt, words, 0)}, lines...)
	}
	tests := map[string]struct {
		records []Record
		signal  string
		cycle   uint64
		text    string
	}{
		"drops last": {send(4, dropsLast), "soMPI_data_tlast", 3,
			"not set on line 2 of 2 of SEND_INT of 4 words to rank 0 (cycle 1)"},
		"last too early": {send(6, early), "soMPI_data_tlast", 3, "set 2 words too early, on line 2 of 3"},
		"one word short": {send(4, short), "soMPI_data_tkeep", 3, "0x0f, and not 0xff, on line 2 of 2"},
		"hole":           {send(4, hole), "soMPI_data_tkeep", 2, "0xf7, and not 0xff, on line 1 of 2"},
		"no such call":   {[]Record{call(4, 1, 0)}, "soMPIif_tdata", 1, "mpi_call is 4"},
		"no such rank": {[]Record{call(protocol.RecvInt, 1, 3)}, "soMPIif_tdata", 1,
			"rank is 3: the cluster has ranks 0 to 2"},
		"a rank of 32 bit": {[]Record{call(protocol.RecvInt, 1, 1<<32-1)}, "soMPIif_tdata", 1, "rank is 4294967295"},
		"itself":           {[]Record{call(protocol.RecvInt, 1, 1)}, "soMPIif_tdata", 1, "the role's own rank"},
		"too long":         {[]Record{call(protocol.RecvInt, 7, 0)}, "soMPIif_tdata", 1, "raise kernel_options.words"},
	}
	for name, tt := range tests {
		b := newBench(t, 6)
		err := b.step(0, 0, tt.records...)
		f, ok := errors.AsType[*FaultError](err)
		if !ok || f.Signal != tt.signal || f.Cycle != tt.cycle || !strings.Contains(f.Problem, tt.text) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if w := b.port.Wait(); !b.port.IsFaulty() || w.Signal != tt.signal || w.Since != tt.cycle {
			t.Errorf("%s: it waits for %+v", name, w)
		}
		// Nothing else is exchanged or reported.
		if err := b.step(0, 0, message(2)...); err != nil {
			t.Errorf("%s: then %v", name, err)
		}
		if _, _, ok := b.port.NextCall(); ok {
			t.Errorf("%s: a call is executed", name)
		}
		var s Step
		if b.port.PrepareStep(&s, 4); s.Calls != 0 || s.Lines != 0 || len(s.Records) != 0 {
			t.Errorf("%s: then %+v", name, s)
		}
	}
}

func TestPortWaits(t *testing.T) {
	check := func(b *bench, signal string, since uint64, overdue bool, text string) {
		t.Helper()
		w := b.port.Wait()
		if w.Signal != signal || w.Since != since || !strings.Contains(w.Text, text) {
			t.Errorf("waits for %+v", w)
		}
		if _, ok := b.port.Overdue(1); ok != overdue {
			t.Errorf("%+v is overdue: %v", w, ok)
		}
	}
	b := newBench(t, 8)
	b.step(0, 0)
	check(b, "soMPIif_tvalid", 0, false, "the role makes no call")
	b.step(0, 0, call(protocol.SendInt, 4, 0), message(4)[0])
	check(b, "soMPI_data_tvalid", 3, true, "line 2 of 2 of SEND_INT of 4 words to rank 0 (cycle 2)")
	b.step(0, 0, message(4)[1])
	b.port.NextCall()
	check(b, "", 2, false, "SEND_INT of 4 words to rank 0 (cycle 2)")
	b.port.CompleteSend(true)
	b.since[KindFeedback] = 5
	b.step(0, 0)
	check(b, "siMPIFeB_tready", 5, true, "the feedback of SEND_INT")
	b.since[KindFeedback] = Never
	b.step(0, 1, call(protocol.RecvInt, 8, 2))
	b.port.NextCall()
	b.port.CompleteReceive(6)
	b.since[KindIn] = 8
	b.step(1, 0)
	check(b, "siMPI_data_tready", 8, true, "line 2 of 3 of RECV_INT of 8 words from rank 2")
}

func TestPortRefusesAnswers(t *testing.T) {
	for name, s := range map[string]Result{
		"a cycle back":     {Cycle: 4, StreamState: StreamState{StalledSince: never}},
		"unexpected lines": {Cycle: 9, StreamState: StreamState{Lines: 1, StalledSince: never}},
		"feedback":         {Cycle: 9, StreamState: StreamState{Feedbacks: 1, StalledSince: never}},
		"a transfer to come": {Cycle: 9, StreamState: StreamState{StalledSince: never},
			Records: []Record{{Kind: KindOut, CycleOffset: 5}}},
	} {
		p := NewPort(1, 3, 8, make([]byte, BufferLen(8)))
		if err := p.Advance(&Result{Cycle: 5, StreamState: StreamState{StalledSince: never}}); err != nil {
			t.Fatal(err)
		}
		if err := p.Advance(&s); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzPort checks that the port either rejects the transfers of a simulator or stays within its limits.
func FuzzPort(f *testing.F) {
	f.Add([]byte{0, 1, 4, 0, 1, 0xff, 0, 1, 0xff, 1, 2, 0})
	f.Add([]byte{0, 0, 3, 0, 1, 0xff, 0, 1, 0x0f, 1, 2, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		p := NewPort(1, 3, 6, make([]byte, BufferLen(6)))
		var step Step
		cycle, lines, feedbacks := uint64(0), uint32(0), uint32(0)
		for len(b) >= 3 {
			op, x, y := b[0], b[1], b[2]
			b = b[3:]
			cycle++
			s := Result{Cycle: cycle, StreamState: StreamState{StalledSince: never}}
			switch op % 5 {
			case 4:
				s.Records = []Record{{Kind: Kind(x % 4), Rule: Rule(y % uint8(numRules)), Data: uint64(y)}}
				if r := s.Records[0]; !r.Rule.appliesTo(r.Kind) {
					s.Records = nil
				}
			case 0:
				s.Records = []Record{call(protocol.Call(x%6), uint32(y%8), uint32(y>>4))}
			case 1:
				s.Records = []Record{{Kind: KindOut, Keep: x, Last: y%2 == 1}}
			case 2:
				if c, data, ok := p.NextCall(); ok && len(data) != int(c.Words)*4 {
					t.Fatalf("%d bytes for %v", len(data), c)
				} else if ok && c.IsSend() {
					p.CompleteSend(x%2 == 0)
				} else if ok && c.Words > 0 {
					p.CompleteReceive(uint32(x) % c.Words)
				} else if ok {
					p.Retry()
				}
			}
			err := p.PrepareStep(&step, 2)
			for _, r := range step.Records {
				if r.Kind == KindIn {
					lines++
				} else {
					feedbacks++
				}
			}
			if lines > 2 || feedbacks > feedbackFIFO || step.Lines > lineFIFO || step.Calls > 1 {
				t.Fatalf("%d lines, %d feedbacks, %+v", lines, feedbacks, step)
			}
			lines, feedbacks = lines-min(lines, uint32(x%3)), feedbacks-min(feedbacks, uint32(y%2))
			s.Lines, s.Feedbacks = lines, feedbacks
			if err == nil {
				err = p.Advance(&s)
			}
			if _, ok := errors.AsType[*FaultError](err); err != nil && !ok && !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			if errors.Is(err, ErrFrame) {
				return
			}
			_ = fmt.Sprint(p.Wait())
		}
	})
}
