package tcp

import (
	"bufio"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/starve"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// envStarved contains the number of the rank that the test is to run without descriptors. envStarvedMap
// contains the addresses of both ranks.
const (
	envStarved    = "ZRLMPI_TEST_STARVED"
	envStarvedMap = "ZRLMPI_TEST_STARVED_MAP"
)

// TestWithoutDescriptors checks that a rank that has no descriptor for a connection reports its peer as
// unreachable, with that reason, whichever side dials.
func TestWithoutDescriptors(t *testing.T) {
	bothWays(t, func(t *testing.T, listen listener) {
		if rank, err := strconv.Atoi(os.Getenv(envStarved)); err == nil {
			starved(t, listen, rank)
			return
		}
		for rank, peer := range []int{1, 0} {
			m := transporttest.Map(t, 2)
			ctx, cancel := context.WithTimeout(t.Context(), transporttest.Timeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
			cmd.Env = append(os.Environ(), envStarved+"="+strconv.Itoa(rank),
				envStarvedMap+"="+fmt.Sprint(m.Addr(0), " ", m.Addr(1)))
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			for lines.Scan() && lines.Text() != "starved" {
			}
			e := listen.start(t, Config{Rank: peer, Map: m, Profile: extended})
			var text strings.Builder
			for lines.Scan() {
				fmt.Fprintln(&text, lines.Text())
			}
			err = cmd.Wait()
			e.Close()
			want := fmt.Sprintf("no connection to rank %d: ", peer)
			if said := text.String(); err != nil || !strings.Contains(said, want) ||
				!strings.Contains(said, "file descriptors is reached: raise it (ulimit -n)") {
				t.Errorf("rank %d: %v\n%s", rank, err, said)
			}
		}
	})
}

// starved runs a rank without descriptors until it reports its peer as unreachable.
func starved(t *testing.T, listen listener, rank int) {
	first, second, _ := strings.Cut(os.Getenv(envStarvedMap), " ")
	m := transporttest.MapOf(t, netip.MustParseAddrPort(first), netip.MustParseAddrPort(second))
	limited := make(chan struct{})
	again := func(int) time.Duration { // after the first attempt to connect has failed
		<-limited
		return 10 * time.Millisecond
	}
	c, err := listen(Config{Rank: rank, Map: m, Profile: extended, Backoff: again})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if rank == 0 { // it dials
		for {
			if _, err := c.peers[1].currentLink(); err != nil {
				break
			}
			runtime.Gosched()
		}
	}
	if _, err := starve.Descriptors(); err != nil {
		t.Fatal(err)
	}
	close(limited)
	fmt.Println("starved")
	batch := make([]mpe.RxPacket, 16)
	for {
		n, err := c.Recv(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range batch[:n] {
			if a.Kind == mpe.RxUnreachable {
				t.Logf("rank %d: %s", a.Peer, a.Bytes)
				return
			}
		}
	}
}
