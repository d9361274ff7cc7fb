package integration_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

const (
	// lossesEnv sets the total number of datagrams to lose.
	lossesEnv = "ZRLMPI_UPSTREAM_LOSSES"
	// busyEnv sets the number of busy processes per processor that run during the test.
	busyEnv     = "ZRLMPI_UPSTREAM_BUSY"
	lossWorkers = 6
	// lossTimeout is longer than any timeout of a host or of upstream's library.
	lossTimeout = 20 * time.Second
)

// TestLossesBetweenAHostAndUpstream exchanges messages of 347 to 5001 words between a host and a program on upstream's
// CPU library. A relay between them loses one datagram of each exchange, chosen at random. Either side may report an
// error or wait forever for a packet that the library does not retransmit, but neither may accept wrong words as the
// message.
func TestLossesBetweenAHostAndUpstream(t *testing.T) {
	path := buildCalls(t)
	losses, err := strconv.Atoi(cmpEnv(lossesEnv, "60"))
	if err != nil {
		t.Fatalf("%s: %v", lossesEnv, err)
	}
	keepBusy(t)
	tally := lossTally{outcomes: map[outcome]int{}}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range lossWorkers {
		wg.Go(func() {
			l := &lossLab{t: t, path: path, ips: labIPs(t)}
			defer l.stop()
			for i := next.Add(1); i <= int64(losses); i = next.Add(1) {
				tally.add(l.lossyExchange(rand.New(rand.NewPCG(uint64(i), 1))))
			}
		})
	}
	wg.Wait()
	tally.report(t, losses)
}

func cmpEnv(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// keepBusy runs busy processes until the test ends.
func keepBusy(t *testing.T) {
	t.Helper()
	n, err := strconv.Atoi(cmpEnv(busyEnv, "0"))
	if err != nil {
		t.Fatalf("%s: %v", busyEnv, err)
	}
	for range n * runtime.NumCPU() {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
}

// outcome is the result of an exchange. If several apply, the first one counts.
type outcome string

const (
	crashed   outcome = "upstream's receiver overran its buffer"
	wrong     outcome = "wrong words, reported as success"
	hung      outcome = "a host's call that did not end"
	failed    outcome = "error at the host"
	waits     outcome = "delivered right, but upstream's program waits forever"
	delivered outcome = "delivered right"
)

// lossTally counts outcomes, in total and by lost datagram.
type lossTally struct {
	mu       sync.Mutex
	outcomes map[outcome]int
	details  map[string]int
	bad      []string
	errors   []string
}

func (c *lossTally) add(o outcome, detail string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[o]++
	if c.details == nil {
		c.details = map[string]int{}
	}
	kind, _, _ := strings.Cut(detail, " lost")
	c.details[fmt.Sprintf("%s lost: %s", kind, o)]++
	switch o {
	case crashed, wrong, hung:
		c.bad = append(c.bad, fmt.Sprintf("%s: %s: %v", o, detail, err))
	case failed:
		c.errors = append(c.errors, fmt.Sprintf("%s: %v", detail, err))
	}
}

func (c *lossTally) report(t *testing.T, losses int) {
	t.Helper()
	t.Logf("%d losses", losses)
	for _, o := range []outcome{delivered, waits, failed, hung, wrong, crashed} {
		t.Logf("%4d %s", c.outcomes[o], o)
	}
	for _, d := range slices.Sorted(maps.Keys(c.details)) {
		t.Logf("     %4d %s", c.details[d], d)
	}
	for _, e := range c.errors {
		t.Log(e)
	}
	for _, b := range c.bad {
		t.Error(b)
	}
}

// labIPs returns the addresses of the host, of the relay as the host, of the program, and of the relay as the program.
func labIPs(t testing.TB) [4]string {
	network := newPlace(t)
	var ips [4]string
	for i := range ips {
		ips[i] = fmt.Sprint(network, i+1)
	}
	return ips
}

// lossLab is a host as rank 0, the program as rank 1, and the relay between them.
type lossLab struct {
	t    *testing.T
	path string
	ips  [4]string
	r    *relay
	e    *mpe.Engine
	p    *callsProgram
}

func (l *lossLab) start() {
	host, hostRelayed, programRelayed, program := l.ips[0], l.ips[1], l.ips[3], l.ips[2]
	if !eventually(func() bool {
		var err error
		l.r, err = newRelay(host, programRelayed, hostRelayed, program)
		return err == nil
	}) {
		l.t.Fatal("the relay's addresses are in use")
	}
	l.e = engineAt(l.t, []string{host, programRelayed}, 0, rankmap.Software, facingUpstream())
	l.p = startCalls(l.t, l.path, 1, []string{hostRelayed, program})
}

func (l *lossLab) stop() {
	if l.r == nil {
		return
	}
	l.p.kill()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	l.e.Close(ctx)
	l.r.close()
	l.r = nil
}

// lossyExchange exchanges messages until a datagram is lost. An exchange may lose no datagram, because the library may
// have sent one of its datagrams earlier.
func (l *lossLab) lossyExchange(rng *rand.Rand) (outcome, string, error) {
	for {
		if o, lost, err := l.exchange(rng); lost != "" || o != delivered {
			return o, lost, err
		}
	}
}

// exchange sends a message in a random direction.
func (l *lossLab) exchange(rng *rand.Rand) (o outcome, detail string, err error) {
	if l.r == nil {
		l.start()
	}
	words := make([]uint32, 347+rng.IntN(5002-347))
	for i := range words {
		words[i] = rng.Uint32()
	}
	datagrams := 3 + (protocol.HeaderLen+len(words)*protocol.WordLen+protocol.MaxDatagram-1)/protocol.MaxDatagram
	l.r.lose(rng.IntN(datagrams))
	ctx, cancel := context.WithTimeout(context.Background(), lossTimeout)
	defer cancel()
	direction := "to upstream"
	if rng.IntN(2) == 0 {
		o, err = l.toUpstream(ctx, words)
	} else {
		direction = "from upstream"
		o, err = l.fromUpstream(ctx, words)
	}
	lost := l.r.lose(-1)
	if o != delivered {
		l.stop()
	}
	if lost == "" && o == delivered {
		return o, "", nil
	}
	return o, fmt.Sprintf("%s, %s lost, %d words", direction, lost, len(words)), err
}

func (l *lossLab) toUpstream(ctx context.Context, words []uint32) (outcome, error) {
	l.p.recv(0, len(words))
	_, err := l.e.Send(ctx, 1, wordBytes(words), mpe.Options{})
	// After an error, the call of the program has already returned or crashed, or never will.
	timeout := lossTimeout
	if err != nil {
		timeout = time.Second
	}
	line, returned, ended := l.line(timeout)
	switch {
	case ended && l.p.overran():
		return crashed, err
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, handshake.ErrTimeout):
		return hung, err
	case err != nil:
		return failed, err
	case !returned:
		return waits, nil
	case line != receivedLine(words):
		return wrong, nil
	}
	return delivered, nil
}

func (l *lossLab) fromUpstream(ctx context.Context, words []uint32) (outcome, error) {
	l.p.send(0, words)
	buf := make([]byte, len(words)*protocol.WordLen)
	st, err := l.e.Recv(ctx, 1, buf, mpe.Options{})
	switch {
	case errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, handshake.ErrTimeout):
		return hung, err
	case err != nil:
		return failed, err
	case int(st.Words) != len(words) || !bytes.Equal(buf, wordBytes(words)):
		return wrong, nil
	}
	if _, returned, _ := l.line(lossTimeout); !returned {
		return waits, nil
	}
	return delivered, nil
}

