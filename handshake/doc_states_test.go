package handshake_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// State tables of docs/ZRLMPI_protocol.md, row by row.

// transitions are scripts, one for each row of the state tables. The first word is the kind of peer, the last word the
// event, and the words between them bring a Pair into the state. A number advances the clock by that many milliseconds,
// and handles the timeouts.
var transitions = map[string]string{
	"M1":  "fpga send",
	"M2":  "fpga recv req send",
	"M3":  "cpu send timeout 120 clear ack clear send",
	"M4":  "fpga clear",
	"M5":  "fpga ack",
	"M6":  "fpga error",
	"M7":  "fpga recv req send data",
	"M8":  "cpu send recv req data",
	"M9":  "software send recv req clear",
	"M10": "fpga send recv req clear",
	"M11": "fpga recv req send ack",
	"M12": "fpga recv req send cancel-send",
	"M13": "fpga send clear",
	"M14": "fpga send clear-float",
	"M15": "fpga send ack",
	"M16": "fpga recv send req",
	"M17": "fpga send req",
	"M18": "fpga send error",
	"M19": "fpga send timeout",
	"M20": "limited send deadline",
	"M21": "fpga send cancel-send",
	"M22": "tcp send connected",
	"M23": "fpga send clear ack",
	"M24": "fpga send clear ack-float",
	"M25": "fpga send clear clear",
	"M26": "fpga send clear req",
	"M27": "software send clear req",
	"M28": "fpga send clear error",
	"M29": "software send clear timeout",
	"M30": "fpga send clear deadline",
	"M31": "fpga send-cut clear deadline",
	"M32": "fpga send clear cancel-send",
	"M33": "tcp send clear connected",
	"M34": "fpga send-cut clear 102 clear",
	"M35": "fpga send clear 102 clear timeout",
	"M36": "fpga req 1 send clear ack",
	"M37": "fpga send recv req clear 102 clear",
	"M40": "fpga req 1 send clear 102 req",
	"M41": "tcp send recv req connected",
	"M39": "fpga recv req send timeout",
	"M43": "fpga send clear req 102 req",
	"M38": "cpu send timeout 120 clear ack send",
	"M42": "cpu send-cut clear deadline send deadline",

	"N1":  "fpga recv",
	"N2":  "fpga req recv",
	"N3":  "fpga req-float recv",
	"N4":  "software send clear req recv",
	"N5":  "fpga req",
	"N6":  "fpga req req",
	"N7":  "fpga recv req data data",
	"N8":  "fpga recv req data 230 data",
	"N9":  "fpga data",
	"N10": "fpga recv req data recv req data data-other",
	"N11": "fpga recv req data bare",
	"N12": "fpga bare",
	"N13": "fpga recv req",
	"N14": "fpga recv req-float",
	"N15": "fpga recv cancel-recv",
	"N16": "fpga recv error",
	"N17": "fpga recv req data",
	"N18": "fpga recv-short req data-other",
	"N19": "fpga recv req first",
	"N20": "fpga recv req data-float",
	"N21": "fpga recv req data-huge",
	"N22": "fpga recv req data-odd",
	"N23": "fpga recv req bare",
	"N24": "fpga recv req 20 req",
	"N25": "fpga recv req 60 req",
	"N26": "fpga recv req timeout",
	"N27": "fpga recv req deadline",
	"N28": "fpga recv req error",
	"N29": "fpga recv req cancel-recv",
	"N30": "tcp recv req connected",
	"N31": "fpga recv req first bare",
	"N32": "fpga recv req first bare last",
	"N33": "fpga recv req first-odd last-padded",
	"N34": "fpga recv req first odd",
	"N46": "fpga recv req first last",
	"N35": "fpga recv req first 60 bare",
	"N36": "fpga recv req first first",
	"N37": "fpga recv req first 20 req",
	"N38": "fpga recv req first 60 req",
	"N39": "software recv req first timeout",
	"N40": "cpu recv req first timeout",
	"N41": "software recv req first deadline",
	"N42": "fpga recv req first error",
	"N43": "tcp recv req first connected",
	"N44": "cpu recv req first deadline",
	"N45": "fpga recv req 112 req deadline",
}

