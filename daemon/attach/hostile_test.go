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
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

func TestHostileHello(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(2, 0), Options{HelloTimeout: 200 * time.Millisecond})
	change := func(at int, b byte) []byte {
		frame := wire.HelloFrame(wire.Hello{Version: wire.Version})
		frame[at] = b
		return frame
	}
	for _, tt := range []struct {
		name   string
		bytes  []byte
		reason wire.Reason
		text   string
	}{
		{"HTTP", []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), wire.Violation, "the first frame is not HELLO"},
		{"another frame", wire.AppendID(nil, wire.FrameCancel, 1, 0), wire.Violation, "the first frame is not HELLO"},
		{"magic", change(wire.FrameHeaderLen, 'X'), wire.Violation, "instead of"},
		{"reserved", change(5, 1), wire.Violation, "are not zero"},
		{"too long", change(2, 1), wire.Violation, "the first frame is not HELLO"},
		{"version", change(wire.FrameHeaderLen+8, wire.Version+1), wire.WrongVersion, "of the same release"},
		{"shorter, of an older version",
			append(wire.AppendHeader(nil, wire.FrameHello, 12), "ZRLMPIAT\x01\x00\x00\x00"...), wire.WrongVersion,
			"version 1 of"},
		{"longer, of a newer version",
			append(append(wire.AppendHeader(nil, wire.FrameHello, 40), "ZRLMPIAT\x06\x00\x00\x00"...),
				make([]byte, 28)...), wire.WrongVersion, "version 6 of"},
		{"too short", append(wire.AppendHeader(nil, wire.FrameHello, 12), "ZRLMPIAT\x05\x00\x00\x00"...),
			wire.Violation, "HELLO is 8 bytes too short"},
		{"length in the other byte order",
			[]byte("\x00\x00\x00\x14\x01\x00\x00\x00ZRLMPIAT\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00"),
			wire.Violation, "HELLO has its length, 20, in big-endian byte order"},
		{"version in the other byte order",
			append(wire.AppendHeader(nil, wire.FrameHello, wire.HelloLen),
				"ZRLMPIAT\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00"...), wire.Violation,
			"HELLO has its version, 5, in big-endian byte order"},
		{"flags", change(wire.FrameHeaderLen+16, 4), wire.Violation, "HELLO with flags"},
		{"rank", change(wire.FrameHeaderLen+12, 1), wire.NoRank, "ranks to attach to: [0]"},
		{"nothing", nil, wire.Late, "no HELLO received"},
		{"half a header", make([]byte, 3), wire.Late, "no HELLO received"},
		{"half a frame", change(0, wire.HelloLen)[:wire.FrameHeaderLen+5], wire.Late, "no HELLO received"},
	} {
		c := h.connect(t)
		c.Write(tt.bytes)
		if e := c.ReadRefusal(); e.Reason != tt.reason || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
	attachtest.Wait(t, attachtest.Send(t, h.dial(t, 0), 1, 0, []byte("well")))
}

