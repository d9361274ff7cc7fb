package life

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

const (
	// pathsDuration is the environment variable that sets the duration of TestPaths, and pathsSeed the one that sets its
	// seed.
	pathsDuration, pathsSeed = "ZRLMPI_PATHS_DURATION", "ZRLMPI_PATHS_SEED"
	// messagePause is the pause of a pair after each message.
	messagePause = 10 * time.Millisecond
	// maxRecovery is the time within which pairs of profile extended must recover, if those by sockets do.
	maxRecovery = time.Second
	// longestMessage is the length of the longest message in bytes, and longestShort the one of profile cloudfpga, which
	// fills a datagram.
	longestMessage, longestShort = 100_000, 346 * 4
)

// ways names what carries the datagrams of a pair of ranks: AF_XDP at both ends, at one end, or at none.
var ways = [...]string{"AF_XDP", "AF_XDP, socket", "socket"}

// pathHosts are two hosts whose network changes, with the daemons of both.
type pathHosts struct {
	t     *testing.T
	hosts [2]netnstest.Host
	rng   *rand.Rand
	nft   string
	tc    string
	// daemons are, on each host, the one whose ranks use AF_XDP and the one whose ranks use the socket.
	daemons [2][2]*process
	pairs   []*pathPair
	v6      bool
	// stopFlood ends the flood in progress.
	stopFlood func()
}

// hostAddress returns the address of a host. The other addresses of the host have a higher number.
func hostAddress(host, number int, v6 bool) netip.Addr {
	if v6 {
		return netip.MustParseAddr(fmt.Sprintf("fd09::%d", 1+host+number))
	}
	return netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + host + number)})
}

// otherAddress is the number of a second address of each host, which no rank uses.
const otherAddress = 10

// newPathHosts starts the hosts and the daemons. The program is attached in the driver's mode on the second host.
func newPathHosts(t *testing.T, seed uint64, v6 bool) *pathHosts {
	const what = "AF_XDP while the network changes"
	h := &pathHosts{t: t, v6: v6, rng: rand.New(rand.NewPCG(seed, 1)), hosts: netnstest.Pair(t, what, [2]string{}),
		nft: needs.Program(t, what, "nft", "nftables"), tc: needs.Program(t, what, "tc", "iproute2")}
	for i, host := range h.hosts {
		for key, value := range map[string]string{
			"net.ipv4.conf.eth0.arp_notify": "1", "net.ipv6.conf.eth0.ndisc_notify": "1", // announce hardware addresses
			"net.ipv6.conf.eth0.keep_addr_on_down": "1", "net.ipv6.conf.eth0.accept_dad": "0",
		} {
			host.Set(key, value)
		}
		host.IP(fmt.Sprintf("addr add %v/64 dev eth0 nodad", hostAddress(i, 0, true)),
			fmt.Sprintf("addr add %v/32 dev eth0", hostAddress(i, otherAddress, false)),
			fmt.Sprintf("addr add %v/128 dev eth0 nodad", hostAddress(i, otherAddress, true)))
	}
	if err := h.hosts[1].SetFeature("eth0", unix.ETHTOOL_SGRO, 1); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"cloudfpga", "extended"} {
		for way := range ways {
			h.pairs = append(h.pairs, &pathPair{hosts: h, number: len(h.pairs), profile: profile, way: way,
				failed: make(map[uint32]bool), recovered: make(chan time.Duration, 1)})
		}
	}
	h.startDaemons()
	for _, p := range h.pairs {
		for i := range p.ends {
			p.ends[i] = p.daemon(i).attach(p.rank(i))
		}
	}
	return h
}

func (h *pathHosts) startDaemons() {
	const common = "http: {listen: \"\"}\nlog: {level: error}\n" +
		"defaults: {transport: udp, path: %s, deadlines: {ack: 5s, data: 5s}}"
	for i := range h.hosts {
		for _, byPath := range []int{0, 1} {
			path := "kernel"
			if byPath == 0 {
				path = []string{"xdp", "auto"}[i]
			}
			var ranks []string
			for _, p := range h.pairs {
				for end := range p.ends {
					role := "peer: software"
					switch {
					case end != i:
						role += ", link: {profile: " + p.profile + "}"
					case p.usesPath(end) == (byPath == 0):
						role = "run: host"
					}
					ranks = append(ranks, fmt.Sprintf("  - {rank: %d, address: %q, %s}", p.rank(end), p.address(end), role))
				}
			}
			d := newProcess(h.t, fmt.Sprintf(common, path), ranks...)
			d.host = &h.hosts[i]
			d.start()
			h.daemons[i][byPath] = d
		}
	}
}