func TestDocumentStateTables(t *testing.T) {
	text := specification(t)
	shown := map[string]bool{}
	for _, r := range rows(text, `\*\*[MN]\d+\*\*`) {
		id := strings.Trim(r[0], "*")
		script, ok := transitions[id]
		if !ok {
			t.Errorf("%s has no script", id)
			continue
		}
		shown[id] = true
		if len(r) != 7 {
			t.Errorf("%s has %d cells, want 7", id, len(r))
			continue
		}
		s := newScript(t, script)
		state := s.send
		if id[0] == 'N' {
			state = s.recv
		}
		from := state()
		acts := s.last()
		got := [3]string{from, acts, state()}
		if want := [3]string{strings.Trim(r[1], "`"), r[4], strings.Trim(r[5], "`")}; got != want {
			t.Errorf("%s (%s):\n   document %q\n   code     %q", id, script, want, got)
		}
	}
	for id := range transitions {
		if !shown[id] {
			t.Errorf("%s is not in the document", id)
		}
	}
}

// script runs one of the transitions.
type script struct {
	t    *testing.T
	pair *handshake.Pair
	now  time.Duration
	todo []string
	tcp  bool
}

func newScript(t *testing.T, text string) *script {
	words := strings.Fields(text)
	rules := map[string]handshake.PeerRules{"fpga": handshake.FPGAPeer(1), "limited": handshake.FPGAPeer(1),
		"cpu": handshake.CPUPeer()}[words[0]]
	cfg := hostTo(1, rules)
	cfg.MaxWords = 1 << 20
	cfg.Reliable = words[0] == "tcp"
	if words[0] == "limited" {
		cfg.Timing.ClearDeadline = time.Second
	}
	s := &script{t: t, pair: handshake.New(cfg), todo: words[1:], tcp: cfg.Reliable}
	for len(s.todo) > 1 {
		s.step()
	}
	return s
}

func (s *script) send() string { w, _ := s.pair.SendWait(); return w.State.String() }
func (s *script) recv() string { w, _ := s.pair.RecvWait(); return w.State.String() }
func (s *script) last() string { return describeActions(s.step()) }

// scriptMessage is a message of three datagrams. The scripts call them first, bare and last.
var scriptMessage = cut(0, protocol.Header{Src: 1, Size: 1000, Type: dat}, pattern(1000, 1), protocol.CPUShape())
var scriptPadded = cut(0, protocol.Header{Src: 1, Size: 353, Type: dat}, pattern(353, 1), protocol.FPGAShape(true))

