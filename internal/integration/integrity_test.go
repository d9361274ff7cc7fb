package integration_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	impaired "github.com/zrlmpi/zrlmpid/cmd/zrlctl/relay"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/impair"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestIntegrity sends messages in both directions between all ranks of a cluster, over real sockets and through the
// relay of zrlctl impair. It checks that each message is received once, in order and intact. With cloudfpga, a send may
// instead end with a documented error, but a message whose send succeeded must have been received.
// ZRLMPI_INTEGRITY_MESSAGES sets the number of messages per case, and ZRLMPI_INTEGRITY_LOSS the percentages of lost
// datagrams. `make soak` sends a million messages with 1, 5 and 20 percent.
func TestIntegrity(t *testing.T) {
	messages := integrityMessages(t)
	few := messages < fewMessages
	testIntegrityUDP(t, messages, func(t *testing.T, ranks int, rules ...string) *integrity {
		return newIntegrity(t, "udp", ranks, rules...)
	})
	faults := []string{"reset 0.1%", "close 0.05%", "delay 50us~500us", "from 0 after 50ms for 300ms partition"}
	t.Run("extended/tcp", func(t *testing.T) {
		x := newIntegrity(t, "tcp", 4, append(faults, "corrupt 0.01%")...)
		x.extended(messages)
		if c := x.report(); c.Resets == 0 || c.Delayed == 0 || c.Held == 0 {
			t.Errorf("the network was not impaired: %+v", c)
		}
	})
	t.Run("cloudfpga/tcp", func(t *testing.T) {
		ranks, messages := 16, messages
		if few {
			ranks, messages = 8, messages/5
		}
		x := newIntegrity(t, "tcp", ranks, faults...)
		x.handshakes(messages)
		if c := x.report(); c.Resets == 0 || c.Delayed == 0 || c.Held == 0 {
			t.Errorf("the network was not impaired: %+v", c)
		}
	})
}

// fewMessages is the number of messages of a case below which cases with timeouts send only a part.
const fewMessages = 100_000

// integrityMessages returns the number of messages per case.
func integrityMessages(t *testing.T) int {
	t.Helper()
	messages, err := strconv.Atoi(cmp.Or(os.Getenv("ZRLMPI_INTEGRITY_MESSAGES"), "20000"))
	if err != nil || messages < 2 {
		t.Fatalf("ZRLMPI_INTEGRITY_MESSAGES=%q is not a number of messages", os.Getenv("ZRLMPI_INTEGRITY_MESSAGES"))
	}
	return messages
}

// testIntegrityUDP runs the cases over datagrams between ranks that the function connect connects.
func testIntegrityUDP(t *testing.T, messages int, connect func(t *testing.T, ranks int, rules ...string) *integrity) {
	for loss := range strings.SplitSeq(cmp.Or(os.Getenv("ZRLMPI_INTEGRITY_LOSS"), "5"), ",") {
		t.Run("extended/udp/"+loss, func(t *testing.T) {
			x := connect(t, 4, "loss "+loss+"% duplicate 5% reorder 5% corrupt 1%")
			x.extended(messages)
			if c := x.report(); c.Lost == 0 || c.Duplicated == 0 || c.Reordered == 0 || c.Corrupted == 0 {
				t.Errorf("the network was not impaired: %+v", c)
			}
		})
		t.Run("cloudfpga/udp/"+loss, func(t *testing.T) {
			ranks, messages := 32, messages // use many pairs, because a lost datagram costs at least 100 ms
			if messages < fewMessages {
				ranks, messages = 8, messages/20
			}
			// Exclude faults that this profile cannot detect (section 11 of the protocol): duplicate continuation
			// datagrams, and reordered packets. On a busy machine, where round trips exceed timeouts, a packet delayed
			// by 2 ms may be received during the next message.
			x := connect(t, ranks, "loss "+loss+"%", "packet SEND_REQUEST,CLEAR_TO_SEND,DATA,ACK duplicate 5%")
			x.handshakes(messages)
			if c := x.report(); c.Lost == 0 || c.Duplicated == 0 {
				t.Errorf("the network was not impaired: %+v", c)
			}
		})
	}
}