// pathPair is a pair of ranks, one on each host, that exchange messages.
type pathPair struct {
	hosts   *pathHosts
	number  int
	profile string
	way     int
	ends    [2]*attach.Client
	// failed contains the numbers of messages whose send has failed, and which may arrive nevertheless.
	failed map[uint32]bool

	messages atomic.Int64
	// mu guards the rest. since is the end of the last change, until the pair has recovered from it, and seen the times
	// at which each end has received a message since.
	mu    sync.Mutex
	since time.Time
	seen  [2]time.Time
	// quiet is set while the network does not change and the pair has recovered. slowest is the duration of the slowest
	// message in such times.
	quiet   bool
	slowest time.Duration
	// errors contains the errors since they were last taken.
	errors    []string
	recovered chan time.Duration
}

func (p *pathPair) rank(end int) int { return 2*p.number + end }

func (p *pathPair) usesPath(end int) bool { return p.way == 0 || p.way == 1 && end == 0 }

func (p *pathPair) address(end int) netip.AddrPort {
	return netip.AddrPortFrom(hostAddress(end, 0, p.hosts.v6), uint16(2718+p.number))
}

func (p *pathPair) daemon(end int) *process {
	if p.usesPath(end) {
		return p.hosts.daemons[end][0]
	}
	return p.hosts.daemons[end][1]
}

func (p *pathPair) String() string {
	return p.profile + " by " + ways[p.way]
}

// message returns a message. Its first word is its number.
func (p *pathPair) message(number uint32) []byte {
	rng := rand.New(rand.NewPCG(uint64(p.number), uint64(number)))
	n := 4 * (1 + rng.IntN(longestShort/4))
	if p.profile == "extended" && rng.IntN(20) == 0 {
		n = 4 + rng.IntN(longestMessage-4)
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	binary.LittleEndian.PutUint32(b, number)
	return b
}

// run exchanges messages, one at a time in alternating directions, until ctx is done.
func (p *pathPair) run(ctx context.Context) {
	buf := make([]byte, longestMessage)
	for number := uint32(1); ctx.Err() == nil; number++ {
		p.mu.Lock()
		wasQuiet := p.quiet
		p.mu.Unlock()
		start := time.Now()
		err := p.exchange(ctx, number, buf)
		p.mu.Lock()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			p.errors = append(p.errors, err.Error())
		default:
			p.messages.Add(1)
			if p.quiet && wasQuiet {
				p.slowest = max(p.slowest, time.Since(start))
			}
			p.note(int(number)%2, time.Now())
		}
		p.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			p.startOver(ctx, number)
		}
		pause(ctx, messagePause)
	}
}

// note records that an end has received a message. The caller holds mu.
func (p *pathPair) note(end int, at time.Time) {
	if p.since.IsZero() || !p.seen[end].IsZero() {
		return
	}
	p.seen[end] = at
	if !p.seen[1-end].IsZero() {
		p.recovered <- at.Sub(p.since)
		p.since, p.quiet = time.Time{}, true
	}
}

// exchange sends a message. An error that breaks a promise fails the test; other ones are returned.
func (p *pathPair) exchange(ctx context.Context, number uint32, buf []byte) error {
	to := int(number) % 2
	from := 1 - to
	want := p.message(number)
	receive := func() (mpe.Op, error) {
		return p.ends[to].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: p.rank(from), Buf: buf})
	}
	receiving, err := receive()
	if err != nil {
		return err
	}
	_, sent := operate(ctx, p.ends[from], mpe.Operation{Kind: mpe.OpSend, Peer: p.rank(to), Buf: want})
	for {
		waiting, cancel := context.WithTimeoutCause(ctx, hangTime, errHangs)
		if sent != nil {
			cancel()
		}
		st, received := receiving.Await(waiting)
		cancel()
		n := st.Bytes
		receiving.Free()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case received == nil && bytes.Equal(buf[:n], want):
			return p.check("send", sent)
		case received == nil && n >= 4 && p.failed[binary.LittleEndian.Uint32(buf)] &&
			bytes.Equal(buf[:n], p.message(binary.LittleEndian.Uint32(buf))):
			// an earlier message, whose send failed
		case received == nil:
			p.hosts.t.Errorf("%v: message %d: wrong bytes: %d, want %d", p, number, n, len(want))
			return errors.New("wrong bytes")
		case sent != nil:
			return p.check("send", sent)
		case errors.Is(received, handshake.ErrTimeout): // the sender may retransmit
			if err := p.check("receive", received); err != nil {
				return err
			}
		default:
			p.hosts.t.Errorf("%v: message %d was sent with success, and not received: %v", p, number, received)
			return received
		}
		if receiving, err = receive(); err != nil {
			return err
		}
	}
}

