package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// oracle answers queries like a daemon in which rank 0 has been waiting for rank 1 since start, and exchanges ten
// messages a second with each other rank.
type oracle struct {
	start time.Time
	ranks int
	mu    sync.Mutex
	err   error
	asked int
}

func (o *oracle) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

func (o *oracle) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked
}

func (o *oracle) status(context.Context) (state.Status, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked++
	up := time.Since(o.start).Seconds()
	s := state.Status{Version: "v9\x1b[31m", PID: 77, Started: o.start, Uptime: up,
		Cluster: make([]state.Member, o.ranks)}
	r := state.Rank{RankInfo: state.RankInfo{Rank: 0, Role: state.RoleHost, Address: "10.0.0.1:2718",
		Transports: []state.Transport{state.TransportUDP}}}
	for i := 1; i < o.ranks; i++ {
		n := uint64(up * 5)
		r.Engine.Peers = append(r.Engine.Peers, state.Peer{
			Rank: i, Kind: "fpga", Profile: "cloudfpga", Transport: "udp", Address: fmt.Sprintf("10.0.0.%d:2718", i+1),
			MessageCounts: state.MessageCounts{Sent: n, Received: n}, PacketsIn: n + 1, BytesIn: 1000 * n,
		})
	}
	r.Engine.Peers[0].Receiving = &state.Wait{WaitsFor: protocol.SendRequest, Seconds: up,
		Text: "rank 0 waits for SEND_REQUEST from rank 1"}
	s.Ranks = []state.Rank{r}
	return s, o.err
}

// screen is a terminal whose contents a test can read.
type screen struct {
	mu                sync.Mutex
	width, height     int
	entered, restored int
	stopped           int
	frame             string
	keys              chan []byte
	resized           chan struct{}
	broken            bool // Draw panics
}

func newScreen() *screen {
	return &screen{width: 160, height: 16, keys: make(chan []byte), resized: make(chan struct{})}
}

func (s *screen) Enter() error   { s.entered++; return nil }
func (s *screen) Restore() error { s.restored++; return nil }
func (s *screen) Suspend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped++
	return nil
}
func (s *screen) Keys() <-chan []byte      { return s.keys }
func (s *screen) Resized() <-chan struct{} { return s.resized }
func (s *screen) Colours() bool            { return true }

func (s *screen) Size() (width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

func (s *screen) Draw(frame string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken {
		panic("a mistake")
	}
	s.frame = frame
	return nil
}

var escapes = regexp.MustCompile(`\x1b\[[0-9;]*[mK]`)

// shown returns the text on the screen, without colors.
func (s *screen) shown() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return escapes.ReplaceAllString(s.frame, "")
}

// press sends keys and waits until they have been handled.
func (s *screen) press(t *testing.T, keys string) {
	t.Helper()
	s.keys <- []byte(keys)
	synctest.Wait()
}

// watching runs top on a screen until f returns.
func watching(t *testing.T, ranks int, f func(s *screen, o *oracle)) error {
	t.Helper()
	o, s := &oracle{start: time.Now(), ranks: ranks}, newScreen()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&top{interval: time.Second, query: o.status}).watch(ctx, s) }()
	synctest.Wait()
	f(s, o)
	cancel()
	err := <-ended
	if s.entered != 1 || s.restored != 1 {
		t.Errorf("the terminal was entered %d times and restored %d times", s.entered, s.restored)
	}
	return err
}

func expect(t *testing.T, shown string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(shown, w) {
			t.Errorf("%q is not shown:\n%s", w, shown)
		}
	}
}