func (s *script) step() (acts []handshake.Action) {
	word := s.todo[0]
	s.todo = s.todo[1:]
	base, variant, _ := strings.Cut(word, "-")
	call := func(c protocol.Call) protocol.Call {
		if variant == "float" {
			return c + 2
		}
		return c
	}
	p, one := s.pair, pattern(1, 1)
	if variant == "other" {
		one = pattern(2, 2)[4:]
	}
	packet := func(typ protocol.Type, c protocol.Call, size uint32, payload []byte) {
		b := append(protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Call: call(c), Type: typ, Size: size}),
			payload...)
		if s.tcp {
			acts = p.Header(s.now, b[:protocol.HeaderLen], acts)
			if len(payload) > 0 {
				acts = p.Payload(s.now, payload, acts)
			}
			return
		}
		acts = p.Datagram(s.now, b, acts)
	}
	var err error
	switch base {
	case "send":
		words := uint32(1)
		if variant == "cut" {
			words = 1000
		}
		acts, err = p.Send(s.now, handshake.SendOp{Words: words}, nil)
		acts = s.sent(acts)
	case "recv":
		words := uint32(1000)
		if variant == "short" {
			words = 0
		}
		acts, err = p.Recv(s.now, handshake.RecvOp{Words: words}, nil)
	case "req":
		packet(sreq, sInt, 0, nil)
	case "clear":
		packet(clr, rInt, 0, nil)
	case "ack":
		packet(ack, rInt, 0, nil)
	case "error":
		packet(protocol.Error, rInt, 0, nil)
	case "data":
		switch variant {
		case "huge":
			packet(dat, sInt, 1<<20+1, one)
		case "odd":
			packet(dat, sInt, 3, one)
		default:
			packet(dat, sInt, 1, one)
		}
	case "first", "bare", "last":
		m := scriptMessage
		if variant == "odd" || variant == "padded" {
			m = scriptPadded
		}
		b := m[map[string]int{"first": 0, "bare": 1, "last": len(m) - 1}[base]]
		if s.tcp {
			packet(dat, sInt, 1000, b[protocol.HeaderLen:])
			break
		}
		acts = p.Datagram(s.now, b, nil)
	case "odd":
		acts = p.Datagram(s.now, pattern(3, 3), nil)
	case "cancel":
		var ok bool
		if variant == "send" {
			acts, ok = p.CancelSend(s.now, 0, nil)
		} else {
			ok = p.CancelRecv(0)
		}
		if !ok {
			acts = append(acts, refused)
		}
	case "connected":
		acts = p.Reconnected(s.now, nil)
	case "timeout", "deadline":
		// Advance to the next timeout, or to the one that ends a message.
		for {
			at, ok := p.Timeout()
			if !ok {
				s.t.Fatalf("%s: nothing waits for a time", word)
			}
			s.now = at
			acts = s.sent(p.Tick(s.now, nil))
			if base == "timeout" || slices.ContainsFunc(acts, func(a handshake.Action) bool { return a.Err != nil }) {
				return acts
			}
		}
	default:
		delay, e := strconv.Atoi(word)
		if e != nil {
			s.t.Fatalf("no such step: %s", word)
		}
		for until := s.now + time.Duration(delay)*ms; s.now < until; {
			at, ok := p.Deadline()
			if !ok || at > until {
				s.now = until
				break
			}
			s.now = at
			s.sent(p.Tick(s.now, nil))
		}
	}
	if err != nil {
		s.t.Fatalf("%s: %v", word, err)
	}
	return s.sent(acts)
}

// sent reports every DATA as sent.
func (s *script) sent(acts []handshake.Action) []handshake.Action {
	for _, a := range acts {
		if a.Kind == handshake.TransmitData {
			s.pair.DataSent(s.now)
		}
	}
	return acts
}

// refused stands for an event that the pair rejects.
var refused = handshake.Action{}

// describeActions writes actions as the state tables do.
func describeActions(acts []handshake.Action) string {
	var words []string
	ends := func(what string, err error) string {
		if err == nil {
			return what + " done"
		}
		if errors.Is(err, handshake.ErrDeadEnd) {
			return what + " fails: DeadEndError"
		}
		for name, kind := range map[string]error{
			"TimeoutError": handshake.ErrTimeout, "PartialError": handshake.ErrPartial,
			"RemoteError": handshake.ErrRemote, "TruncatedError": handshake.ErrTruncated,
		} {
			if errors.Is(err, kind) {
				return what + " fails: " + name
			}
		}
		return fmt.Sprintf("%s fails: %v", what, err)
	}
	for _, a := range acts {
		switch a.Kind {
		case handshake.Transmit, handshake.TransmitData:
			words = append(words, "send "+a.Header.Type.String())
		case handshake.Copy:
			words = append(words, "copy")
		case handshake.SendDone:
			words = append(words, ends("send", a.Err))
		case handshake.RecvDone:
			words = append(words, ends("receive", a.Err))
		case handshake.Repost:
			words = append(words, "receive posted again")
		case handshake.Drop:
			words = append(words, "drop `"+a.Reason.String()+"`")
		case handshake.Note:
			words = append(words, "note `"+a.Event.String()+"`")
		case handshake.DeadEnd:
			words = append(words, "dead end")
		default:
			words = append(words, "refused")
		}
	}
	if len(words) == 0 {
		return "–"
	}
	return strings.Join(words, ", ")
}