// check fails the test because of an error that is not a timeout of profile cloudfpga.
func (p *pathPair) check(call string, err error) error {
	if err == nil {
		return nil
	}
	if p.profile != "cloudfpga" || !errors.Is(err, handshake.ErrTimeout) {
		p.hosts.t.Errorf("%v: %s: %v", p, call, err)
	}
	return fmt.Errorf("%s: %w", call, err)
}

// startOver makes both ends of a pair start over after a failed message, when nothing is in transit.
func (p *pathPair) startOver(ctx context.Context, number uint32) {
	p.failed[number] = true
	if p.profile != "cloudfpga" {
		return
	}
	pause(ctx, 200*time.Millisecond)
	for end := range p.ends {
		request := query.Request{Kind: query.Reset, Rank: p.rank(end), Peer: p.rank(1 - end)}
		if err := query.Do(ctx, p.daemon(end).client.Handle, request); err != nil && ctx.Err() == nil {
			p.hosts.t.Errorf("%v: %v", p, err)
		}
	}
}

// change is a kind of change of the network.
type change struct {
	name string
	// begin and end make and undo the change on a host. end may be nil.
	begin, end func(h *pathHosts, host int)
	// longest is the longest time between them.
	longest time.Duration
}

// lines returns a function that executes commands of the program ip for the address of the host itself, or of the
// other one.
func lines(ofPeer bool, list ...string) func(h *pathHosts, host int) {
	return func(h *pathHosts, host int) {
		of := host
		if ofPeer {
			of = 1 - host
		}
		words := strings.NewReplacer("IP4", hostAddress(of, 0, false).String(), "IP6", hostAddress(of, 0, true).String(),
			"VIA4", hostAddress(of, otherAddress, false).String(), "VIA6", hostAddress(of, otherAddress, true).String(),
			"RANDOM", fmt.Sprintf("02:00:00:00:%02x:%02x", h.rng.IntN(256), h.rng.IntN(256)))
		for i := range list {
			h.hosts[host].IP(words.Replace(list[i]))
		}
	}
}

// filter returns a function that adds a rule to the packet filter, and unfilter removes it.
func filter(rule string) func(h *pathHosts, host int) {
	return func(h *pathHosts, host int) {
		h.hosts[host].Run(h.nft, "table inet soak { chain in { type filter hook input priority 0; "+rule+"; }; }")
	}
}

func unfilter(h *pathHosts, host int) { h.hosts[host].Run(h.nft, "delete table inet soak") }