// line returns the program's output when its call returns. ended reports whether the program exited.
func (l *lossLab) line(timeout time.Duration) (line string, returned, ended bool) {
	select {
	case line, returned = <-l.p.returned:
		return line, returned, !returned
	case <-time.After(timeout):
		return "", false, false
	}
}

func wordBytes(words []uint32) []byte {
	b := make([]byte, 0, len(words)*protocol.WordLen)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// relay forwards datagrams between two ranks. It presents each rank to the other under a separate address.
type relay struct {
	a, b *net.UDPConn
	wg   sync.WaitGroup

	mu   sync.Mutex
	left int    // number of datagrams to forward before one is lost; negative means never
	lost string // description of the lost datagram

	// passing, if not nil, is called before each datagram is forwarded.
	passing func(fromA bool, b []byte)
}

// newRelay starts a relay between a, which reaches b at bRelayed, and b, which reaches a at aRelayed.
func newRelay(a, bRelayed, aRelayed, b string) (*relay, error) {
	at := func(ip string) *net.UDPAddr { return &net.UDPAddr{IP: net.ParseIP(ip), Port: protocol.Port} }
	connA, err := net.ListenUDP("udp4", at(bRelayed))
	if err != nil {
		return nil, err
	}
	connB, err := net.ListenUDP("udp4", at(aRelayed))
	if err != nil {
		connA.Close()
		return nil, err
	}
	r := &relay{a: connA, b: connB, left: -1}
	for _, conn := range []*net.UDPConn{connA, connB} {
		_ = conn.SetReadBuffer(4 << 20)
	}
	r.wg.Go(func() { r.pass(connA, connB, at(b)) })
	r.wg.Go(func() { r.pass(connB, connA, at(a)) })
	return r, nil
}

func (r *relay) pass(from, through *net.UDPConn, to *net.UDPAddr) {
	b := make([]byte, 65536)
	for {
		n, err := from.Read(b)
		if err != nil {
			return
		}
		r.mu.Lock()
		passing := r.passing
		r.mu.Unlock()
		if passing != nil {
			passing(from == r.a, b[:n])
		}
		if !r.loses(b[:n]) {
			_, _ = through.WriteToUDP(b[:n], to)
		}
	}
}

func (r *relay) loses(b []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left--
	if r.left != -1 {
		r.left = max(r.left, -2)
		return false
	}
	r.lost = "a continuation"
	if h, err := protocol.CloudFPGA.Decode(b); err == nil {
		r.lost = h.Type.String()
	}
	return true
}

// lose makes the relay lose one datagram after it has forwarded the given number, or none if that is negative. It
// returns the datagram lost since the last call.
func (r *relay) lose(after int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost := r.lost
	r.left, r.lost = after, ""
	return lost
}

func (r *relay) close() {
	r.a.Close()
	r.b.Close()
	r.wg.Wait()
}
