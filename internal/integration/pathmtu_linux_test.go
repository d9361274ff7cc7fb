package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/netns/netnstest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func newNetHost(t testing.TB) netnstest.Host { return netnstest.New(t, "path MTUs") }

// direct returns two hosts on one wire.
func direct(t testing.TB, mtuA, mtuB int) (a, b netnstest.Host) {
	p := netnstest.Pair(t, "path MTUs", [2]string{fmt.Sprint("mtu ", mtuA), fmt.Sprint("mtu ", mtuB)})
	for i, h := range p {
		if mtuA >= 1280 {
			h.IP(fmt.Sprintf("addr add fd00::%d/64 dev eth0 nodad", i+1))
		}
	}
	return p[0], p[1]
}

// routed returns two hosts connected by a router. A silent router sends no ICMP errors.
func routed(t testing.TB, near, far int, silent bool) (a, router, b netnstest.Host) {
	a, router, b = newNetHost(t), newNetHost(t), newNetHost(t)
	a.Join(fmt.Sprint("eth0 mtu ", near), router, fmt.Sprint("eth0 mtu ", near))
	b.Join(fmt.Sprint("eth0 mtu ", far), router, fmt.Sprint("eth1 mtu ", far))
	router.IP("addr add 10.9.0.254/24 dev eth0", "addr add 10.9.1.254/24 dev eth1")
	router.Set("net.ipv4.ip_forward", "1")
	if silent {
		router.IP("rule add from 10.9.0.254 blackhole", "rule add from 10.9.1.254 blackhole")
	}
	a.IP("addr add 10.9.0.1/24 dev eth0", "route add default via 10.9.0.254")
	b.IP("addr add 10.9.1.2/24 dev eth0", "route add default via 10.9.1.254")
	return a, router, b
}

// startRanks starts the ranks of a configuration, each on a separate host.
func startRanks(t testing.TB, text string, hosts ...netnstest.Host) (ranks []*node.Rank) {
	t.Helper()
	for i, h := range hosts {
		ranks = append(ranks, startRank(t, text, i, h))
	}
	return ranks
}

// startRank starts a rank of a configuration.
func startRank(t testing.TB, text string, rank int, h netnstest.Host) *node.Rank {
	t.Helper()
	cfg, err := config.Parse(strings.NewReader(text), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := node.RankMap(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r, err := node.Plan(cfg, cfg.Rank(rank))
	if err == nil {
		h.Do(func() { err = r.Bind(m) })
	}
	if err == nil {
		err = r.Start(nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return r
}

const twoRanks = `
ranks:
  - {rank: 0, address: "%s", run: host}
  - {rank: 1, address: "%s", run: host}
defaults: {profile: %s}
`

// swap sends a message in each direction between the first two ranks.
func swap(t *testing.T, ranks []*node.Rank, size int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	var all sync.WaitGroup
	for i, from := range ranks[:2] {
		to, got := ranks[1-i], make([]byte, size)
		all.Go(func() {
			if err := transfer(ctx, to.Engine,
				mpe.Operation{Kind: mpe.OpRecv, Peer: from.Self.Rank, Buf: got}); err != nil {
				t.Errorf("the receive from rank %d: %v", from.Self.Rank, err)
			} else if !bytes.Equal(got, data) {
				t.Errorf("the message of rank %d has changed", from.Self.Rank)
			}
		})
		all.Go(func() {
			if err := transfer(ctx, from.Engine,
				mpe.Operation{Kind: mpe.OpSend, Peer: to.Self.Rank, Buf: data}); err != nil {
				t.Errorf("the send of rank %d: %v", from.Self.Rank, err)
			}
		})
	}
	all.Wait()
}

func payload(r *node.Rank) int { return r.Engine.Snapshot().Peers[0].Extended.Payload }

// swapUntil exchanges messages until the first rank's payload per packet is within the given bounds.
func swapUntil(t *testing.T, ranks []*node.Rank, least, most int) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; {
		swap(t, ranks, 100_000)
		n := payload(ranks[0])
		if n >= least && n <= most {
			return
		}
		if t.Failed() || time.Now().After(end) {
			t.Fatalf("packets have %d bytes of payload, want %d to %d; %+v", n, least, most,
				ranks[0].Engine.Snapshot().Peers[0].Extended)
		}
	}
}

// TestPathMTU checks that packets grow to the path MTU, and that only probes are lost to find it.
func TestPathMTU(t *testing.T) {
	t.Run("direct", func(t *testing.T) {
		for _, mtu := range []int{576, 1280, 1500, 9000, 65535} {
			t.Run(fmt.Sprint(mtu), func(t *testing.T) {
				a, b := direct(t, mtu, mtu)
				ranks := startRanks(t, fmt.Sprintf(twoRanks, "10.9.0.1:2718", "10.9.0.2:2718", "extended"), a, b)
				want := (mtu - 28 - protocol.ExtHeaderLen) &^ 7
				swapUntil(t, ranks, want, want)
				if x := ranks[0].Engine.Snapshot().Peers[0].Extended; x.Retransmissions > 0 {
					t.Errorf("%+v", x)
				}
			})
		}
	})
	t.Run("IPv6", func(t *testing.T) {
		for _, mtu := range []int{1280, 1500, 9000} {
			t.Run(fmt.Sprint(mtu), func(t *testing.T) {
				a, b := direct(t, mtu, mtu)
				ranks := startRanks(t, fmt.Sprintf(twoRanks, "[fd00::1]:2718", "[fd00::2]:2718", "extended"), a, b)
				want := (mtu - 48 - protocol.ExtHeaderLen) &^ 7
				swapUntil(t, ranks, want, want)
			})
		}
	})
	// The far end drops packets longer than its own MTU plus a VLAN tag.
	t.Run("switch", func(t *testing.T) {
		a, b := direct(t, 9000, 1500)
		ranks := startRanks(t, fmt.Sprintf(twoRanks, "10.9.0.1:2718", "10.9.0.2:2718", "extended"), a, b)
		swapUntil(t, ranks, 1392, 1392+4)
	})
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("router, silent %v", silent), func(t *testing.T) {
			a, _, b := routed(t, 9000, 1500, silent)
			ranks := startRanks(t, fmt.Sprintf(twoRanks, "10.9.0.1:2718", "10.9.1.2:2718", "extended"), a, b)
			swapUntil(t, ranks, 1392, 1392)
		})
	}
}

// TestPathMTUShrinks checks that no message is lost when the MTU of a path shrinks, and that packets become shorter.
func TestPathMTUShrinks(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprintf("router, silent %v", silent), func(t *testing.T) {
			a, router, b := routed(t, 9000, 9000, silent)
			ranks := startRanks(t, fmt.Sprintf(twoRanks, "10.9.0.1:2718", "10.9.1.2:2718", "extended"), a, b)
			swapUntil(t, ranks, 8888, 8892)
			shrunk := make(chan struct{})
			go func() {
				defer close(shrunk)
				if err := errors.Join(router.RunIP("link set eth1 mtu 1400"), b.RunIP("link set eth0 mtu 1400")); err != nil {
					t.Error(err)
				}
			}()
			swap(t, ranks, 20_000_000)
			<-shrunk
			swapUntil(t, ranks, 1200-80, 1292)
		})
	}
	t.Run("first link", func(t *testing.T) {
		a, b := direct(t, 9000, 9000)
		ranks := startRanks(t, fmt.Sprintf(twoRanks, "10.9.0.1:2718", "10.9.0.2:2718", "extended"), a, b)
		swapUntil(t, ranks, 8888, 8892)
		shrunk := make(chan struct{})
		go func() {
			defer close(shrunk)
			if err := errors.Join(a.RunIP("link set eth0 mtu 1280"), b.RunIP("link set eth0 mtu 1280")); err != nil {
				t.Error(err)
			}
		}()
		swap(t, ranks, 20_000_000)
		<-shrunk
		swapUntil(t, ranks, 1168, 1172)
		if o := ranks[0].Info(state.DetailScrape).Offload; o != nil && len(o.Refused) > 0 {
			t.Errorf("%+v", o)
		}
	})
}