var changes = []change{
	{"link down", lines(false, "link set eth0 down"), func(h *pathHosts, host int) {
		h.hosts[host].IP("link set eth0 up")
		for _, other := range h.hosts {
			until(h.t, "the link is up", func() (up bool) {
				other.Do(func() {
					i, err := net.InterfaceByName("eth0")
					up = err == nil && i.Flags&net.FlagRunning != 0
				})
				return up
			})
		}
	}, 500 * time.Millisecond},
	{"neighbours flushed", lines(false, "neigh flush dev eth0"), nil, 0},
	{"another hardware address", lines(false, "link set eth0 address RANDOM"), nil, 0},
	{"address removed", lines(false, "addr del IP4/24 dev eth0", "addr del IP6/64 dev eth0"),
		lines(false, "addr add IP4/24 dev eth0", "addr add IP6/64 dev eth0 nodad"), 500 * time.Millisecond},
	{"MTU of 1300", lines(false, "link set eth0 mtu 1300"), lines(false, "link set eth0 mtu 1500"),
		500 * time.Millisecond},
	{"route through another hop", lines(true, "route replace IP4/32 via VIA4 dev eth0 onlink",
		"route replace IP6/128 via VIA6 dev eth0 onlink"),
		lines(true, "route del IP4/32", "route del IP6/128"), 500 * time.Millisecond},
	{"no route", lines(true, "route replace unreachable IP4/32", "route replace unreachable IP6/128"),
		lines(true, "route del unreachable IP4/32", "route del unreachable IP6/128"), 500 * time.Millisecond},
	{"device queue full", func(h *pathHosts, host int) {
		h.hosts[host].Run(h.tc, strings.Fields("qdisc add dev eth0 root tbf rate 1mbit burst 3000 limit 6000")...)
	}, func(h *pathHosts, host int) {
		h.hosts[host].Run(h.tc, strings.Fields("qdisc del dev eth0 root")...)
	}, 500 * time.Millisecond},
	{"flood", (*pathHosts).flood, (*pathHosts).endFlood, 500 * time.Millisecond},
	{"flood while it does not poll", func(h *pathHosts, host int) {
		for _, d := range h.daemons[host] {
			d.stop()
		}
		h.flood(host)
	}, func(h *pathHosts, host int) {
		h.endFlood(host)
		for _, d := range h.daemons[host] {
			d.signal(syscall.SIGCONT)
		}
	}, 500 * time.Millisecond},
	{"rule of the packet filter", filter("udp dport 53 drop"), unfilter, 7 * time.Second},
	{"packets dropped by a rule", filter("udp dport 2718-2800 drop"), unfilter, 500 * time.Millisecond},
}

// flood sends datagrams of an unknown sender to all ranks of a host, as fast as it can.
func (h *pathHosts) flood(host int) {
	ctx, cancel := context.WithCancel(h.t.Context())
	ended := make(chan struct{})
	var conns []net.Conn
	for _, p := range h.pairs {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: hostAddress(1-host, otherAddress, h.v6).AsSlice()}}
		var c net.Conn
		var err error
		h.hosts[1-host].Do(func() { c, err = dialer.Dial("udp", p.address(host).String()) })
		if err != nil {
			h.t.Fatal(err)
		}
		conns = append(conns, c)
	}
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			for _, c := range conns {
				for range 16 {
					_, _ = c.Write(make([]byte, 64)) // fails at times, as it should
				}
			}
		}
		for _, c := range conns {
			c.Close()
		}
	}()
	h.stopFlood = func() { cancel(); <-ended }
}

func (h *pathHosts) endFlood(int) { h.stopFlood() }

// tally contains the recoveries of pairs after a kind of change.
type tally struct {
	recoveries []time.Duration
	errors     int
}

// results are the tallies by kind of change, profile and way.
type results map[[3]string]*tally

func (r results) of(change string, p *pathPair) *tally {
	key := [3]string{change, p.profile, ways[p.way]}
	if r[key] == nil {
		r[key] = &tally{}
	}
	return r[key]
}

// apply makes a change, undoes it after a random time, and waits until all pairs have recovered.
func (h *pathHosts) apply(c *change, longest time.Duration, all results) {
	host := h.rng.IntN(2)
	for _, p := range h.pairs {
		p.mu.Lock()
		p.quiet = false
		p.mu.Unlock()
	}
	c.begin(h, host)
	if c.end != nil {
		pause(h.t.Context(), time.Duration(h.rng.Int64N(int64(min(c.longest, longest)))))
		c.end(h, host)
	}
	now := time.Now()
	for _, p := range h.pairs {
		p.mu.Lock()
		p.since, p.seen = now, [2]time.Time{}
		p.mu.Unlock()
	}
	late := time.After(hangTime)
	for _, p := range h.pairs {
		tally := all.of(c.name, p)
		select {
		case d := <-p.recovered:
			tally.recoveries = append(tally.recoveries, d)
		case <-late:
			h.t.Fatalf("%s on host %d: %v does not recover", c.name, host, p)
		}
		p.mu.Lock()
		tally.errors += len(p.errors)
		for _, text := range p.errors {
			h.t.Logf("%s on host %d: %v: %s", c.name, host, p, text)
		}
		p.errors = nil
		p.mu.Unlock()
	}
}

