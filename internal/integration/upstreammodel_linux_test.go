package integration_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/cpumodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	modelScripts = 240
	modelWorkers = 4
	// tick is the maximum deviation of the kernel's timeouts from the requested time.
	tick = 10 * time.Millisecond
)

// errLate reports that the machine was too busy for the timeouts of the script to be distinguished.
var errLate = errors.New("the machine is too busy")

// TestModelAgreesWithUpstream runs random scripts of calls, datagrams, timeouts and stop signals on the model of
// upstream's library and on the library itself. Both must send the same packets and deliver the same words, and overrun
// their buffers in the same cases.
func TestModelAgreesWithUpstream(t *testing.T) {
	path := buildCalls(t)
	var c scriptCounts
	next := atomic.Int64{}
	var wg sync.WaitGroup
	for range modelWorkers {
		network := newPlace(t)
		wg.Go(func() {
			for seed := next.Add(1); seed <= modelScripts; seed = next.Add(1) {
				err := errLate
				for try := 0; try < 5 && errors.Is(err, errLate); try++ {
					err = runScript(t, path, uint64(seed), network, &c)
				}
				switch {
				case errors.Is(err, errLate):
					c.late.Add(1)
				case err != nil:
					t.Errorf("script %d: %v", seed, err)
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d scripts agree, %d of them overran a buffer; %d packets sent, %d timeouts, %d calls returned; "+
		"NOT TESTED, as the machine was too busy: %d", c.agreed.Load(), c.crashes.Load(), c.packets.Load(),
		c.timeouts.Load(),
		c.returned.Load(), c.late.Load())
}

type scriptCounts struct{ agreed, crashes, packets, timeouts, returned, late atomic.Int64 }

// script runs the library as rank 1, together with its model. Ranks 0 and 2, and an address without a rank, belong to
// the test. Model time advances only when both are about to time out, because the library must have received all
// earlier events by then.
type script struct {
	*rand.Rand
	c     *scriptCounts
	p     *callsProgram
	m     *cpumodel.Model
	addr  *net.UDPAddr
	conns []*net.UDPConn // of rank 0, of rank 2, and of no rank
	now   time.Duration
	// peer is the index of the peer rank of the current call, and posted the number of words that the call receives.
	peer, posted int
	// since is the start of the library's current recvfrom, or an earlier time.
	since time.Time

	mu   sync.Mutex
	got  map[int][][]byte // by rank
	at   time.Time        // of the latest packet
	want map[int][][]byte
	log  []string
}

// ranks are the ranks of the addresses.
var ranks = []int{0, 2, -1}

func runScript(t *testing.T, path string, seed uint64, network place, c *scriptCounts) error {
	ip := func(last int) string { return fmt.Sprint(network, last) }
	s := &script{
		Rand: rand.New(rand.NewPCG(seed, 0)), c: c, m: cpumodel.New(cpumodel.Config{Rank: 1, Peers: []int{0, 2}}),
		addr: &net.UDPAddr{IP: net.ParseIP(ip(2)), Port: protocol.Port},
		got:  map[int][][]byte{}, want: map[int][][]byte{},
	}
	for i, last := range []int{1, 3, 9} {
		// Retry, because a program that is being started briefly shares the test's sockets.
		var conn *net.UDPConn
		var err error
		if !eventually(func() bool {
			conn, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(ip(last)), Port: protocol.Port})
			return err == nil
		}) {
			return err
		}
		s.conns = append(s.conns, conn)
		collected := make(chan struct{})
		go func() {
			s.collect(ranks[i], conn)
			close(collected)
		}()
		defer func() {
			conn.Close()
			<-collected
		}()
	}
	s.p = startCalls(t, path, 1, []string{ip(1), ip(2), ip(3)})
	defer s.p.kill()
	err := s.play()
	if err != nil && !errors.Is(err, errLate) {
		err = fmt.Errorf("%w\n%s", err, strings.Join(s.log, "\n"))
	}
	return err
}

func (s *script) collect(rank int, conn *net.UDPConn) {
	b := make([]byte, 65536)
	for {
		n, err := conn.Read(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.got[rank] = append(s.got[rank], bytes.Clone(b[:n]))
		s.at = time.Now()
		s.mu.Unlock()
	}
}

func (s *script) note(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

// play makes calls until the script ends or the library does not return from a call.
func (s *script) play() error {
	for range 3 {
		if err := s.call(); err != nil {
			return err
		}
		for events := 0; s.m.Busy() && events < 14; events++ {
			if err := s.event(); err != nil {
				return err
			}
			if _, crashed := s.m.Crashed(); crashed {
				return s.wantOverrun()
			}
		}
		if s.m.Busy() {
			break
		}
		if err := s.wantReturn(); err != nil {
			return err
		}
	}
	time.Sleep(20 * time.Millisecond) // for packets that must not be sent
	if err := s.compare(); err != nil {
		return err
	}
	select {
	case line := <-s.p.returned:
		return fmt.Errorf("the library is not in the call any more (%q), but the model is: %s", line, s.m.State())
	default:
	}
	s.c.agreed.Add(1)
	return nil
}

var scriptSizes = []int{0, 1, 2, 5, 346, 347, 348, 353, 700, 701, 1001}

func (s *script) call() error {
	s.since = time.Now()
	n := scriptSizes[s.IntN(len(scriptSizes))]
	s.peer, s.posted = s.IntN(2), n
	peer := ranks[s.peer]
	if s.IntN(3) == 0 {
		words := s.words(n)
		s.note("send %d words to %d", n, peer)
		s.p.send(peer, words)
		if err := s.m.Send(s.now, peer, words); err != nil {
			return err
		}
		return s.awaitModel()
	}
	s.note("recv %d words from %d", n, peer)
	s.p.recv(peer, n)
	if err := s.m.Recv(s.now, peer, n); err != nil {
		return err
	}
	return s.awaitModel()
}

func (s *script) words(n int) []uint32 {
	words := make([]uint32, n)
	for i := range words {
		words[i] = s.Uint32()
	}
	return words
}

// incoming is a datagram and the index of its source.
type incoming struct {
	from int
	b    []byte
}

// event performs a random event.
func (s *script) event() error {
	_, timed := s.m.NextEvent()
	switch n := s.IntN(20); {
	case n < 11:
		return s.burst(s.helpful())
	case n < 16:
		return s.burst(s.disturbing())
	case n < 19 && timed:
		return s.timeOut()
	case s.m.State() == "wait for DATA":
		return s.stop()
	}
	return nil
}

func controlPacket(typ protocol.Type, src, dst int) []byte {
	call := protocol.SendInt
	if typ == protocol.ClearToSend || typ == protocol.Ack {
		call = protocol.RecvInt
	}
	return protocol.CloudFPGA.Append(nil, protocol.Header{Dst: uint32(dst), Src: uint32(src), Call: call, Type: typ})
}

// helpful returns datagrams that the current call is likely to be waiting for.
func (s *script) helpful() []incoming {
	peer := s.peer
	rank := ranks[peer]
	switch s.m.State() {
	case "wait for SEND_REQUEST":
		return []incoming{{peer, controlPacket(protocol.SendRequest, rank, 1)}}
	case "wait for CLEAR_TO_SEND":
		return []incoming{{peer, controlPacket(protocol.ClearToSend, rank, 1)}}
	case "wait for ACK":
		return []incoming{{peer, controlPacket(protocol.Ack, rank, 1)}}
	}
	n := s.posted
	if s.IntN(6) == 0 {
		n = scriptSizes[s.IntN(len(scriptSizes))]
	}
	var in []incoming
	for _, d := range s.message(rank, n) {
		in = append(in, incoming{peer, d})
	}
	switch i := s.IntN(len(in)); s.IntN(6) {
	case 0:
		in = slices.Delete(in, i, i+1)
	case 1:
		in = slices.Insert(in, s.IntN(len(in)+1), in[i])
	case 2:
		j := s.IntN(len(in))
		in[i], in[j] = in[j], in[i]
	case 3:
		in = append(in[:i:i], append(s.disturbing(), in[i:]...)...)
	}
	return in
}

func (s *script) message(rank, n int) [][]byte {
	b := protocol.CloudFPGA.Append(nil, protocol.Header{
		Dst: 1, Src: uint32(rank), Size: uint32(n), Call: protocol.SendInt, Type: protocol.Data,
	})
	for _, w := range s.words(n) {
		b = append(b, byte(w), byte(w>>8), byte(w>>16), byte(w>>24))
	}
	return slices.Collect(slices.Chunk(b, protocol.MaxDatagram))
}

// disturbing returns datagrams for which no call is waiting, or near misses.
func (s *script) disturbing() []incoming {
	from := s.IntN(len(ranks))
	rank := s.IntN(3)
	switch s.IntN(9) {
	case 0, 1, 2: // any control packet, possibly too long
		b := controlPacket(protocol.Type(s.IntN(7)), rank, s.IntN(2))
		b[16] = byte(s.IntN(3))
		return []incoming{{from, append(b, make([]byte, s.IntN(2)*s.IntN(40))...)}}
	case 3: // a header with one modified byte
		b := controlPacket(protocol.Type(1+s.IntN(4)), rank, 1)
		i := s.IntN(len(b))
		if i >= 9 && i < 12 {
			i = 8 // not a source rank of a million, because the library would read memory far outside its table
		}
		b[i] ^= byte(1 + s.IntN(255))
		if b[8] > 140 {
			b[8] = 130 // certainly out of bounds
		}
		return []incoming{{from, b}}
	case 4: // a header followed by a truncated one
		b := controlPacket(protocol.Type(1+s.IntN(4)), rank, 7)
		d := controlPacket(protocol.Type(1+s.IntN(4)), rank, 1)
		return []incoming{{from, b}, {from, d[:s.IntN(len(d)+1)]}}
	case 5, 6: // a datagram of a DATA message from any rank
		d := s.message(rank, scriptSizes[s.IntN(len(scriptSizes))])
		return []incoming{{from, d[s.IntN(len(d))]}}
	}
	b := make([]byte, 1+s.IntN(protocol.MaxDatagram))
	for i := range b {
		b[i] = byte(s.Uint32())
	}
	b[0] = 0 // the library may combine it with old memory contents into a start mark
	return []incoming{{from, b}}
}

// burst delivers datagrams to both.
func (s *script) burst(in []incoming) error {
	before := time.Now()
	for _, d := range in {
		s.note("%d bytes from %d: %x", len(d.b), ranks[d.from], d.b[:min(len(d.b), 32)])
		if _, err := s.conns[d.from].WriteToUDP(d.b, s.addr); err != nil {
			return err
		}
	}
	if err := s.inTime(); err != nil {
		return err
	}
	s.since = before
	for _, d := range in {
		s.m.Datagram(s.now, ranks[d.from], d.b)
	}
	return s.awaitModel()
}

// inTime returns errLate if the library's timeout may have expired.
func (s *script) inTime() error {
	at, timed := s.m.NextEvent()
	if timed && time.Since(s.since) > at-s.now-tick {
		return errLate
	}
	return nil
}

// timeOut waits for the timeout of both.
func (s *script) timeOut() error {
	at, _ := s.m.NextEvent()
	least := at - s.now
	s.note("timeout of %v", least)
	s.now = at
	s.m.Tick(at)
	s.c.timeouts.Add(1)
	due := s.since.Add(least)
	s.since = due
	if err := s.awaitModel(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if early := due.Sub(s.at); early > tick {
		return fmt.Errorf("the library's timeout of %v expired %v early", least, early)
	}
	return nil
}

// stop stops the library by a signal and continues it.
func (s *script) stop() error {
	s.note("stopped and continued")
	before := time.Now()
	process := s.p.cmd.Process
	if err := process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if !eventually(func() bool { return s.runState() == 'T' }) {
		return errLate
	}
	if err := process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := s.inTime(); err != nil {
		return err
	}
	s.since = before
	s.m.Stop(s.now, 1)
	s.now++
	s.m.Tick(s.now)
	return s.awaitModel()
}

// awaitModel waits until the library has sent the packets that the model sent, and waits again.
func (s *script) awaitModel() error {
	for _, p := range s.m.TakePackets() {
		s.want[p.To] = append(s.want[p.To], p.Bytes)
		s.c.packets.Add(1)
		s.note("to %d: %x", p.To, p.Bytes[:min(len(p.Bytes), 32)])
	}
	if _, crashed := s.m.Crashed(); crashed {
		return nil
	}
	if !eventually(s.settled) {
		return fmt.Errorf("the library, in state %c with %d bytes unread, has not sent the model's packets: %v",
			s.runState(), s.unread(), s.compare())
	}
	if s.runState() == 'Z' {
		for range s.p.returned {
		}
		return fmt.Errorf("the library exited, the model did not: %v\n%s", s.p.err, s.p.stderr.String())
	}
	return s.compare()
}

// settled reports whether the library has exited, or has sent its packets, has read its socket as far as the current
// call does, and sleeps.
func (s *script) settled() bool {
	if s.runState() == 'Z' {
		return true
	}
	s.mu.Lock()
	sent := len(s.got[0]) >= len(s.want[0]) && len(s.got[2]) >= len(s.want[2])
	s.mu.Unlock()
	read := func() bool { return !s.m.Busy() || s.unread() == 0 }
	return sent && read() && s.runState() == 'S' && read()
}

func eventually(f func() bool) bool {
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Microsecond) {
		if f() {
			return true
		}
	}
	return false
}

// runState returns the state of the library's process: S for sleeping, T for stopped, Z for exited.
func (s *script) runState() byte {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.p.cmd.Process.Pid))
	if _, after, ok := bytes.Cut(b, []byte(") ")); ok && err == nil {
		return after[0]
	}
	return 'Z'
}

// unread returns the number of unread bytes in the library's socket.
func (s *script) unread() int {
	b, err := os.ReadFile("/proc/net/udp")
	if err != nil {
		return -1
	}
	ip := s.addr.IP.To4()
	local := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], s.addr.Port)
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) > 4 && f[1] == local {
			var tx, rx int
			if _, err := fmt.Sscanf(f[4], "%x:%x", &tx, &rx); err != nil {
				return -1
			}
			return rx
		}
	}
	return -1
}