func TestHostileFrames(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	frame := func(typ wire.FrameType, length int, body string) []byte {
		return append(wire.AppendHeader(nil, typ, length), body...)
	}
	s := func(change func(*wire.Start)) []byte {
		st := attachtest.SendStart(1, 4)
		change(&st)
		return attachtest.StartFrame(st, nil)
	}
	for _, tt := range []struct {
		name  string
		bytes []byte
		text  string
	}{
		{"unknown frame", frame(77, 0, ""), "frame(77) is not a frame that an attached program sends"},
		{"frame of the daemon", frame(wire.FrameDone, 0, ""), "DONE is not a frame that an attached program sends"},
		{"second HELLO", wire.HelloFrame(wire.Hello{Version: wire.Version}), "HELLO is not"},
		{"huge frame", frame(wire.FrameData, math.MaxUint32, ""), "a frame has 327680 at most"},
		{"reserved bytes", []byte{0, 0, 0, 0, byte(wire.FrameBye), 0, 1, 0}, "are not zero"},
		{"short START", frame(wire.FrameStart, 5, "12345"), "START is 27 bytes too short"},
		{"unknown kind", s(func(s *wire.Start) { s.Kind = 9 }), "START of kind 9"},
		{"kind 0", s(func(s *wire.Start) { s.Kind = 0 }), "START of kind 0"},
		{"unknown datatype", s(func(s *wire.Start) { s.Datatype = 2 }), "datatype 2"},
		{"unknown flag", func() []byte {
			b := attachtest.StartFrame(attachtest.SendStart(1, 4), nil)
			b[wire.FrameHeaderLen+10] = 4
			return b
		}(), "START with flags"},
		{"receive with payload", attachtest.StartFrame(attachtest.RecvStart(1, 4), []byte("abcd")),
			"START of a receive is followed by 4 bytes"},
		{"payload too long in START", attachtest.StartFrame(attachtest.SendStart(1, 3), []byte("abcd")),
			"START of a send of 3 bytes is followed by 4"},
		{"payload too long in DATA",
			append(attachtest.StartFrame(attachtest.SendStart(1, 5), []byte("abcd")),
				attachtest.DataFrame(1, []byte("ef"))...), "DATA has 2 bytes for operation 1"},
		{"empty DATA", append(attachtest.StartFrame(attachtest.SendStart(1, 5), []byte("abcd")),
			attachtest.DataFrame(1, nil)...), "DATA has 0 bytes"},
		{"piece too long", append(attachtest.StartFrame(attachtest.SendStart(1, 1<<20), nil),
			attachtest.DataFrame(1, make([]byte, wire.ChunkLen+1))...), "in pieces of 262144 at most"},
		{"DATA of a receive", append(attachtest.StartFrame(attachtest.RecvStart(1, 4), nil),
			attachtest.DataFrame(1, []byte("ab"))...), "DATA has 2 bytes for operation 1"},
		{"DATA of no operation", attachtest.DataFrame(5, []byte("of nobody")),
			"DATA has 9 bytes for operation 5, which is not a send or call that expects payload"},
		{"DATA of an operation that is complete",
			append(attachtest.StartFrame(attachtest.SendStart(1, 2), []byte("ab")),
				attachtest.DataFrame(1, []byte("cd"))...), "DATA has 2 bytes for operation 1"},
		{"more DATA than an operation lacked",
			slices.Concat(attachtest.StartFrame(attachtest.SendStart(1, 4), []byte("ab")),
				wire.AppendID(nil, wire.FrameCancel, 1, 0), attachtest.DataFrame(1, []byte("cde"))),
			"DATA has 3 bytes for operation 1, which is not"},
		{"DATA of an operation that lacks no more",
			slices.Concat(attachtest.StartFrame(attachtest.SendStart(1, 4), []byte("ab")),
				wire.AppendID(nil, wire.FrameCancel, 1, 0), attachtest.DataFrame(1, []byte("cd")),
				attachtest.DataFrame(1, []byte("e"))), "DATA has 1 bytes for operation 1, which is not"},
		{"id in use", append(attachtest.StartFrame(attachtest.RecvStart(1, 4), nil),
			attachtest.StartFrame(attachtest.RecvStart(1, 4), nil)...), "id 1, which is in use by another operation"},
		{"id of a send in use", append(attachtest.StartFrame(attachtest.SendStart(1, 4), nil),
			wire.AppendProbe(nil, &wire.Start{ID: 1})...), "id 1, which is in use by another operation"},
		{"PROBE with flags", frame(wire.FrameProbe, wire.ProbeLen,
			"\x00\x00\x00\x00\x00\x00\x00\x00\x04"+strings.Repeat("\x00", 15)), "PROBE with flags"},
		{"PROBE for messages of matched probes",
			wire.AppendProbe(nil, &wire.Start{ID: 1, Operation: mpe.Operation{Comm: mpe.ClaimComm}}),
			"PROBE in communicator 4294967295"},
		{"receive of a message of no matched probe",
			s(func(s *wire.Start) { s.Kind, s.Peer, s.Tag, s.Comm, s.Length = mpe.OpRecv, 1, 1, mpe.ClaimComm, 0 }),
			"which no matched probe returned"},
		{"send to the messages of matched probes", s(func(s *wire.Start) { s.Comm = mpe.ClaimComm }),
			"which no matched probe returned"},
		{"long CANCEL", frame(wire.FrameCancel, wire.IDLen+1, "123456789"), "CANCEL has 1 bytes too many"},
		{"long text", append(frame(wire.FrameAbort, 16+wire.MaxText+1, ""), make([]byte, 16+wire.MaxText+1)...),
			"a text of 4097 bytes"},
		{"short CANCEL", frame(wire.FrameCancel, 0, ""), "CANCEL is 8 bytes too short"},
	} {
		c := h.attach(t, 0)
		// The daemon may close the connection before it has read everything.
		_, _ = c.Conn.Write(tt.bytes)
		if e := c.ReadRefusal(); e.Reason != wire.Violation || !strings.Contains(e.Text, tt.text) {
			t.Errorf("%s: %v: %q", tt.name, e.Reason, e.Text)
		}
	}
	// No other program is affected.
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, []byte("well")))
}

