package life

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
)

const (
	// soakDuration is the environment variable that sets the duration of TestSoak.
	soakDuration = "ZRLMPI_LIFE_DURATION"
	// ranksEach is the number of ranks per daemon.
	ranksEach = 4
	// maxMessage is the maximum message length in bytes. Messages over 64 KiB use rendezvous.
	maxMessage = 150_000
	// replyTime is the time after which a program without a reply checks whether the peer exists. If it does not, the
	// packets of the check end the receive.
	replyTime = 3 * time.Second
	// hangTime is the time limit of an exchange.
	hangTime = 40 * time.Second

	tagRequest = 1
	// replies use a separate communicator, and the tag named in the request.
	commReplies = 2
)

// cluster is the set of processes in the soak test.
type cluster struct {
	t       *testing.T
	ranks   int
	daemons []*process
	relay   *relay
	http    []string
	// steady is the number of daemons that are never ended, starting with the first one. Programs of some of their
	// ranks are (isProgram).
	steady int

	exchanges, lost atomic.Uint64
	failures        chan error
}

// newCluster starts the given number of daemons.
func newCluster(t *testing.T, daemons int) *cluster {
	c := &cluster{t: t, ranks: daemons * ranksEach, steady: daemons * 3 / 4, failures: make(chan error, 16)}
	at, front, pages := newPlace(t), newPlace(t), newPlace(t)
	var own, fronts []string
	for rank := range c.ranks {
		own, fronts = append(own, at.addr(rank)), append(fronts, front.addr(rank))
	}
	c.relay = newRelay(t, own, fronts, 0.01, 0.005)
	for i := range daemons {
		listen := pages.addr(i)
		more := fmt.Sprintf("http: {listen: %q}\nstop_timeout: 1s\nlog: {level: error}\ndefaults: {profile: "+
			"extended, transport: udp, deadlines: {ack: 5s}}", listen)
		var entries []string
		for rank := range c.ranks {
			if rank/ranksEach == i {
				entries = append(entries, fmt.Sprintf("  - {rank: %d, address: %q, run: host}", rank, own[rank]))
			} else {
				entries = append(entries,
					fmt.Sprintf("  - {rank: %d, address: %q, peer: software}", rank, fronts[rank]))
			}
		}
		c.daemons = append(c.daemons, newProcess(t, more, entries...))
		c.http = append(c.http, "http://"+listen+"/metrics")
	}
	for _, d := range c.daemons {
		d.start()
	}
	return c
}

// isProgram reports whether the program of a rank is a process that the test kills.
func (c *cluster) isProgram(rank int) bool {
	d := rank / ranksEach
	return d < c.steady && d >= c.steady*2/3 && rank%ranksEach == ranksEach-1
}

// isSteady reports whether the test never ends the rank or its program.
func (c *cluster) isSteady(rank int) bool { return rank/ranksEach < c.steady && !c.isProgram(rank) }

// member runs the program of a rank, and attaches it again each time the rank was ended.
func (c *cluster) member(ctx context.Context, rank int) {
	socket := c.daemons[rank/ranksEach].attachSocket()
	for ctx.Err() == nil {
		dialing, cancel := context.WithTimeout(ctx, time.Second)
		d, err := attach.Dial(dialing, socket, rank)
		cancel()
		if err != nil { // the daemon is starting
			pause(ctx, 20*time.Millisecond)
			continue
		}
		var both sync.WaitGroup
		both.Go(func() { _ = echo(ctx, d) })
		both.Go(func() { c.ask(ctx, d) })
		both.Wait()
		_ = d.Close(over())
	}
}

