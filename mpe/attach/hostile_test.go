package attach

import (
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

func TestHostileHello(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(2, 0), Options{HelloTime: 200 * time.Millisecond})
	change := func(at int, b byte) []byte {
		frame := helloFrame(hello{version: Version})
		frame[at] = b
		return frame
	}
	for _, tt := range []struct {
		name   string
		bytes  []byte
		reason Reason
		text   string
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), Violation, "the first frame is not HELLO"},
		{"another frame", cancelFrame(1), Violation, "the first frame is not HELLO"},
		{"magic", change(frameHeaderLen, 'X'), Violation, "and not with"},
		{"reserved", change(5, 1), Violation, "are not zero"},
		{"too long", change(2, 1), Violation, "the first frame is not HELLO"},
		{"version", change(frameHeaderLen+8, Version+1), WrongVersion, "of the same release"},
		{"shorter, of an older version", append(appendHeader(nil, frameHello, 12), "ZRLMPIAT\x01\x00\x00\x00"...), WrongVersion, "version 1 of"},
		{"longer, of a newer version", append(append(appendHeader(nil, frameHello, 40), "ZRLMPIAT\x06\x00\x00\x00"...), make([]byte, 28)...), WrongVersion, "version 6 of"},
		{"too short", append(appendHeader(nil, frameHello, 12), "ZRLMPIAT\x05\x00\x00\x00"...), Violation, "HELLO is 8 bytes too short"},
		{"length in the other byte order", []byte("\x00\x00\x00\x14\x01\x00\x00\x00ZRLMPIAT\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00"), Violation, "HELLO has its length, 20, with the most significant byte first"},
		{"version in the other byte order", append(appendHeader(nil, frameHello, helloLen), "ZRLMPIAT\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00"...), Violation, "HELLO has its version, 5, with the most significant byte first"},
		{"flags", change(frameHeaderLen+16, 4), Violation, "HELLO with flags"},
		{"rank", change(frameHeaderLen+12, 1), NoRank, "ranks to attach to: [0]"},
		{"nothing", nil, Late, "no HELLO came"},
		{"half a header", make([]byte, 3), Late, "no HELLO came"},
		{"half a frame", change(0, helloLen)[:frameHeaderLen+5], Late, "no HELLO came"},
	} {
		c := h.connect(t)
		c.write(tt.bytes)
		if e := c.refusal(); e.Reason != tt.reason || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
	wait(t, send(t, h.dial(t, 0), 1, 0, []byte("well")))
}

