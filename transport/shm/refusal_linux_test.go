package shm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/testkit/starve"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// wantUnreachable waits until e reports a peer as unreachable, and checks the text of the report.
func wantUnreachable(t *testing.T, e *transporttest.End, peer int, text string) {
	t.Helper()
	for a := e.Next(t); ; a = e.Next(t) {
		if a.Kind != mpe.RxUnreachable {
			continue
		}
		if a.Peer != peer || !strings.Contains(string(a.Bytes), text) {
			t.Errorf("rank %d: %q, want %q of rank %d", a.Peer, a.Bytes, text, peer)
		}
		return
	}
}

// TestRefused checks that a peer that has reached a limit is reported together with the limit, on either side,
// for as long as the limit persists.
func TestRefused(t *testing.T) {
	m := transporttest.Map(t, 2)
	c := transporttest.Start(t, listen(t, Config{Rank: 1, Map: m}))
	began := time.Now()
	for time.Since(began) <= rlimit.ReportAfter+100*time.Millisecond {
		conn := connect(t, m, 1)
		limit := memoryID{addr: 1500000 << 10}
		_ = sendHello(conn, hello{purpose: refuseLink, src: 0, dst: 1, ring: int(rlimit.AddressSpace), memory: limit})
		_, _ = conn.Read(make([]byte, 1)) // it is closed in answer
		conn.Close()
	}
	wantUnreachable(t, c, 0, "at rank 0 the limit of the address space, 1500000 KiB, is reached")
}

// TestWithoutDescriptors checks that a rank reports the limit if its peer has run out of descriptors.
func TestWithoutDescriptors(t *testing.T) {
	m := transporttest.Map(t, 2)
	addrs := fmt.Sprint(m.Addr(0), ",", m.Addr(1))
	c := transporttest.Start(t, listen(t, Config{Rank: 0, Map: m}))
	startVictim(t, addrs, starved)
	wantUnreachable(t, c, 1, "at rank 1 the limit of")
}

// beStarved runs rank 1 with no descriptors left.
func beStarved(addrs string) error {
	c, err := Listen(Config{Rank: 1, Map: parseMap(addrs)})
	if err != nil {
		return err
	}
	if _, err := starve.Descriptors(); err != nil {
		return err
	}
	fmt.Println("ready")
	batch := make([]mpe.RxPacket, 16)
	for {
		if _, err := c.Recv(batch); err != nil {
			return err
		}
	}
}