// pause waits for d. It determines the load of the soak, and must not be used to wait for a state.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// ask exchanges messages with other ranks until ctx or the device ends.
func (c *cluster) ask(ctx context.Context, d mpe.Device) {
	request, reply := make([]byte, maxMessage), make([]byte, maxMessage)
	for number := uint32(1); ctx.Err() == nil; number++ {
		pause(ctx, time.Duration(50+rand.IntN(200))*time.Millisecond)
		drain(ctx, d, reply)
		peer := rand.IntN(c.ranks)
		if peer == d.Rank() {
			continue
		}
		n := 8 + rand.IntN(2000)
		if rand.IntN(20) == 0 {
			n = 8 + rand.IntN(maxMessage-8)
		}
		fill(request[:n], uint32(d.Rank()), number)
		err := c.exchange(ctx, d, peer, number, request[:n], reply[:n])
		strict := c.isSteady(d.Rank()) && c.isSteady(peer)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && string(request[:n]) != string(reply[:n]):
			c.fail(fmt.Errorf("rank %d: wrong reply from rank %d", d.Rank(), peer))
		case err == nil:
			c.exchanges.Add(1)
		case errors.Is(err, mpe.ErrClosed):
			return
		case strict || errors.Is(err, errHangs) || !isLost(err) && !errors.Is(err, errNoReply):
			c.fail(fmt.Errorf("rank %d with rank %d: %w", d.Rank(), peer, err))
		default:
			c.lost.Add(1)
		}
	}
}

func (c *cluster) fail(err error) {
	select {
	case c.failures <- err:
	default:
	}
}

// fill fills in a message that differs from all others. The first word is the tag of its reply.
func fill(b []byte, rank, number uint32) {
	rng := rand.New(rand.NewPCG(uint64(rank), uint64(number)))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	binary.LittleEndian.PutUint32(b, number)
}

var (
	errHangs   = errors.New("an operation does not end by itself")
	errNoReply = errors.New("the peer is there, and its program has lost the message")
)

// exchange sends a request to peer and receives the reply from peer.
func (c *cluster) exchange(ctx context.Context, d mpe.Device, peer int, number uint32, request, reply []byte) error {
	ctx, cancel := context.WithTimeoutCause(ctx, hangTime, errHangs)
	defer cancel()
	receive, err := d.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: peer, Tag: int(number), Comm: commReplies,
		Buf: reply})
	if err != nil {
		return err
	}
	defer receive.Free()
	if _, err := operate(ctx, d,
		mpe.Operation{Kind: mpe.OpSend, Peer: peer, Tag: tagRequest, Buf: request}); err != nil {
		if _, rerr := receive.Await(over()); rerr == nil {
			return fmt.Errorf("a reply to a request that failed: %w", err)
		}
		return err
	}
	ended := make(chan struct{}, 1)
	receive.Notify(ended)
	waiting, stop := context.WithTimeout(ctx, replyTime)
	err = d.Await(waiting, ended)
	stop()
	receive.Notify(nil)
	if err == nil {
		_, err := receive.Await(ctx)
		return err
	}
	// The request may have been lost with a process. A synchronous send shows whether the rank is there; then its
	// program is there too, or will be.
	if _, err := operate(ctx, d,
		mpe.Operation{Kind: mpe.OpSendSync, Peer: peer, Tag: tagRequest, Buf: again(request, number)}); err != nil {
		_, _ = receive.Await(over())
		return err
	}
	if _, done, err := receive.Test(); done {
		return err
	}
	if c.isSteady(d.Rank()) && c.isSteady(peer) {
		_, err := receive.Await(ctx)
		return err
	}
	waiting, stop = context.WithTimeoutCause(ctx, replyTime, errNoReply)
	defer stop()
	_, err = receive.Await(waiting)
	return err
}

// again returns a request whose reply will not be received.
func again(request []byte, number uint32) []byte {
	b := slices.Clone(request[:8])
	binary.LittleEndian.PutUint32(b, number|1<<30)
	return b
}

// drain receives replies that came too late.
func drain(ctx context.Context, d mpe.Device, buf []byte) {
	for {
		st, found, err := d.Probe(ctx, mpe.Match{Source: mpe.AnySource, Tag: mpe.AnyTag, Comm: commReplies}, false)
		if !found || err != nil {
			return
		}
		if _, err := operate(ctx, d,
			mpe.Operation{Kind: mpe.OpRecv, Peer: st.Peer, Tag: st.Tag, Comm: commReplies, Buf: buf}); err != nil {
			return
		}
	}
}

