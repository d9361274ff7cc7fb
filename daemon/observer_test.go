package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// fakeObserver returns an observer whose clock the test controls.
func fakeObserver(level zapcore.Level) (o *Observer, logs *observer.ObservedLogs, clock *time.Duration) {
	core, logs := observer.New(level)
	o = newObserver(zap.New(core), func(int, int) protocol.Profile { return protocol.CloudFPGA })
	clock = new(time.Duration)
	o.now = func() time.Duration { return *clock }
	return o, logs, clock
}

// messages returns the lines of a log with their fields, which are sorted by name.
func messages(logs *observer.ObservedLogs) []string {
	var texts []string
	for _, e := range logs.TakeAll() {
		texts = append(texts, fmt.Sprintf("%s %v", e.Message, e.ContextMap()))
	}
	return texts
}

var arrival = &mpe.RxPacket{Peer: 2, SourceAddr: netip.MustParseAddrPort("127.0.0.3:2718"), Bytes: make([]byte, 1416)}

func TestFlood(t *testing.T) {
	o, logs, clock := fakeObserver(zapcore.InfoLevel)
	drop := mpe.Drop{Packet: arrival, Reason: state.DropSourceRank, Header: protocol.Header{Type: protocol.Ack, Src: 1}}
	line := func(rank int, suppressed string) string {
		return fmt.Sprintf("packet dropped map[detail:packet claims source rank 1, but its address belongs to rank "+
			"2: compare the rank maps of both sides "+
			"from:127.0.0.3:2718 packet:%v peer:2 rank:%d reason:source_rank%s]", drop.Header, rank, suppressed)
	}
	for range 4212 {
		o.Dropped(0, 2, drop)
	}
	o.Dropped(1, 2, drop) // another rank has its own line
	*clock += minLineInterval
	o.Dropped(0, 2, drop)
	for range 9 {
		o.Dropped(0, 2, drop)
	}
	o.drain()
	want := []string{line(0, ""), line(1, ""), line(0, " suppressed:4211")}
	if got := messages(logs); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}

	o.flush()
	if got := messages(logs); len(got) != 0 {
		t.Errorf("too early: %q", got)
	}
	*clock += minLineInterval
	o.flush()
	o.flush()
	if got := messages(logs); len(got) != 1 || got[0] != "packet dropped map[rank:0 reason:source_rank suppressed:9]" {
		t.Errorf("after the flood: %q", got)
	}
}