// TestTopWatch: the displayed age grows while the wait lasts, and keys have their documented effects.
func TestTopWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := watching(t, 5, func(s *screen, o *oracle) {
			expect(t, s.shown(), "no rank is waiting", "1 message in progress", "- messages/s", "v9\uFFFD[31m")
			after(3 * time.Second)
			expect(t, s.shown(), "3.0 s     0  →  1     rank 0 waits for SEND_REQUEST from rank 1",
				"40 messages/s, 20 kB/s", "1 wait, longest 3.0 s")
			after(9 * time.Second)
			expect(t, s.shown(), "12.0 s     0  →  1 ", "\r\n every 1s  q quits")
			s.press(t, "p")
			asked := o.count()
			after(time.Minute)
			expect(t, s.shown(), "12.0 s", "paused, p resumes")
			if o.count() != asked {
				t.Error("the daemon is queried in a pause")
			}
			s.press(t, "p")
			after(time.Second)
			expect(t, s.shown(), "1 min 13 s")
			s.press(t, "G")
			expect(t, s.shown(), "PEERS, sorted by problems", "10.0.0.5:2718")
			s.press(t, "ss")
			expect(t, s.shown(), "PEERS, sorted by roundtrip")
			s.press(t, "g/10.0.0.")
			expect(t, s.shown(), "\r\nfilter: 10.0.0. ")
			s.press(t, "3\x7f4\r")
			expect(t, s.shown(), "1 wait hidden by the filter", "filter: 10.0.0.4")
			s.press(t, "G")
			expect(t, s.shown(), "     0     3  active", "3 peers hidden by the filter")
			s.press(t, "\x1b?")
			expect(t, s.shown(), "KEYS", "quit\r\n")
			s.press(t, "?")
			s.press(t, "\x1a")
			if s.stopped != 1 {
				t.Error("Ctrl-Z does not stop it")
			}
			o.fail(errors.New("it is gone"))
			after(time.Second)
			expect(t, s.shown(), "1 min 13 s", ": it is gone")
			o.fail(nil)
			after(time.Second)
			expect(t, s.shown(), "1 min 15 s", "every 1s")
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// after waits for d, and then until all goroutines are idle.
func after(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// TestTopFits: whatever the size of the screen, no line is wider than it and nothing is drawn below it.
func TestTopFits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := watching(t, 300, func(s *screen, _ *oracle) {
			for _, size := range [][2]int{{80, 24}, {200, 60}, {40, 10}, {10, 3}, {1, 1}, {80, 1000}, {160, 24}} {
				s.mu.Lock()
				s.width, s.height = size[0], size[1]
				s.mu.Unlock()
				s.resized <- struct{}{}
				for _, keys := range []string{"", "G", " ", "\x1b[5~", "\x1b[A\x1b[B", "jk", "b", "?", "?", "g"} {
					s.press(t, keys)
					lines := strings.Split(s.shown(), "\r\n")
					if len(lines) > size[1] {
						t.Errorf("%v: %d lines", size, len(lines))
					}
					for _, l := range lines {
						if n := len([]rune(l)); n > size[0] {
							t.Errorf("%v: a line of %d characters: %q", size, n, l)
						}
					}
				}
			}
			s.press(t, "G")
			expect(t, s.shown(), "10.0.0.300:2718")
			s.press(t, "gG\x1b[H\x1b[6~\x1b[6~")
			expect(t, s.shown(), "lines below")
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestTopCauseFirst: the complete cause of a hang is shown before the numbers, and lines use the full width of the
// terminal.
func TestTopCauseFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := watching(t, 5, func(s *screen, o *oracle) {
			after(12 * time.Second)
			status, _ := o.status(t.Context())
			cause := diagnosis.Diagnose([]diagnosis.Source{{Status: &status}}, diagnosis.MinWaitAge).Findings[0]
			want := words.Sentence(cause.Text) + " (" + cause.Step + ")"
			for _, width := range []int{60, 80, 120, 200} {
				s.mu.Lock()
				s.width, s.height = width, 50
				s.mu.Unlock()
				s.resized <- struct{}{}
				synctest.Wait()
				lines := strings.Split(s.shown(), "\r\n")
				shown := strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
				at, numbers := strings.Index(shown, want), strings.Index(shown, "messages/s")
				if at < 0 || numbers < at {
					t.Errorf("%d columns: the cause is at %d, numbers are at %d:\n%s", width, at, numbers, s.shown())
				}
				longest := 0
				for _, l := range lines {
					longest = max(longest, len([]rune(l)))
				}
				if longest < width-20 || longest > width {
					t.Errorf("%d columns: the longest line has %d", width, longest)
				}
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// TestTopEnds: top ends on certain keys, when the terminal closes, and after count refreshes. The terminal is restored
// even if the program panics.
func TestTopEnds(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, s *screen){
		"q":      func(_ *testing.T, s *screen) { s.keys <- []byte("q") },
		"ctrl-c": func(_ *testing.T, s *screen) { s.keys <- []byte("/abc\x03") },
		"hangup": func(_ *testing.T, s *screen) { close(s.keys) },
		"count":  func(*testing.T, *screen) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, s := &oracle{start: time.Now(), ranks: 3}, newScreen()
				ended := make(chan error, 1)
				w := &top{interval: time.Second, query: o.status}
				if name == "count" {
					w.count = 3
				}
				go func() { ended <- w.watch(t.Context(), s) }()
				end(t, s)
				if err := <-ended; err != nil || s.restored != 1 {
					t.Errorf("%v, the terminal was restored %d times", err, s.restored)
				}
				if name == "count" && o.asked != 3 {
					t.Errorf("%d samples", o.asked)
				}
			})
		})
	}
	t.Run("panic", func(t *testing.T) {
		s := newScreen()
		s.broken = true
		defer func() {
			if recover() == nil || s.restored != 1 {
				t.Errorf("the terminal was restored %d times", s.restored)
			}
		}()
		_ = (&top{interval: time.Second, query: (&oracle{start: time.Now(), ranks: 3}).status}).watch(t.Context(), s)
	})
	t.Run("no daemon", func(t *testing.T) {
		s, o := newScreen(), &oracle{ranks: 3, err: errors.New("no daemon")}
		if err := (&top{interval: time.Second, query: o.status}).watch(t.Context(), s); err == nil || s.entered != 0 {
			t.Errorf("%v, and the terminal was taken %d times", err, s.entered)
		}
	})
}

// TestTopPrint: without a terminal, top prints samples one after the other.
func TestTopPrint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		o := &oracle{start: time.Now(), ranks: 4}
		w := &top{interval: 2 * time.Second, count: 3, query: o.status, out: &out}
		if err := w.print(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		expect(t, out.String(), "  2.0 s     0  →  1 ", "  4.0 s     0  →  1 ", "\n\nzrlmpid v9", "\n30 messages/s",
			"\n\nCAUSES\n  Rank 0 has waited 2.0 s", "\n\nWAITING RANKS\n")
		if n := strings.Count(out.String(), "\nzrlmpid v9"); n != 2 || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%d more samples: %q", n, out.String())
		}
		out.Reset()
		if err := w.print(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(&out)
		for i := range 3 {
			var l topJSON
			if err := dec.Decode(&l); err != nil {
				t.Fatal(err)
			}
			if len(l.Waits) != 1 || l.Waits[0].Peer != 1 || l.PID != 77 || l.Total.Known != (i > 0) ||
				len(l.Peers) != 3 {
				t.Errorf("sample %d: %+v", i, l)
			}
			if len(l.Causes) != 1 || l.Causes[0].Peer != 0 || l.Causes[0].Step == "" {
				t.Errorf("sample %d: the causes are %+v", i, l.Causes)
			}
		}
		// A signal ends top without an error.
		ctx, cancel := context.WithCancel(t.Context())
		w.count = 0
		ended := make(chan error, 1)
		go func() { ended <- w.print(ctx, false) }()
		after(5 * time.Second)
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		o.fail(errors.New("it is gone"))
		if err := w.print(t.Context(), false); err == nil || err.Error() != "it is gone" {
			t.Error(err)
		}
		// From now on the daemon does not answer.
		w.query = func(ctx context.Context) (state.Status, error) {
			<-ctx.Done()
			return state.Status{}, context.Cause(ctx)
		}
		if err := w.print(t.Context(), false); control.KindOf(err) != control.Timeout {
			t.Error(err)
		}
	})
}

func TestTopCommand(t *testing.T) {
	socket := startDaemon(t)
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"top --count 2 --interval 100ms", 0,
			`(?s)^zrlmpid .*\(local: 4\) .*\nNo rank is waiting.*LOCAL RANKS.*PEERS, sorted by problems.*\n\nzrlmpid `,
			""},
		{"top --count 1 --json", 0, `(?m)^\{"time":.*"waits":\[\],"cycles":\[\].*\}$`, ""},
		{"top --interval 1ms", exitUsage, "", "--interval 1ms: must be at least 100ms"},
		{"top --count -1", exitUsage, "", "--count -1"},
		{"top more", exitUsage, "", `top: unexpected argument "more"`},
		{"top --count 1 --socket /no/such/socket", exitUnreachable, "", "/no/such/socket"},
	} {
		code, stdout, stderr := zrlctl(t, "", strings.Fields("--socket "+socket+" "+tt.args)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) ||
			!regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("%s: %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}

func TestTopStates(t *testing.T) {
	refused, failing, queue := &state.Peer{Refuses: "x", NetworkError: "y"}, &state.Peer{NetworkError: "y"},
		&state.Peer{Unexpected: 2}
	none := &state.Peer{}
	for want, p := range map[string]digest.Peer{
		"refused": {State: refused}, "network error": {State: failing, OldestWait: 4},
		"waiting 4.0 s": {State: none, OldestWait: 4}, "waiting 20.0 s": {State: none, OldestWait: 20},
		"2 unexpected": {State: queue}, "active": {State: none, Rates: digest.Rates{Messages: 1}},
		"idle": {State: none, OldestWait: .5},
	} {
		if got, _ := peerState(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct {
		pieces []string
		want   []key
	}{
		{[]string{"qj/"}, []key{'q', 'j', '/'}},
		{[]string{"\x1b"}, []key{keyEscape}},
		{[]string{"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~"},
			[]key{keyUp, keyDown, keyPageUp, keyPageDown, keyHome, keyEnd}},
		{[]string{"\x1b[", "5", "~x"}, []key{keyPageUp, 'x'}},
		{[]string{"\x1b[1;5C\x1b[200~z"}, []key{'z'}},
		{[]string{"\x1b[" + strings.Repeat("1", 40), "q"},
			[]key{'1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1', '1',
				'1', '1', '1', '1', '1', 'q'}},
		{[]string{"\xc2", "\xb5"}, []key{'µ'}},
		{[]string{"\xff\xfeq\x00\x01"}, []key{'q'}},
		{[]string{"\r\n\x7f\b\x03\x04\x1a"},
			[]key{keyEnter, keyEnter, keyBackspace, keyBackspace, keyInterrupt, keyInterrupt, keySuspend}},
	} {
		var p keyParser
		var got []key
		for _, piece := range tt.pieces {
			got = append(got, p.parse([]byte(piece))...)
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%q: %v, want %v", tt.pieces, got, tt.want)
		}
	}
	if s, done := editLine("ab", keyUp); s != "ab" || done {
		t.Error(s, done)
	}
	if s, _ := editLine("", keyBackspace); s != "" {
		t.Error(s)
	}
}