// integrity is a set of ranks connected by a relay.
type integrity struct {
	t       *testing.T
	relay   *impaired.Relay
	maps    []*rankmap.Map // by rank
	engines []*mpe.Engine
	// listen opens the transport of a rank over datagrams. conns are those transports.
	listen func(cfg udp.Config) (*udp.Conn, error)
	conns  []*udp.Conn
}

// newIntegrity starts the relay.
func newIntegrity(t *testing.T, transport string, ranks int, rules ...string) *integrity {
	t.Helper()
	entries := make([]config.Rank, ranks)
	for rank := range entries {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 81, byte(rank + 1)}), 27180)
		entries[rank] = config.Rank{Rank: rank, Address: config.Address{AddrPort: addr}, Run: config.RunHost}
	}
	x := &integrity{t: t, listen: udp.Listen}
	x.relay, x.maps = relayed(t, config.New(entries...), transport, rules...)
	return x
}

// relayed starts a relay on loopback addresses, and returns the rank map of each rank.
func relayed(t *testing.T, cfg *config.Config, transport string, rules ...string) (*impaired.Relay, []*rankmap.Map) {
	t.Helper()
	return relayedOn(t, func(f func()) { f() }, cluster.Pool{}, cfg, transport, rules...)
}

// relayedOn is relayed with addresses of a pool. The function do runs a function on the relay's host.
func relayedOn(
	t *testing.T, do func(func()), pool cluster.Pool, cfg *config.Config, transport string, rules ...string,
) (r *impaired.Relay, maps []*rankmap.Map) {
	t.Helper()
	plan, err := impaired.NewPlan(cfg, pool, transport)
	if err != nil {
		t.Fatal(err)
	}
	script := impair.Script{Seed: 1}
	for _, text := range rules {
		rule, err := impair.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		script.Rules = append(script.Rules, rule)
	}
	if do(func() { r, err = impaired.Listen(plan, script) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	maps = make([]*rankmap.Map, plan.Size())
	for rank := range maps {
		own, err := plan.ConfigFor([]int{rank})
		if err != nil {
			t.Fatal(err)
		}
		maps[rank] = mapOf(t, own)
	}
	return r, maps
}

// start starts the engines with peers of the given profile.
func (x *integrity) start(profile protocol.Profile, peer func(seed uint64, tr mpe.Transport) mpe.Peer) {
	x.t.Helper()
	for rank, m := range x.maps {
		var tr mpe.Transport
		var err error
		if x.relay.Report().Transport == "udp" {
			var c *udp.Conn
			c, err = x.listen(udp.Config{Rank: rank, Map: m})
			tr, x.conns = c, append(x.conns, c)
		} else {
			tr, err = tcp.Listen(tcp.Config{
				Rank: rank, Map: m, Profile: func(int) protocol.Profile { return profile },
				Backoff: func(int) time.Duration { return 10 * time.Millisecond },
			})
		}
		if err != nil {
			x.t.Fatal(err)
		}
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(x.maps)), Oversubscribed: true}
		for other := range cfg.Peers {
			cfg.Peers[other] = peer(uint64(rank*len(x.maps)+other+1), tr)
		}
		e, err := mpe.New(cfg)
		if err != nil {
			x.t.Fatal(err)
		}
		x.t.Cleanup(func() { _ = e.Close(ended()) })
		x.engines = append(x.engines, e)
	}
}

// report logs and returns the fate of the packets. It checks that ranks with a path have used it.
func (x *integrity) report() impair.Count {
	for rank, c := range x.conns {
		if p := c.Path(); p != nil && (p.Sent == 0 || p.Received == 0 || p.Corrupt > 0 || p.Full > 0) {
			x.t.Errorf("rank %d: %+v", rank, p)
		}
	}
	r := x.relay.Report()
	x.t.Logf("%.1f s: %+v; not asked for: %d datagrams lost in receive buffers, %d not sent, %d of unknown source",
		r.Seconds, r.Total, r.SocketDrops, r.Failed, r.UnknownSource)
	return r.Total
}