// TestSuppressedError checks that the line about suppressed network errors contains the last of them.
func TestSuppressedError(t *testing.T) {
	o, logs, clock := fakeObserver(zapcore.InfoLevel)
	for _, text := range []string{"no route", "no buffers", "network is down"} {
		o.TransportError(0, errors.New(text))
	}
	o.drain()
	*clock += minLineInterval
	o.flush()
	want := []string{"network error map[error:no route rank:0]",
		"network error map[error:network is down rank:0 suppressed:2]"}
	if got := messages(logs); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFloodCost checks that the packet path does not allocate for the log, no matter whether a line is queued,
// suppressed, lost or below the level of the log.
func TestFloodCost(t *testing.T) {
	drop := mpe.Drop{Reason: state.DropStale, Packet: arrival}
	ext := mpe.Drop{Reason: state.DropSession, Packet: arrival, Extended: &protocol.ExtHeader{}}
	for _, tt := range []struct {
		name  string
		level zapcore.Level
		step  time.Duration
	}{{"suppressed", zapcore.InfoLevel, 0}, {"queued or lost", zapcore.InfoLevel, minLineInterval},
		{"below the level", zapcore.ErrorLevel, minLineInterval}} {
		o, _, clock := fakeObserver(tt.level)
		if n := testing.AllocsPerRun(2*maxQueuedLines, func() {
			*clock += tt.step
			o.Dropped(0, 2, drop)
			o.Dropped(0, 2, ext)
			o.Noted(0, 2, mpe.Note{Event: state.EventReacked})
			o.Done(0, mpe.Status{Peer: 2}, handshake.ErrTimeout)
		}); n != 0 {
			t.Errorf("%s: %v allocations", tt.name, n)
		}
		if lost := o.lost.Load() > 0; lost != (tt.step > 0) {
			t.Errorf("%s: %d lines lost", tt.name, o.lost.Load())
		}
	}
}

// TestSlowLog checks that the engine is not blocked if the log is.
func TestSlowLog(t *testing.T) {
	o, _, clock := fakeObserver(zapcore.InfoLevel)
	for range maxQueuedLines + 5 {
		*clock += minLineInterval
		o.TransportError(0, errors.New("no route"))
	}
	if n := o.lost.Load(); n != 5 {
		t.Errorf("%d lines lost, want 5", n)
	}
}

func TestLines(t *testing.T) {
	packet := make([]byte, protocol.ExtHeaderLen)
	protocol.PutExtended(packet, &protocol.ExtHeader{Type: protocol.Ack, Src: 2})
	for _, tt := range []struct {
		name string
		call func(o *Observer)
		want string // "": no line
	}{
		{"datatype", func(o *Observer) {
			o.Dropped(0, 2, mpe.Drop{Packet: arrival, Reason: state.DropDatatype,
				Header: protocol.Header{Type: protocol.SendRequest, Src: 2, Call: protocol.SendFloat}})
		}, "packet dropped map[detail:call does not match the posted operation: one side uses INT and the other " +
			"FLOAT, or the tags differ from:127.0.0.3:2718 packet:SEND_REQUEST 2→0 SEND_FLOAT"},
		{"extended", func(o *Observer) {
			o.Dropped(0, 2, mpe.Drop{Packet: &mpe.RxPacket{Peer: 2, Bytes: packet}, Reason: state.DropReserved})
		}, "packet dropped map[detail:packet of profile extended, and profile cloudfpga is configured for rank 2 " +
			"here: give both sides the same profile"},
		{"closed connection", func(o *Observer) {
			o.Dropped(0, 2, mpe.Drop{Packet: &mpe.RxPacket{Kind: mpe.RxBroken, Peer: 2, Bytes: []byte("no frame")},
				Reason: state.DropStream})
		}, "packet dropped map[detail:connection closed: no frame peer:2 rank:0 reason:stream]"},
		{"no arrival", func(o *Observer) {
			o.Dropped(0, 2, mpe.Drop{Reason: state.DropGap})
		}, "packet dropped map[detail:payload after a pause that ended its message peer:2 rank:0 reason:gap]"},
		{"unknown", func(o *Observer) {
			o.Dropped(0, mpe.UnknownPeer, mpe.Drop{Packet: arrival, Reason: state.DropUnknownAddress})
		}, "packet dropped map[detail:address is not in the rank map from:127.0.0.3:2718 rank:0 reason:unknown_address]"},
		{"event", func(o *Observer) {
			o.Noted(0, 2, mpe.Note{Event: state.EventRetransmitted,
				Header: protocol.Header{Type: protocol.SendRequest, Dst: 2}})
		}, "packet retransmitted map[event:retransmitted packet:SEND_REQUEST 0→2 SEND_INT peer:2 rank:0]"},
		{"failed receive", func(o *Observer) { o.Done(0, mpe.Status{Peer: 3}, handshake.ErrTimeout) },
			"receive failed map[error:deadline exceeded"},
		{"failed send", func(o *Observer) { o.Done(0, mpe.Status{Peer: 3, Send: true}, handshake.ErrTimeout) },
			"send failed map[error:deadline exceeded"},
		{"success", func(o *Observer) { o.Done(0, mpe.Status{Peer: 3}, nil) }, ""},
		{"cancelled", func(o *Observer) { o.Done(0, mpe.Status{Peer: 3}, context.Canceled) }, ""},
		{"shutting down", func(o *Observer) { o.Done(0, mpe.Status{Peer: 3}, mpe.ErrClosed) }, ""},
		{"answer to no message", func(o *Observer) {
			o.Dropped(0, 2, mpe.Drop{Reason: state.DropUnsolicited,
				Extended: &protocol.ExtHeader{Type: protocol.ClearToSend}})
		}, "packet dropped map[detail:CLEAR_TO_SEND about a message that has not begun"},
		{"network", func(o *Observer) { o.TransportError(0, errors.New("rank 0 cannot send: no route to host")) },
			"network error map[error:rank 0 cannot send: no route to host rank:0]"},
		{"closed", func(o *Observer) { o.TransportError(0, mpe.ErrTransportClosed) }, ""},
	} {
		o, logs, _ := fakeObserver(zapcore.DebugLevel)
		tt.call(o)
		o.drain()
		got := strings.Join(messages(logs), "\n")
		if (tt.want == "") != (got == "") || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
	var basic, ext []string
	for r := handshake.ReasonShort; int(r) < handshake.NumReasons; r++ {
		basic = append(basic, r.String())
	}
	for r := extended.ReasonShort; int(r) < extended.NumReasons; r++ {
		ext = append(ext, r.String())
	}
	for r := range state.DropReason(state.NumDropReasons) {
		for h, names := range map[*protocol.ExtHeader][]string{nil: basic, {}: ext} {
			if !slices.Contains(names, r.String()) {
				continue
			}
			o, logs, _ := fakeObserver(zapcore.DebugLevel)
			o.Dropped(0, 2, mpe.Drop{Packet: arrival, Reason: r, Extended: h})
			o.drain()
			if got := logs.TakeAll(); len(got) != 1 || got[0].ContextMap()["detail"] == r.String() {
				t.Errorf("%v, extended %v: not explained: %+v", r, h != nil, got)
			}
		}
	}
	for e := state.EventNone + 1; int(e) < state.NumEvents; e++ {
		o, logs, _ := fakeObserver(zapcore.DebugLevel)
		o.Noted(0, 2, mpe.Note{Event: e})
		o.drain()
		if got := logs.TakeAll(); len(got) != 1 || got[0].Message == "" {
			t.Errorf("event %v has no message in eventText: %+v", e, got)
		}
	}
}

// TestProgramsThatComeAndGo checks that a program that attaches and detaches in a loop causes at most one line
// of each kind per second, and does not suppress lines about other programs.
func TestProgramsThatComeAndGo(t *testing.T) {
	o, logs, clock := fakeObserver(zapcore.InfoLevel)
	texts := func() string {
		var b strings.Builder
		for _, e := range logs.TakeAll() {
			fmt.Fprintf(&b, "%s %v\n", e.Message, e.ContextMap())
		}
		return b.String()
	}
	gone := errors.New("detached cleanly")
	for range 5000 {
		o.ProgramEvent(attach.Event{Kind: attach.EventAttached, Rank: 1, PID: 7, UID: 8})
		o.ProgramEvent(attach.Event{Kind: attach.EventDetached, Rank: 1, PID: 7, UID: 8, Err: gone})
		o.ProgramEvent(attach.Event{Kind: attach.EventRefused, Rank: wire.AnyRank, Err: errors.New("no")})
	}
	o.ProgramEvent(attach.Event{Kind: attach.EventAttached, Rank: 2, PID: 9, UID: 8})
	o.drain()
	o.flush()
	want := "program attached map[pid:7 rank:1 uid:8]\n" +
		"program detached map[pid:7 rank:1 reason:detached cleanly uid:8]\n" +
		"program refused map[reason:no]\n" +
		"program attached map[pid:9 rank:2 uid:8]\n"
	if got := texts(); got != want {
		t.Errorf("got\n%s", got)
	}
	*clock += minLineInterval
	o.ProgramEvent(attach.Event{Kind: attach.EventAttached, Rank: 1, PID: 7, UID: 8})
	o.drain()
	o.flush()
	want = "program attached map[pid:7 rank:1 suppressed:4999 uid:8]\n" +
		"program detached map[rank:1 suppressed:4999]\n" +
		"program refused map[suppressed:4999]\n"
	if got := texts(); got != want {
		t.Errorf("a second later\n%s", got)
	}
}
