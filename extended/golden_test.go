package extended

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Transcripts: testdata/*.txt have scripts, and after a line of dashes what must
// happen. With -rewrite they are written anew, to be read in the difference.

var rewrite = flag.Bool("rewrite", false, "write testdata anew")

func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(text))
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("%s: %s", file, firstDifference(string(text), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(g), len(w))
}

// replay carries out the scripts of a file and returns it with what happened.
func replay(t *testing.T, text string) string {
	s := &script{}
	var out strings.Builder
	for _, block := range strings.Split(strings.TrimRight(text, "\n"), "\n\n") {
		commands, _, _ := strings.Cut(block, "\n----")
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString(strings.TrimRight(commands, "\n") + "\n")
		s.log.Reset()
		ran := false
		for line := range strings.Lines(commands) {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			ran = true
			if err := s.do(strings.Fields(line)); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if err := s.err(); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
		if ran {
			out.WriteString("----\n" + s.log.String())
		}
	}
	return out.String()
}

// script is the state of a transcript.
type script struct {
	*world
	log   strings.Builder
	cfg   Config
	plan  map[[2]int]string // by rank and number of the packet, from now on
	cut   bool
	saved [][]byte
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
		n.acts = n.conn.Close(n.acts)
		n.do()
	case "reconnect":
		n := s.nodes[numbers[0]]
		n.acts = n.conn.Reconnected(s.now, n.acts)
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

// state prints what the reports say.
func (s *script) state() {
	for i, n := range s.nodes {
		_, remote := n.conn.Session()
		st := n.conn.Stats()
		s.print("%d   state: connected=%v busy=%v queued=%d begun=%d open=%d held=%d in_flight=%d", i, remote != 0,
			n.conn.Busy(), st.Queued, st.Begun, st.Open, st.Held, st.InFlight)
		n.conn.EachSend(func(x SendState) bool {
			s.print("%d     send %d: %v, %d of %d bytes, %d retransmissions", i, x.ID, x.State, x.Done, x.Length, x.Retransmissions)
			return true
		})
		n.conn.EachRecv(func(x RecvState) bool {
			s.print("%d     message %d: %v, %d of %d bytes", i, x.Message.Number(), x.State, x.Done, x.Length)
			return true
		})
	}
}