// child is the program of a rank in a separate process.
type child struct{ cmd *exec.Cmd }

func startChild(t *testing.T, socket string, rank int) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), programSocket+"="+socket, fmt.Sprintf("%s=%d", programRank, rank))
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "attached\n" {
		t.Fatalf("the program says %q, %v", line, err)
	}
	return &child{cmd}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// sample is the resource usage of the steady processes.
type sample struct {
	at time.Duration
	// for each steady daemon and the test process; memory in KiB
	heap, anonymous, shared, descriptors, goroutines []int
	// number of files in /dev/shm and in the socket folders
	files int
}

// take takes a sample.
func (c *cluster) take(begun time.Time) sample {
	c.t.Helper()
	s := sample{at: time.Since(begun)}
	add := func(pid, heap, goroutines int) {
		s.heap = append(s.heap, heap>>10)
		s.anonymous = append(s.anonymous, residentOf(c.t, pid, "RssAnon"))
		s.shared = append(s.shared, residentOf(c.t, pid, "RssShmem"))
		fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			c.t.Fatal(err)
		}
		s.descriptors = append(s.descriptors, len(fds))
		s.goroutines = append(s.goroutines, goroutines)
	}
	for i, d := range c.daemons[:c.steady] {
		metrics := metricsOf(c.t, c.http[i])
		add(d.cmd.Process.Pid, metrics("go_memstats_heap_inuse_bytes"), metrics("go_goroutines"))
	}
	var own runtime.MemStats
	runtime.ReadMemStats(&own)
	add(os.Getpid(), int(own.HeapInuse), runtime.NumGoroutine())
	shared, err := os.ReadDir("/dev/shm")
	if err != nil {
		c.t.Fatal(err)
	}
	s.files = len(shared)
	for _, d := range c.daemons {
		list, err := os.ReadDir(filepath.Dir(d.socket))
		if err != nil {
			c.t.Fatal(err)
		}
		s.files += len(list)
	}
	return s
}

// residentOf returns a kind of resident memory of a process, in KiB.
func residentOf(t *testing.T, pid int, kind string) (kib int) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), kind+":")
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		t.Fatal(err)
	}
	return kib
}

// metricsOf fetches a daemon's metrics and returns a function that looks them up.
func metricsOf(t *testing.T, url string) func(name string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return func(name string) int {
		t.Helper()
		var value float64
		_, rest, _ := strings.Cut(string(text), "\n"+name+" ")
		if _, err := fmt.Sscan(rest, &value); err != nil {
			t.Fatal(name, err)
		}
		return int(value)
	}
}

// maxShared is the maximum memory in KiB that a program shares with its daemon: two rings and an arena.
const maxShared = 19 << 10

// judge compares the last quarter of the samples with the second, and fails the test if the resource usage of a process
// has grown beyond noise. Memory shared with programs fills up to its length on first use. So does the race detector's
// memory for each byte that is touched, so with the race detector only the heap is judged.
func judge(t *testing.T, ranks int, samples []sample) {
	t.Helper()
	quarter := len(samples) / 4
	if quarter == 0 {
		t.Fatalf("%d samples", len(samples))
	}
	compare := func(what string, of func(s sample) []int, share float64, slack int) {
		for i := range of(samples[0]) {
			var before, after []int
			for _, s := range samples[quarter : 2*quarter] {
				before = append(before, of(s)[i])
			}
			for _, s := range samples[len(samples)-quarter:] {
				after = append(after, of(s)[i])
			}
			slices.Sort(before)
			slices.Sort(after)
			was, is := before[len(before)/2], after[len(after)/2]
			t.Logf("process %d, %s: %d, then %d", i, what, was, is)
			if float64(is) > float64(was)*share+float64(slack) {
				t.Errorf("process %d, %s: grown from %d to %d", i, what, was, is)
			}
		}
	}
	compare("heap in KiB", func(s sample) []int { return s.heap }, 1.1, 16<<10)
	if !race.Enabled {
		compare("anonymous memory in KiB", func(s sample) []int { return s.anonymous }, 1.1, 16<<10)
	}
	for i, is := range samples[len(samples)-1].shared {
		programs := ranksEach
		if i == len(samples[0].shared)-1 {
			programs = ranks
		}
		if is > programs*maxShared {
			t.Errorf("process %d shares %d KiB with programs, of which %d may be attached", i, is, programs)
		}
	}
	compare("descriptors", func(s sample) []int { return s.descriptors }, 1, 16)
	compare("goroutines", func(s sample) []int { return s.goroutines }, 1, 32)
	compare("files", func(s sample) []int { return []int{s.files} }, 1, 0)
}