// extended sends messages of mixed sizes between all ranks, many at a time.
func (x *integrity) extended(messages int) {
	t, n := x.t, len(x.maps)
	x.start(protocol.Extended, func(seed uint64, tr mpe.Transport) mpe.Peer {
		cfg := &extended.Config{Seed: seed}
		if tr.Reliable() {
			cfg.MaxPayload, cfg.Window, cfg.Timing = protocol.MaxStreamPayload, 128, extended.DefaultTiming(true)
		}
		return mpe.Peer{Transport: tr, Extended: cfg}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(messages)*5*time.Millisecond)
	defer cancel()
	each := max(messages/(n*(n-1)), 1)
	var all sync.WaitGroup
	for from := range n {
		for to := range n {
			if from != to {
				all.Go(func() { integritySend(ctx, t, x.engines[from], to, each) })
				all.Go(func() { integrityRecv(ctx, t, x.engines[to], from, each) })
			}
		}
	}
	all.Wait()
	for rank, e := range x.engines {
		s := e.Snapshot()
		retransmissions := uint64(0)
		for _, p := range s.Peers {
			retransmissions += p.Extended.Retransmissions
			if p.Failed != 0 {
				t.Errorf("rank %d: %d messages with rank %d failed", rank, p.Failed, p.Rank)
			}
		}
		if s.Unexpected != 0 {
			t.Errorf("rank %d: %d messages are left", rank, s.Unexpected)
		}
		t.Logf("rank %d: %d retransmissions", rank, retransmissions)
	}
}

// handshakes sends messages between all ranks, one at a time per pair.
func (x *integrity) handshakes(messages int) {
	t, n := x.t, len(x.maps)
	x.start(protocol.CloudFPGA, func(_ uint64, tr mpe.Transport) mpe.Peer {
		rules := handshake.SoftwarePeer()
		return mpe.Peer{Transport: tr, Handshake: handshake.Config{
			Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
		}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(messages)*5*time.Millisecond)
	defer cancel()
	each := max(messages*2/(n*(n-1)), 1)
	var sent, failed atomic.Int64
	var all sync.WaitGroup
	for a := range n {
		for b := range a {
			all.Go(func() {
				p := newPair(x.engines[a], x.engines[b])
				for number := range uint32(each) {
					sent.Add(1)
					ok, err := p.exchange(ctx, number)
					if err != nil {
						t.Errorf("message %d between ranks %d and %d: %v", number, a, b, err)
						return
					}
					if !ok {
						failed.Add(1)
						// Both programs start over when nothing is in transit.
						wait(ctx, 200*time.Millisecond)
						if err := errors.Join(p.ends[0].Reset(b), p.ends[1].Reset(a)); err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d messages, %d of them ended with an error", sent.Load(), failed.Load())
}

// pair consists of two ranks that send messages to each other, one at a time. The number of a message determines its
// content.
type pair struct {
	ends [2]*mpe.Engine
	rng  *rand.Rand
	// last is the number of the last message received by each end, plus 1.
	last [2]uint32
}

func newPair(a, b *mpe.Engine) *pair {
	return &pair{ends: [2]*mpe.Engine{a, b}, rng: rand.New(rand.NewPCG(uint64(a.Rank()), uint64(b.Rank())))}
}

// message returns a message, mostly of a single datagram.
func (p *pair) message(number uint32) []byte {
	rng := rand.New(rand.NewPCG(uint64(p.ends[0].Rank())<<8|uint64(p.ends[1].Rank()), uint64(number)))
	words := 1 + rng.IntN(346)
	if rng.IntN(20) == 0 {
		words = 347 + rng.IntN(1700) // fragmented
	}
	b := make([]byte, words*protocol.WordLen)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	binary.LittleEndian.PutUint32(b, number)
	return b
}

// exchange sends a message in a random direction and reports whether that succeeded. The error reports a violation.
func (p *pair) exchange(ctx context.Context, number uint32) (ok bool, err error) {
	from := p.rng.IntN(2)
	receiving, cancel := context.WithCancel(ctx)
	defer cancel()
	received := make(chan error, 1)
	go func() { received <- p.receive(receiving, 1-from, number) }()
	_, failed := p.ends[from].Send(ctx, p.ends[1-from].Rank(), p.message(number), mpe.Options{})
	if failed != nil {
		cancel()
	}
	timeout := time.NewTimer(time.Minute)
	defer timeout.Stop()
	select {
	case err = <-received:
	case <-timeout.C:
		return false, errors.New("sent with success, and not received")
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case failed != nil && !errors.Is(failed, handshake.ErrTimeout):
		return false, failed
	case failed != nil && (errors.Is(err, context.Canceled) || errors.Is(err, handshake.ErrTimeout)):
		return false, nil
	}
	return failed == nil, err
}

// receive receives messages until it gets the one with the given number or ctx is done. It may first receive an earlier
// message whose send failed.
func (p *pair) receive(ctx context.Context, at int, number uint32) error {
	buf := make([]byte, 2048*protocol.WordLen)
	for {
		st, err := p.ends[at].Recv(ctx, p.ends[1-at].Rank(), buf, mpe.Options{})
		if errors.Is(err, handshake.ErrTimeout) && ctx.Err() == nil {
			continue // the sender retransmits
		}
		if err != nil {
			return err
		}
		got := binary.LittleEndian.Uint32(buf)
		if got < p.last[at] || got > number || !bytes.Equal(buf[:st.Bytes], p.message(got)) {
			return fmt.Errorf("%d words came with number %d, which is corrupt or came before", st.Words, got)
		}
		p.last[at] = got + 1
		if got == number {
			return nil
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// integrityLength returns a message length: mostly small, and rarely many packets.
func integrityLength(rng *rand.Rand) int {
	switch x := rng.IntN(1000); {
	case x < 900:
		return 12 + rng.IntN(500)
	case x < 990:
		return 12 + rng.IntN(20_000)
	}
	return 12 + rng.IntN(100_000)
}

// integritySend sends messages that consist of a number, the checksum of the rest, and the rest.
func integritySend(ctx context.Context, t *testing.T, e *mpe.Engine, to, messages int) {
	rng := rand.New(rand.NewPCG(uint64(e.Rank())<<8|uint64(to), 3))
	noise := make([]byte, 100_012)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	const window = 32
	var ops [window]mpe.Op
	var bufs [window][]byte
	for i := range messages {
		slot := i % window
		if ops[slot] != nil {
			if _, err := ops[slot].Await(ctx); err != nil {
				t.Errorf("rank %d: message %d: %v", e.Rank(), i-window, err)
				return
			}
		}
		n := integrityLength(rng)
		b := append(bufs[slot][:0], noise[:n]...)
		binary.LittleEndian.PutUint64(b, uint64(i))
		binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[12:]))
		bufs[slot] = b
		op, err := e.Start(mpe.Operation{Kind: mpe.OpSend, Peer: to, Tag: i % 3, Buf: b})
		if err != nil {
			t.Error(err)
			return
		}
		ops[slot] = op
	}
	for _, op := range ops {
		if op == nil {
			continue
		}
		if _, err := op.Await(ctx); err != nil {
			t.Error(err)
		}
	}
}

func integrityRecv(ctx context.Context, t *testing.T, e *mpe.Engine, from, messages int) {
	rng := rand.New(rand.NewPCG(uint64(from)<<8|uint64(e.Rank()), 3))
	for range 100_012 {
		rng.Uint32()
	}
	const window = 16
	var ops [window]mpe.Op
	var bufs [window][]byte
	post := func(i int) error {
		if i >= messages {
			return nil
		}
		if bufs[i%window] == nil {
			bufs[i%window] = make([]byte, 100_012)
		}
		op, err := e.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: from, Tag: mpe.AnyTag, Buf: bufs[i%window]})
		ops[i%window] = op
		return err
	}
	check := func(i int) error {
		st, err := ops[i%window].Await(ctx)
		if err != nil {
			return err
		}
		b, want := bufs[i%window][:st.Bytes], integrityLength(rng)
		switch {
		case len(b) != want || st.Tag != i%3:
			return fmt.Errorf("%d bytes with tag %d, want %d with tag %d", len(b), st.Tag, want, i%3)
		case binary.LittleEndian.Uint64(b) != uint64(i):
			return fmt.Errorf("it is message %d", binary.LittleEndian.Uint64(b))
		case binary.LittleEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[12:]):
			return fmt.Errorf("its contents are corrupt")
		}
		return nil
	}
	for i := range window {
		if err := post(i); err != nil {
			t.Error(err)
			return
		}
	}
	for i := range messages {
		err := check(i)
		if err == nil {
			err = post(i + window)
		}
		if err != nil {
			t.Errorf("rank %d: message %d from rank %d: %v", e.Rank(), i, from, err)
			return
		}
	}
}