// TestTolerated checks that frames that are late or irrelevant do not count as violations.
func TestTolerated(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	for _, b := range [][]byte{
		wire.AppendID(nil, wire.FrameCancel, 5, 0), wire.AbortFrame(5, mpe.ErrFull),
		attachtest.StartFrame(attachtest.SendStart(3, 10), []byte("ab")), wire.AppendID(nil, wire.FrameCancel, 3, 0),
		attachtest.DataFrame(3, []byte("late")),
	} {
		c.Write(b)
	}
	if d := c.ReadDone(); d.ID != 3 || d.Err == nil {
		t.Errorf("%+v", d)
	}
	c.Write(attachtest.StartFrame(attachtest.SendStart(3, 0), nil))
	if d := c.ReadDone(); d.ID != 3 || d.Err != nil {
		t.Errorf("%+v", d)
	}
}

// TestUnsent checks that a program whose operations have been rejected may send their missing payload, or stop
// sending it. There may be any number of such operations.
func TestUnsent(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: wire.Limits{Operations: 2, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	for id := range uint64(2) {
		c.Write(attachtest.StartFrame(attachtest.RecvStart(id, 4), nil))
	}
	for id := uint64(2); id < 2+2*maxMissing; id++ {
		c.Write(attachtest.StartFrame(attachtest.SendStart(id, 10), []byte("ab")))
		if d := c.ReadDone(); d.ID != id || !errors.Is(d.Err, mpe.ErrFull) {
			t.Fatalf("%+v", d)
		}
		if id%2 == 0 {
			c.Write(attachtest.DataFrame(id, []byte("cde")))
			c.Write(attachtest.DataFrame(id, []byte("fghij")))
		}
	}
	c.Write(callFrame(root(9999, 10), "ab"))
	c.Write(attachtest.DataFrame(9999, []byte("cdefghij")))
	if d := c.ReadDone(); d.ID != 9999 || !errors.Is(d.Err, mpe.ErrFull) {
		t.Errorf("%+v", d)
	}
	var u missingPayload
	for id := range uint64(maxMissing + 1) {
		u.add(id, 1)
	}
	if !u.overflowed || len(u.remaining) != 0 || !u.discard(maxMissing+5, 1) {
		t.Errorf("%+v after %d", u, maxMissing+1)
	}
}

// TestClaims checks that no memory is allocated for bytes that do not arrive.
func TestClaims(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{})
	c := h.attach(t, 0)
	c.Write(attachtest.StartFrame(attachtest.RecvStart(1, 1), nil))
	attachtest.WaitUntil(t, "the receive is posted", func() bool { return h.w.openOps(0) == 1 })
	ses := h.session(0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for id := range uint64(200) {
		c.Write(attachtest.StartFrame(attachtest.SendStart(10+id, 1<<20), []byte("abcd")))
	}
	c.Write(attachtest.StartFrame(attachtest.SendStart(1000, 0), nil))
	attachtest.WaitUntil(t, "they are in progress",
		func() bool { _, bytes := ses.pendingTotals(); return bytes == 200<<20+1 })
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// TestNotReading checks that the daemon stops reading from a program that keeps sending requests without
// reading the answers. Other programs are not affected.
func TestNotReading(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 2), Options{Limits: wire.Limits{Operations: 100, Bytes: 1 << 20}})
	other := h.dial(t, 2)
	c := h.attach(t, 0)
	ended := make(chan int)
	go func() {
		n := 0
		for id := uint64(0); ; id++ {
			if _, err := c.Conn.Write(attachtest.StartFrame(attachtest.RecvStart(id, 4), nil)); err != nil {
				ended <- n
				return
			}
			n++
		}
	}()
	var ses *session
	attachtest.WaitUntil(t, "it is not read any longer", func() bool {
		ses = h.session(0)
		ses.mu.Lock()
		defer ses.mu.Unlock()
		return ses.refusals == maxRefusals
	})
	if n, _ := ses.pendingTotals(); n != 100 {
		t.Errorf("%d operations are in progress", n)
	}
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, []byte("well")))
	c.Conn.Close()
	<-ended
	attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
	if n := h.w.openOps(0); n != 0 {
		t.Errorf("%d operations are left", n)
	}
}

// TestLateReader checks that a program that starts to read late gets all answers.
func TestLateReader(t *testing.T) {
	h := serve(t, newWorld(2, 0), Options{Limits: wire.Limits{Operations: 1, Bytes: 1 << 20}})
	c := h.attach(t, 0)
	const n = 20_000
	go func() {
		for id := range uint64(n) {
			c.Conn.Write(attachtest.StartFrame(attachtest.RecvStart(id, 4), nil))
		}
	}()
	for id := range uint64(n - 1) {
		if d := c.ReadDone(); d.ID != id+1 || d.Err == nil {
			t.Fatalf("%+v, want the refusal of %d", d, id+1)
		}
	}
}