// TestSoak exchanges messages between ranks over a lossy network while daemons and programs are killed, stopped,
// terminated and restarted. It checks that no operation fails between ranks that are not ended, that every other
// operation completes, and that the resource usage of the processes does not grow.
func TestSoak(t *testing.T) {
	duration, daemons := 6*time.Second, 4
	if s := os.Getenv(soakDuration); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		daemons = 16
	}
	c := newCluster(t, daemons)
	ctx, cancel := context.WithCancel(t.Context())
	var members sync.WaitGroup
	defer members.Wait()
	defer cancel()
	children := map[int]*child{}
	socket := func(rank int) string { return c.daemons[rank/ranksEach].attachSocket() }
	var programs []int
	for rank := range c.ranks {
		if c.isProgram(rank) {
			programs = append(programs, rank)
			children[rank] = startChild(t, socket(rank), rank)
			defer func() { children[rank].kill() }()
			continue
		}
		members.Go(func() { c.member(ctx, rank) })
	}
	begun := time.Now()
	every := max(duration/120, 500*time.Millisecond)
	samples := []sample{}
	var kills, terminations, stops, programKills int
	for next := every; time.Since(begun) < duration || len(samples) < 8; {
		pause(ctx, min(duration/10, time.Second))
		victim := c.daemons[c.steady+rand.IntN(len(c.daemons)-c.steady)]
		switch rand.IntN(4) {
		case 0:
			kills++
			victim.kill()
			pause(ctx, time.Duration(rand.IntN(1000))*time.Millisecond)
			victim.start()
		case 1:
			terminations++
			victim.terminate()
			victim.start()
		case 2:
			stops++
			victim.stop()
			pause(ctx, time.Duration(rand.IntN(1000))*time.Millisecond)
			victim.signal(syscall.SIGCONT)
		default:
			programKills++
			rank := programs[rand.IntN(len(programs))]
			children[rank].kill()
			children[rank] = startChild(t, socket(rank), rank)
		}
		select {
		case err := <-c.failures:
			t.Errorf("after %v: %v", time.Since(begun).Round(time.Second), err)
		default:
		}
		if time.Since(begun) >= next {
			next += every
			s := c.take(begun)
			samples = append(samples, s)
			t.Logf("%v: %d exchanges, %d lost; heap %v, anonymous %v, shared %v KiB, descriptors %v, goroutines "+
				"%v, %d files",
				s.at.Round(time.Second), c.exchanges.Load(), c.lost.Load(), s.heap, s.anonymous, s.shared,
				s.descriptors, s.goroutines, s.files)
		}
	}
	cancel()
	members.Wait()
	close(c.failures)
	for err := range c.failures {
		t.Error(err)
	}
	judge(t, c.ranks, samples)
	t.Logf("%d ranks, %v: %d daemons killed, %d terminated, %d stopped, %d programs killed; %d exchanges, %d that an "+
		"end interrupted; %d packets, %d lost, %d copied",
		c.ranks, duration, kills, terminations, stops, programKills, c.exchanges.Load(), c.lost.Load(),
		c.relay.passed.Load(), c.relay.lost.Load(), c.relay.copied.Load())
	if c.exchanges.Load() < 100 || c.relay.lost.Load() == 0 {
		t.Error("too few exchanges")
	}
	for _, d := range c.daemons {
		d.terminate()
		if list, _ := filepath.Glob(filepath.Join(filepath.Dir(d.socket), "*.sock")); len(list) > 0 {
			t.Errorf("left over: %v", list)
		}
	}
}