// check fails the test if nine tenths of the recoveries of profile extended take longer than maxRecovery by AF_XDP, but
// not by sockets. The slowest ones depend on chance: the kernel waits a second for the answer of a neighbour, and a
// busy machine may give a process no processor.
func (r results) check(t *testing.T) {
	for _, c := range changes {
		var most [len(ways)]time.Duration
		for i, way := range ways {
			if tally := r[[3]string{c.name, "extended", way}]; tally != nil && len(tally.recoveries) >= 10 {
				slices.Sort(tally.recoveries)
				most[i] = tally.recoveries[len(tally.recoveries)*9/10]
			}
		}
		if socket := most[len(ways)-1]; max(most[0], most[1]) > max(maxRecovery, socket) {
			t.Errorf("%s: nine tenths have recovered after %v by %q", c.name, most, ways)
		}
	}
}

// awaitPaths waits until the datagrams of all pairs that are to use AF_XDP do so again.
func (h *pathHosts) awaitPaths() {
	for _, p := range h.pairs {
		for end := range p.ends {
			if !p.usesPath(end) {
				continue
			}
			path := func() state.Path { return *p.daemon(end).local(p.rank(end)).Path }
			before := path()
			until(h.t, fmt.Sprintf("%v: end %d uses AF_XDP", p, end), func() bool {
				now := path()
				return now.Sent > before.Sent+1 && now.Received > before.Received+1 && !slices.ContainsFunc(now.ByKernel,
					func(r state.PathRefusal) bool { return r.Peer == p.rank(1-end) })
			})
		}
	}
}

// print prints a table of the results.
func (r results) print(t *testing.T) {
	var b strings.Builder
	for _, profile := range []string{"cloudfpga", "extended"} {
		w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(w, "\n%s\tcount", profile)
		for i := range ways {
			fmt.Fprintf(w, "\t%s: median\tworst\terrors", ways[len(ways)-1-i])
		}
		fmt.Fprintln(w, "\t")
		for _, c := range changes {
			for i := range ways {
				tally := r[[3]string{c.name, profile, ways[len(ways)-1-i]}]
				if tally == nil { // the change was not drawn
					break
				}
				slices.Sort(tally.recoveries)
				n := len(tally.recoveries)
				if i == 0 {
					fmt.Fprintf(w, "%s\t%d", c.name, n)
				}
				fmt.Fprintf(w, "\t%d ms\t%d ms\t%d", tally.recoveries[n/2].Milliseconds(),
					tally.recoveries[n-1].Milliseconds(), tally.errors)
				if i == len(ways)-1 {
					fmt.Fprintln(w, "\t")
				}
			}
		}
		w.Flush()
	}
	t.Logf("recovery after the end of a change\n%s", b.String())
}

// TestPaths changes the network while ranks exchange messages by AF_XDP, and by sockets for comparison. No message may
// arrive with wrong bytes, or be lost after a successful send, and each pair must recover.
func TestPaths(t *testing.T) {
	seed, duration := uint64(1), time.Duration(0)
	if s := os.Getenv(pathsDuration); s != "" {
		var err error
		if duration, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Sscan(cmp.Or(os.Getenv(pathsSeed), fmt.Sprint(time.Now().UnixNano())), &seed)
		t.Logf("seed %d", seed)
	}
	for _, version := range []string{"IPv4", "IPv6"} {
		t.Run(version, func(t *testing.T) { testPaths(t, newPathHosts(t, seed, version == "IPv6"), duration/2) })
	}
}

func testPaths(t *testing.T, h *pathHosts, duration time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for _, p := range h.pairs {
		all.Go(func() { p.run(ctx) })
	}
	found := results{}
	if duration == 0 {
		for i := range changes {
			h.apply(&changes[i], 50*time.Millisecond, found)
		}
	}
	for begun := time.Now(); time.Since(begun) < duration; {
		h.apply(&changes[h.rng.IntN(len(changes))], time.Hour, found)
		pause(ctx, time.Duration(200+h.rng.IntN(800))*time.Millisecond)
	}
	found.check(t)
	h.awaitPaths()
	cancel()
	all.Wait()
	found.print(t)
	for _, p := range h.pairs {
		t.Logf("%v: %d messages; the slowest while the network did not change took %v", p, p.messages.Load(), p.slowest)
	}
}