func TestHostileFrames(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	frame := func(typ frameType, length int, body string) []byte {
		return append(appendHeader(nil, typ, length), body...)
	}
	s := func(change func(*start)) []byte {
		st := sendStart(1, 4)
		change(&st)
		return startFrame(st, nil)
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		text  string
	}{
		{"unknown frame", frame(77, 0, ""), "frame(77) is not a frame that a program sends"},
		{"frame of the daemon", frame(frameDone, 0, ""), "DONE is not a frame that a program sends"},
		{"second HELLO", helloFrame(hello{version: Version}), "HELLO is not"},
		{"huge frame", frame(frameData, math.MaxUint32, ""), "a frame has 327680 at most"},
		{"reserved bytes", []byte{0, 0, 0, 0, byte(frameBye), 0, 1, 0}, "are not zero"},
		{"short START", frame(frameStart, 5, "12345"), "START is 27 bytes too short"},
		{"unknown kind", s(func(s *start) { s.Kind = 9 }), "START of kind 9"},
		{"kind 0", s(func(s *start) { s.Kind = 0 }), "START of kind 0"},
		{"unknown datatype", s(func(s *start) { s.Datatype = 2 }), "datatype 2"},
		{"unknown flag", func() []byte { b := startFrame(sendStart(1, 4), nil); b[frameHeaderLen+10] = 4; return b }(), "START with flags"},
		{"receive with payload", startFrame(recvStart(1, 4), []byte("abcd")), "START of a receive is followed by 4 bytes"},
		{"payload too long in START", startFrame(sendStart(1, 3), []byte("abcd")), "START of a send of 3 bytes is followed by 4"},
		{"payload too long in DATA", append(startFrame(sendStart(1, 5), []byte("abcd")), dataFrame(1, []byte("ef"))...), "DATA has 2 bytes for operation 1"},
		{"empty DATA", append(startFrame(sendStart(1, 5), []byte("abcd")), dataFrame(1, nil)...), "DATA has 0 bytes"},
		{"piece too long", append(startFrame(sendStart(1, 1<<20), nil), dataFrame(1, make([]byte, chunkLen+1))...), "in pieces of 262144 at most"},
		{"DATA of a receive", append(startFrame(recvStart(1, 4), nil), dataFrame(1, []byte("ab"))...), "DATA has 2 bytes for operation 1"},
		{"DATA of no operation", dataFrame(5, []byte("of nobody")), "DATA has 9 bytes for operation 5, which is not a send or a call that lacks them"},
		{"DATA of an operation that is complete", append(startFrame(sendStart(1, 2), []byte("ab")), dataFrame(1, []byte("cd"))...), "DATA has 2 bytes for operation 1"},
		{"more DATA than an operation lacked", slices.Concat(startFrame(sendStart(1, 4), []byte("ab")), cancelFrame(1), dataFrame(1, []byte("cde"))), "DATA has 3 bytes for operation 1, which is not"},
		{"DATA of an operation that lacks no more", slices.Concat(startFrame(sendStart(1, 4), []byte("ab")), cancelFrame(1), dataFrame(1, []byte("cd")), dataFrame(1, []byte("e"))), "DATA has 1 bytes for operation 1, which is not"},
		{"id in use", append(startFrame(recvStart(1, 4), nil), startFrame(recvStart(1, 4), nil)...), "id 1, which another operation has"},
		{"id of a send in use", append(startFrame(sendStart(1, 4), nil), appendProbe(nil, &probe{id: 1})...), "id 1, which another operation has"},
		{"PROBE with flags", frame(frameProbe, probeLen, "\x00\x00\x00\x00\x00\x00\x00\x00\x04"+strings.Repeat("\x00", 15)), "PROBE with flags"},
		{"PROBE for messages of matched probes", appendProbe(nil, &probe{id: 1, Match: mpe.Match{Comm: mpe.ClaimComm}}), "PROBE in communicator 4294967295"},
		{"receive of a message of no matched probe", s(func(s *start) { s.Kind, s.Peer, s.Tag, s.Comm, s.length = mpe.OpRecv, 1, 1, mpe.ClaimComm, 0 }), "which no matched probe has given"},
		{"send to the messages of matched probes", s(func(s *start) { s.Comm = mpe.ClaimComm }), "which no matched probe has given"},
		{"long CANCEL", frame(frameCancel, idLen+1, "123456789"), "CANCEL has 1 bytes too many"},
		{"long text", append(frame(frameAbort, 16+maxText+1, ""), make([]byte, 16+maxText+1)...), "a text of 4097 bytes"},
		{"short CANCEL", frame(frameCancel, 0, ""), "CANCEL is 8 bytes too short"},
	} {
		c := h.attach(t, 0)
		// The daemon may close the connection before it has read all of it.
		_, _ = c.conn.Write(tt.bytes)
		if e := c.refusal(); e.Reason != Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
	// No other program noticed.
	wait(t, send(t, other, 1, 0, []byte("well")))
}

// TestTolerated: what is too late, or of no interest, is no violation.
func TestTolerated(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	for _, b := range [][]byte{
		cancelFrame(5), abortFrame(5, mpe.ErrFull),
		startFrame(sendStart(3, 10), []byte("ab")), cancelFrame(3), dataFrame(3, []byte("late")),
	} {
		c.write(b)
	}
	if d := c.done(); d.id != 3 || d.err == nil {
		t.Errorf("%+v", d)
	}
	c.write(startFrame(sendStart(3, 0), nil))
	if d := c.done(); d.id != 3 || d.err != nil {
		t.Errorf("%+v", d)
	}
}

// TestUnsent: a program may go on to send what an operation lacked that was refused, or stop, however many were.
func TestUnsent(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: Limits{Operations: 2, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	for id := range uint64(2) {
		c.write(startFrame(recvStart(id, 4), nil))
	}
	for id := uint64(2); id < 2+2*maxUnsent; id++ {
		c.write(startFrame(sendStart(id, 10), []byte("ab")))
		if d := c.done(); d.id != id || !errors.Is(d.err, mpe.ErrFull) {
			t.Fatalf("%+v", d)
		}
		if id%2 == 0 {
			c.write(dataFrame(id, []byte("cde")))
			c.write(dataFrame(id, []byte("fghij")))
		}
	}
	c.write(callFrame(root(9999, 10), "ab"))
	c.write(dataFrame(9999, []byte("cdefghij")))
	if d := c.done(); d.id != 9999 || !errors.Is(d.err, mpe.ErrFull) {
		t.Errorf("%+v", d)
	}
	var u unsent
	for id := range uint64(maxUnsent + 1) {
		u.add(id, 1)
	}
	if !u.overflowed || len(u.left) != 0 || !u.take(maxUnsent+5, 1) {
		t.Errorf("%+v after %d", u, maxUnsent+1)
	}
}

// TestClaims: nothing is allocated for bytes that do not come.
func TestClaims(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.write(startFrame(recvStart(1, 1), nil))
	until(t, "the receive is posted", func() bool { return h.w.openOps(0) == 1 })
	ses := h.session(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for id := range uint64(200) {
		c.write(startFrame(sendStart(10+id, 1<<20), []byte("abcd")))
	}
	c.write(startFrame(sendStart(1000, 0), nil))
	until(t, "they are under way", func() bool { _, bytes := ses.underWay(); return bytes == 200<<20+1 })
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// TestNotReading: a program that sends requests without end and does not read the
// answers is not read any longer. It does no harm to others.
func TestNotReading(t *testing.T) {
	noLeak(t)
	h := serve(t, newWorld(3, 0, 2), Options{Limits: Limits{Operations: 100, Bytes: 1 << 20}})
	other := h.dial(t, 2)
	c := h.attach(t, 0)
	ended := make(chan int)
	go func() {
		n := 0
		for id := uint64(0); ; id++ {
			if _, err := c.conn.Write(startFrame(recvStart(id, 4), nil)); err != nil {
				ended <- n
				return
			}
			n++
		}
	}()
	var ses *session
	until(t, "it is not read any longer", func() bool {
		ses = h.session(0)
		ses.mu.Lock()
		defer ses.mu.Unlock()
		return ses.refusals == maxRefusals
	})
	if n, _ := ses.underWay(); n != 100 {
		t.Errorf("%d operations are under way", n)
	}
	wait(t, send(t, other, 1, 0, []byte("well")))
	c.conn.Close()
	<-ended
	until(t, "the rank is free", func() bool { return len(h.server.Attached()) == 1 })
	if n := h.w.openOps(0); n != 0 {
		t.Errorf("%d operations are left", n)
	}
}

// TestLateReader: who reads late gets all answers.
func TestLateReader(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: Limits{Operations: 1, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	const n = 20_000
	go func() {
		for id := range uint64(n) {
			c.conn.Write(startFrame(recvStart(id, 4), nil))
		}
	}()
	for id := range uint64(n - 1) {
		if d := c.done(); d.id != id+1 || d.err == nil {
			t.Fatalf("%+v, want the refusal of %d", d, id+1)
		}
	}
}
