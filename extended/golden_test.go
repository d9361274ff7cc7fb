package extended

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Transcripts: testdata/*.txt have scripts and, after a line of dashes, the expected events. -rewrite writes the actual
// events instead, to be reviewed as a diff.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if filepath.Ext(path) != ".txt" {
			return
		}
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.log.Reset()
			words := []string{d.Cmd}
			for _, a := range d.CmdArgs {
				words = append(words, a.String())
			}
			s.must(t, words)
			for line := range strings.Lines(d.Input) {
				if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' {
					s.must(t, words)
				}
			}
			return s.log.String()
		})
	})
}

// script is the state of a transcript.
type script struct {
	*world
	log   strings.Builder
	cfg   Config
	plan  map[[2]int]string // faults, by rank and number of the packet from now on
	cut   bool
	saved [][]byte
}

func (s *script) must(t *testing.T, words []string) {
	if err := s.do(words); err != nil {
		t.Fatalf("%q: %v", words, err)
	}
	if err := s.err(); err != nil {
		t.Errorf("%q: %v", words, err)
	}
}

func (s *script) do(words []string) error {
	name, args := words[0], words[1:]
	options := map[string]string{}
	var numbers []int
	for _, a := range args {
		if key, value, ok := strings.Cut(a, "="); ok {
			options[key] = value
		} else if n, err := strconv.Atoi(a); err == nil {
			numbers = append(numbers, n)
		} else {
			options[a] = "1"
		}
	}
	switch name {
	case "new":
		return s.begin(options)
	case "send":
		op := SendOp{Tag: s.number(options["tag"]), Comm: s.number(options["comm"]), Sync: options["sync"] != ""}
		if options["float"] != "" {
			op.Datatype = protocol.Float
		}
		n := s.nodes[numbers[0]]
		n.send(pattern(numbers[1], uint64(len(n.posted))), op)
	case "recv":
		s.nodes[numbers[0]].recv(s.number(options["tag"]), int64(numbers[1]))
	case "cancel":
		names := map[CancelOutcome]string{CancelDone: "gone", CancelRequested: "asked", CancelTooLate: "too late"}
		s.print("%d   Cancel send %d: %s", numbers[0], numbers[1], names[s.nodes[numbers[0]].cancel(ID(numbers[1]))])
	case "lose", "dup", "late", "swap", "flip", "keep":
		for _, n := range numbers[1:] {
			s.plan[[2]int{numbers[0], s.sent[numbers[0]] + n - 1}] = name
		}
	case "replay":
		for _, b := range s.saved {
			s.arrive(numbers[0], b, 0)
		}
		s.run(s.now + time.Hour)
	case "cut", "heal":
		s.cut = name == "cut"
	case "run":
		s.run(s.now + time.Hour)
	case "wait":
		for key := range options {
			d, err := time.ParseDuration(key)
			if err != nil {
				return err
			}
			s.wait(d)
		}
	case "restart":
		s.start(numbers[0], s.cfg)
		s.print("%d   restarted", numbers[0])
	case "close":
		n := s.nodes[numbers[0]]
		n.acts = n.conn.Close(s.now, n.acts)
		n.do()
	case "reconnect":
		n := s.nodes[numbers[0]]
		n.acts = n.conn.Reconnected(s.now, n.acts)
		n.do()
	case "gone":
		n := s.nodes[numbers[0]]
		n.acts = n.conn.ProcessEnded(s.now, n.acts)
		n.do()
	case "state":
		s.state()
	default:
		return fmt.Errorf("what is %q?", name)
	}
	return nil
}

func (s *script) number(text string) uint32 {
	n, _ := strconv.ParseUint(text, 10, 32)
	return uint32(n)
}

func (s *script) begin(options map[string]string) error {
	n := func(key string) int { return int(s.number(options[key])) }
	s.cfg = Config{
		MaxPayload: n("payload"), EagerLimit: n("eager"), MaxLength: int64(n("max")), Messages: n("messages"),
		EagerBytes: n("credit"), Window: n("window"), Reliable: options["tcp"] != "",
		firstPacket: s.number(options["packet"]), firstMessage: s.number(options["message"]),
	}
	if d, ok := options["giveup"]; ok {
		s.cfg.Timing = DefaultTiming(s.cfg.Reliable)
		var err error
		if s.cfg.Timing.UnreachableAfter, err = time.ParseDuration(d); err != nil {
			return err
		}
	}
	s.world, s.plan, s.cut, s.saved = newWorld(s.cfg), map[[2]int]string{}, false, nil
	s.world.log = &s.log
	s.fault = func(from, nth int, b []byte) []fate {
		if s.cut {
			return nil
		}
		switch s.plan[[2]int{from, nth}] {
		case "lose":
			return nil
		case "dup":
			return []fate{{}, {}}
		case "late":
			return []fate{{delay: 3 * time.Millisecond}}
		case "swap":
			return []fate{{delay: swapped}}
		case "flip":
			return []fate{{flip: 8*len(b) - 7}}
		case "keep":
			s.saved = append(s.saved, slices.Clone(b))
		}
		return onTime
	}
	return nil
}

// state prints the reports.
func (s *script) state() {
	for i, n := range s.nodes {
		_, remote := n.conn.Sessions()
		st := n.conn.Stats()
		s.print("%d   state: connected=%v busy=%v queued=%d begun=%d open=%d held=%d in_flight=%d", i, remote != 0,
			n.conn.Busy(), st.QueuedSends, st.Begun, st.OpenMessages, st.HeldPackets, st.InFlight)
		n.conn.EachSend(func(x SendState) bool {
			s.print("%d     send %d: %v, %d of %d bytes, %d retransmissions", i, x.ID, x.State, x.BytesDone, x.Length,
				x.Retransmissions)
			return true
		})
		n.conn.EachRecv(func(x RecvState) bool {
			s.print("%d     message %d: %v, %d of %d bytes", i, x.Message.Number(), x.State, x.BytesDone, x.Length)
			return true
		})
	}
}