// TestPathMTUOfOtherProfiles checks that datagrams of cloudfpga are fragmented on a link with a smaller MTU, even if
// the rank also has a peer of the extended profile, whose packets are not fragmented.
func TestPathMTUOfOtherProfiles(t *testing.T) {
	a, b := direct(t, 1280, 1280)
	b.IP("addr add 10.9.0.3/24 dev eth0")
	const text = `
ranks:
  - {rank: 0, address: "10.9.0.1:2718", %s}
  - {rank: 1, address: "10.9.0.2:2718", %s}
  - {rank: 2, address: "10.9.0.3:2718", %s}
`
	const other = "peer: software"
	r0 := startRank(t, fmt.Sprintf(text, "run: host", other+", link: {profile: cloudfpga}",
		other+", link: {profile: extended}"), 0, a)
	r1 := startRank(t, fmt.Sprintf(text, other, "run: host", other), 1, b)
	r2 := startRank(t, fmt.Sprintf(text, other, other, "run: host")+"defaults: {profile: extended}\n", 2, b)
	for range 20 {
		swap(t, []*node.Rank{r0, r1}, 100_000)
		swap(t, []*node.Rank{r0, r2}, 100_000)
	}
	if n := r0.Engine.Snapshot().Peers[1].Extended.Payload; n != 1168 {
		t.Errorf("packets have %d bytes of payload", n)
	}
}

// BenchmarkPathMTU sends messages of 1 MB between two hosts on one wire.
func BenchmarkPathMTU(b *testing.B) {
	for _, mtu := range []int{1280, 1500, 9000} {
		b.Run(fmt.Sprint(mtu), func(b *testing.B) {
			here, there := direct(b, mtu, mtu)
			ranks := startRanks(b, fmt.Sprintf(twoRanks, "10.9.0.1:2718", "10.9.0.2:2718", "extended"), here, there)
			data, got := make([]byte, 1_000_000), make([]byte, 1_000_000)
			send := func() {
				received := make(chan error, 1)
				go func() {
					received <- transfer(b.Context(), ranks[1].Engine,
						mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: got})
				}()
				if err := transfer(b.Context(), ranks[0].Engine,
					mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data}); err != nil {
					b.Fatal(err)
				}
				if err := <-received; err != nil {
					b.Fatal(err)
				}
			}
			for range 100 {
				send()
			}
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				send()
			}
		})
	}
}
