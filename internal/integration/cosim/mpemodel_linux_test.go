package cosim_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/deploy/cosim/simulators"
	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	mpeScripts = 60
	mpeWorkers = 2
	// The MPE's timeouts are divided by mpeFaster, and its cycle of 6.4 ns is multiplied by mpeFaster.
	mpeFaster = 100
	mpeCycle  = mpeFaster * 6400 * time.Nanosecond / 1000
	// mpeSlack is the number of cycles by which the MPE may lag behind the model, which does all work in no time.
	mpeSlack = 30_000
)

// TestModelAgreesWithUpstreamMPE runs random scripts of calls, datagrams and timeouts on the model of the deployed
// FPGA and on upstream's source code for it. Both must send the same datagrams, deliver the same words and reach the
// same state.
func TestModelAgreesWithUpstreamMPE(t *testing.T) {
	// Enlarge the wrapper's buffer for receives of one word, which longer messages overrun.
	room := simulators.Edit{File: simulators.WrapperFile,
		Change: change{"uint32_t words[64];", "uint32_t words[1 << 16];"}}
	path := simulators.BuildMPE(t, "script", simulators.TimeoutEdit(15625000/mpeFaster), room)
	var c mpeCounts
	var next atomic.Int64
	var wg sync.WaitGroup
	for range mpeWorkers {
		wg.Go(func() {
			for seed := next.Add(1); seed <= mpeScripts; seed = next.Add(1) {
				if err := playMPE(path, uint64(seed), &c); err != nil {
					t.Errorf("script %d: %v", seed, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d datagrams sent, %d calls returned, %d timeouts, %d overruns; states met: %v", c.packets.Load(),
		c.returned.Load(), c.timeouts.Load(), c.overruns.Load(), &c)
}

// mpeCounts counts events and states that occurred in the scripts.
type mpeCounts struct {
	packets, returned, timeouts, overruns atomic.Int64
	mu                                    sync.Mutex
	states                                map[string]int
}

func (c *mpeCounts) met(state string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.states == nil {
		c.states = map[string]int{}
	}
	c.states[state]++
}

func (c *mpeCounts) String() string {
	var b strings.Builder
	for _, state := range slices.Sorted(maps.Keys(c.states)) {
		fmt.Fprintf(&b, " %s %d", state, c.states[state])
	}
	return b.String()
}

// mpeStates maps numbers in upstream's mpe.hpp to the states of an idle MPE.
var mpeStates = map[int]string{
	1: "IDLE", 7: "WAIT4CLEAR", 8: "WAIT4CLEAR_1", 11: "SEND_DATA_RD", 16: "WAIT4ACK", 17: "WAIT4ACK_1", 21: "WAIT4REQ",
	22: "WAIT4REQ_1",
	26: "RECV_DATA_START", 27: "RECV_DATA_START_1", 28: "RECV_DATA_RD", 29: "RECV_DATA_WRD",
	33: "MPE_DRAIN_DATA_STREAM",
}

// mpeScript runs upstream's MPE as rank 1 in a cluster of ranks 0 to 2, together with its model.
type mpeScript struct {
	*rand.Rand
	c     *mpeCounts
	m     *mpemodel.Model
	in    io.Writer
	out   *bufio.Scanner
	cycle uint64
	// peer is the peer of the current call, and posted its number of words.
	peer, posted int
	datatype     protocol.Datatype
	log          []string
}

func playMPE(path string, seed uint64, c *mpeCounts) error {
	cmd := exec.Command(path, "1", "3")
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() {
		in.Close()
		_ = cmd.Wait()
	}()
	s := &mpeScript{
		Rand: rand.New(rand.NewPCG(seed, 0)), c: c, m: mpemodel.New(mpemodel.Config{Rank: 1, Peers: []int{0, 2}}),
		in: in, out: bufio.NewScanner(out),
	}
	s.out.Buffer(nil, 1<<20)
	if err := s.play(); err != nil {
		return fmt.Errorf("%w\n%s", err, strings.Join(s.log, "\n"))
	}
	return nil
}

// play makes calls until one does not return.
func (s *mpeScript) play() error {
	for range 6 {
		if err := s.call(); err != nil {
			return err
		}
		for events := 0; s.m.Busy() && events < 25; events++ {
			if err := s.event(); err != nil {
				return err
			}
		}
		if s.m.Busy() {
			return nil
		}
		if s.IntN(3) == 0 {
			if err := s.arrive(s.disturbing()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *mpeScript) now() time.Duration { return time.Duration(s.cycle) * mpeCycle }

func (s *mpeScript) words(n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = s.Uint32()
	}
	return words
}

var mpeSizes = []int{0, 1, 2, 3, 5, 8, 345, 346, 347, 348, 349, 350, 353, 700, 701, 1001}

func (s *mpeScript) call() error {
	s.peer, s.posted = 2*s.IntN(2), mpeSizes[s.IntN(len(mpeSizes))]
	s.datatype = protocol.Int
	if s.IntN(5) == 0 {
		s.datatype = protocol.Float
	}
	number := 0 // the wrapper's number
	if s.datatype == protocol.Float {
		number = 1
	}
	if s.IntN(2) == 0 {
		words := s.words(s.posted)
		return s.both(fmt.Sprintf("send %d %d -%x", s.peer, number, modeltest.EncodeWords(words)), func() error {
			return s.m.Send(s.now(), s.peer, words, s.datatype)
		})
	}
	return s.both(fmt.Sprintf("recv %d %d %d", s.peer, number, s.posted), func() error {
		return s.m.Recv(s.now(), s.peer, uint32(s.posted), s.datatype)
	})
}

// event performs a random event.
func (s *mpeScript) event() error {
	at, timed := s.m.NextEvent()
	soon := timed && at-s.now() < 2*mpeSlack*mpeCycle
	switch n := s.IntN(20); {
	case soon || timed && n < 4:
		s.c.timeouts.Add(1)
		return s.wait(uint64((at-s.now())/mpeCycle) + mpeSlack)
	case n < 6 && !timed:
		return s.wait(mpeSlack)
	case n < 15:
		return s.arrive(s.helpful())
	}
	return s.arrive(s.disturbing())
}

func (s *mpeScript) wait(cycles uint64) error {
	return s.both(fmt.Sprint("cycles ", cycles), func() error { return nil })
}

// mpeDatagram is a datagram, with the peer that sends or receives it.
type mpeDatagram struct {
	rank int
	b    []byte
}

func (s *mpeScript) arrive(in []mpeDatagram) error {
	for _, d := range in {
		if err := s.both(fmt.Sprintf("datagram %d %x", d.rank, d.b), func() error {
			s.m.Datagram(s.now(), d.rank, d.b)
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// packet encodes a header in the datatype of the current call.
func (s *mpeScript) packet(typ protocol.Type, src int, size uint32) []byte {
	call := s.datatype.SendCall()
	if typ == protocol.ClearToSend || typ == protocol.Ack {
		call = s.datatype.RecvCall()
	}
	return protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Src: uint32(src), Size: size, Call: call, Type: typ})
}

// message returns the datagrams of a DATA message.
func (s *mpeScript) message(src, n int) [][]byte {
	return slices.Collect(slices.Chunk(append(s.packet(protocol.Data, src, uint32(n)),
		modeltest.EncodeWords(s.words(n))...),
		protocol.MaxDatagram))
}

// helpful returns datagrams that the current call is likely to be waiting for.
func (s *mpeScript) helpful() []mpeDatagram {
	one := func(typ protocol.Type) []mpeDatagram { return []mpeDatagram{{s.peer, s.packet(typ, s.peer, 0)}} }
	switch strings.TrimSuffix(s.m.State(), "_1") {
	case "WAIT4REQ":
		return one(protocol.SendRequest)
	case "WAIT4CLEAR":
		return one(protocol.ClearToSend)
	case "WAIT4ACK":
		return one(protocol.Ack)
	}
	n := s.posted
	if s.IntN(6) == 0 {
		n = mpeSizes[s.IntN(len(mpeSizes))]
	}
	var in []mpeDatagram
	for _, d := range s.message(s.peer, n) {
		in = append(in, mpeDatagram{s.peer, d})
	}
	switch i := s.IntN(len(in)); s.IntN(8) {
	case 0:
		in = slices.Delete(in, i, i+1)
	case 1:
		in = slices.Insert(in, s.IntN(len(in)+1), in[i])
	case 2:
		j := s.IntN(len(in))
		in[i], in[j] = in[j], in[i]
	case 3:
		in = slices.Insert(in, i, s.disturbing()...)
	}
	return in
}

// disturbing returns datagrams for which no call is waiting, or near misses.
func (s *mpeScript) disturbing() []mpeDatagram {
	from, named := 2*s.IntN(2), s.IntN(3)
	switch s.IntN(8) {
	case 0, 1, 2, 3: // any control packet, possibly too long
		b := s.packet(protocol.Type(s.IntN(7)), named, 0)
		if s.IntN(2) == 0 {
			b = s.packet(protocol.Type(1+s.IntN(4)), from, 0)
		}
		b[16] = byte(s.IntN(4))
		if s.IntN(4) == 0 {
			b = append(b, make([]byte, s.IntN(40))...)
		}
		return []mpeDatagram{{from, b}}
	case 4: // a header with one modified byte
		b := s.packet(protocol.Type(1+s.IntN(4)), from, 0)
		b[s.IntN(len(b))] ^= byte(1 + s.IntN(255))
		return []mpeDatagram{{from, b}}
	case 5: // a truncated header
		b := s.packet(protocol.Type(1+s.IntN(4)), from, 0)
		return []mpeDatagram{{from, b[:1+s.IntN(len(b))]}}
	}
	// a datagram of a DATA message from any rank
	d := s.message(from, mpeSizes[s.IntN(len(mpeSizes))])
	return []mpeDatagram{{from, d[s.IntN(len(d))]}}
}

// both applies an event to the MPE and to its model, and compares the results.
func (s *mpeScript) both(line string, model func() error) error {
	s.log = append(s.log, line[:min(len(line), 100)])
	inCall := s.m.Busy() || strings.HasPrefix(line, "send ") || strings.HasPrefix(line, "recv ")
	if err := model(); err != nil {
		return err
	}
	a, err := s.ask(line)
	if err != nil {
		return err
	}
	s.m.Tick(s.now())
	if err := s.compareSent(a.sent); err != nil {
		return err
	}
	want := ""
	if words, overrun, done := s.m.Result(); inCall && done {
		s.c.returned.Add(1)
		want = s.resultLine(words, overrun)
	}
	if a.returned != want {
		return fmt.Errorf("upstream's wrapper returned %.200q, the model %.200q", a.returned, want)
	}
	state := mpeStates[a.state]
	s.c.met(state)
	if state != s.m.State() {
		return fmt.Errorf("upstream's MPE is in state %d (%s), the model in %s", a.state, state, s.m.State())
	}
	return nil
}

// resultLine returns the script's output for a completed call of the model.
func (s *mpeScript) resultLine(words []uint32, overrun bool) string {
	if words == nil {
		return "sent"
	}
	behind := 0
	if overrun && s.posted > 1 { // for shorter receives, the wrapper uses a separate buffer
		behind = 1
		s.c.overruns.Add(1)
	}
	return fmt.Sprintf("received -%x %d", modeltest.EncodeWords(words), behind)
}

// mpeAnswer is the reaction of upstream's MPE.
type mpeAnswer struct {
	sent     []mpeDatagram // by destination rank
	returned string
	state    int
}

// ask sends a line to the script and reads the answer.
func (s *mpeScript) ask(line string) (a mpeAnswer, err error) {
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		return a, err
	}
	for s.out.Scan() {
		answer := s.out.Text()
		switch verb, rest, _ := strings.Cut(answer, " "); verb {
		case "to":
			var d mpeDatagram
			if _, err := fmt.Sscanf(rest, "%d %x", &d.rank, &d.b); err != nil {
				return a, fmt.Errorf("%q: %w", answer, err)
			}
			a.sent = append(a.sent, d)
		case "state":
			if _, err := fmt.Sscan(rest, &a.state, &s.cycle); err != nil {
				return a, fmt.Errorf("%q: %w", answer, err)
			}
			return a, nil
		default:
			a.returned = answer
		}
	}
	return a, fmt.Errorf("upstream's program exited: %v", s.out.Err())
}

func (s *mpeScript) compareSent(sent []mpeDatagram) error {
	want := s.m.TakePackets()
	for i, p := range want {
		s.log = append(s.log, fmt.Sprintf("  to %d: %s", p.To, modeltest.Describe(p.Bytes)))
		s.c.packets.Add(1)
		switch {
		case i >= len(sent):
			return fmt.Errorf("upstream's MPE has not sent %s", modeltest.Describe(p.Bytes))
		case sent[i].rank != p.To || !bytes.Equal(sent[i].b, p.Bytes):
			return fmt.Errorf("upstream's MPE has sent %s to %d, the model %s to %d: %x, %x",
				modeltest.Describe(sent[i].b), sent[i].rank, modeltest.Describe(p.Bytes), p.To, sent[i].b, p.Bytes)
		}
	}
	if n := len(want); n < len(sent) {
		return fmt.Errorf("upstream's MPE has sent %s to %d, the model has not", modeltest.Describe(sent[n].b),
			sent[n].rank)
	}
	return nil
}