// compare compares all packets sent so far.
func (s *script) compare() error {
	if err := s.inTime(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, rank := range ranks {
		got, want := s.got[rank], s.want[rank]
		for i := range max(len(got), len(want)) {
			switch {
			case i >= len(got):
				return fmt.Errorf("packet %d to rank %d is missing: %x", i, rank, want[i][:32])
			case i >= len(want):
				return fmt.Errorf("packet %d to rank %d should not be: %x", i, rank, got[i][:min(len(got[i]), 32)])
			case !bytes.Equal(got[i], want[i]):
				return fmt.Errorf("packet %d to rank %d: the library sent %d bytes, %x, the model %d, %x",
					i, rank, len(got[i]), got[i][:min(len(got[i]), 32)], len(want[i]), want[i][:min(len(want[i]), 32)])
			}
		}
	}
	return nil
}

func (s *script) wantReturn() error {
	s.c.returned.Add(1)
	want := "sent"
	if words, _ := s.m.Result(); words != nil {
		want = receivedLine(words)
	}
	select {
	case line := <-s.p.returned:
		if line != want {
			return fmt.Errorf("the library returned %.100q, the model %.100q", line, want)
		}
		return nil
	case <-time.After(6 * time.Second):
		return fmt.Errorf("the model has returned, the library has not")
	}
}

func (s *script) wantOverrun() error {
	why, _ := s.m.Crashed()
	select {
	case line, ok := <-s.p.returned:
		if ok || !s.p.overran() {
			return fmt.Errorf("the model has crashed (%s), the library not: %.100q, %v", why, line, s.p.err)
		}
	case <-time.After(6 * time.Second):
		return fmt.Errorf("the model has crashed (%s), the library not", why)
	}
	s.c.agreed.Add(1)
	s.c.crashes.Add(1)
	return s.compare()
}
