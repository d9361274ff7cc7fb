package path

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestMain runs the emulator if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == EmulatorCommand {
		if err := RunEmulator(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// open creates a path. If that is not possible here, it skips the test.
func open(t *testing.T, c Config) *Path {
	t.Helper()
	const what = "emulated paths"
	needs.Root(t, what, "can create network namespaces and TUN devices")
	needs.Program(t, what, "ip", "iproute2")
	p, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// sockets returns two connected UDP sockets, one at each end of the path.
func sockets(t *testing.T, p *Path) (both [2]*net.UDPConn) {
	t.Helper()
	for end := range both {
		var err error
		p.Do(end, func() {
			both[end], err = net.DialUDP("udp4", &net.UDPAddr{IP: Addr(end).AsSlice(), Port: 5000},
				&net.UDPAddr{IP: Addr(1 - end).AsSlice(), Port: 5000})
		})
		if err != nil {
			t.Fatal(err)
		}
		both[end].SetReadDeadline(time.Now().Add(20 * time.Second))
		t.Cleanup(func() { both[end].Close() })
	}
	return both
}

// udpHeaders is the length of an IP header and a UDP header.
const udpHeaders = 28

// TestPath checks that packets of every length pass in both directions, that they take at least the delay of the path,
// and that they are counted.
func TestPath(t *testing.T) {
	for _, mtu := range []int{1280, 1500, 9000} {
		t.Run(fmt.Sprint(mtu), func(t *testing.T) {
			p := open(t, Config{RTT: 20 * time.Millisecond, Rate: 12_500_000, MTU: mtu})
			both := sockets(t, p)
			lengths := []int{0, 1, 100, mtu - udpHeaders}
			var sum uint64
			in := make([]byte, mtu)
			for _, n := range lengths {
				out := make([]byte, n)
				for i := range out {
					out[i] = byte(rand.Uint32())
				}
				sum += uint64(n + udpHeaders)
				begin := time.Now()
				for end := range both {
					if _, err := both[end].Write(out); err != nil {
						t.Fatal(err)
					}
					got, err := both[1-end].Read(in)
					if err != nil || !bytes.Equal(in[:got], out) {
						t.Fatalf("%d bytes: %d received: %v", n, got, err)
					}
				}
				if took := time.Since(begin); took < 20*time.Millisecond {
					t.Errorf("%d bytes: a round trip of %v", n, took)
				}
			}
			u, err := p.Close()
			if err != nil {
				t.Fatal(err)
			}
			for i, d := range u.Directions {
				if d.Packets != uint64(len(lengths)) || d.Bytes != sum || d.Overflowed != 0 || d.Lost != 0 {
					t.Errorf("direction %d: %+v", i, d)
				}
			}
		})
	}
}

// TestPathLoss checks that a path loses the same packets as a Direction without devices.
func TestPathLoss(t *testing.T) {
	c := Config{RTT: 2 * time.Millisecond, Rate: 12_500_000, Queue: 1 << 20, MTU: 1500, Loss: 30, Seed: 7}
	const packets = 300
	model := mustDirection(t, c, 0)
	var want []int
	for i := range packets {
		model.Send(epoch, numbered(i, 100))
	}
	for _, text := range drain(model) {
		var n int
		fmt.Sscanf(text, "%d@", &n)
		want = append(want, n)
	}
	p := open(t, c)
	both := sockets(t, p)
	for i := range packets {
		if _, err := both[0].Write(numbered(i, 100)); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	in := make([]byte, 1500)
	for range want {
		if _, err := both[1].Read(in); err != nil {
			t.Fatal(err)
		}
		got = append(got, numberOf(in))
	}
	u, err := p.Close()
	if err != nil || !slices.Equal(got, want) || u.Directions[0].Lost != uint64(packets-len(want)) {
		t.Errorf("%v\nwant\n%v\n%+v, %v", got, want, u, err)
	}
}

// TestSettings checks that connections through the path use the configured congestion control and settings.
func TestSettings(t *testing.T) {
	p := open(t, Config{RTT: time.Millisecond, Rate: 1 << 20, MTU: 1500, TCP: "reno",
		Settings: map[string]string{"net.ipv4.tcp_wmem": "4096 5000 6000", "net.none": "1"}})
	var text []byte
	var err error
	p.Do(1, func() { text, err = os.ReadFile("/proc/sys/net/ipv4/tcp_wmem") })
	if err != nil || strings.Join(strings.Fields(string(text)), " ") != "4096 5000 6000" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := p.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Open(Config{RTT: time.Millisecond, Rate: 1 << 20, MTU: 1500, TCP: "none"}); err == nil ||
		!strings.Contains(err.Error(), "cannot configure tun0: the program ip") {
		t.Error(err)
	}
	if _, err := Open(Config{}); err == nil || err.Error() != "path: rate of 0 bytes/s: give 1 to 10737418240" {
		t.Error(err)
	}
}

// TestDeviceDrops checks that drops reads the transmit drops from the kernel's table.
func TestDeviceDrops(t *testing.T) {
	const head = "Inter-|   Receive                                                |  Transmit\n face |bytes    " +
		"packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n"
	for _, tt := range []struct {
		text string
		want int
		says string
	}{
		{head + "    lo:       0       0    0    0    0     0          0         0        0       0    0    9    0   " +
			"  0       0          0\n  tun0:       1       2    3    4    5     6          7         8        9      " +
			"10   11   12   13    14      15         16\n", 12, ""},
		{head, 0, "has no line of tun0"},
		{head + "tun0: 1 2\n", 0, "has no line of tun0"},
		{head + "tun0: 1 2 3 4 5 6 7 8 9 10 11 x\n", 0, "invalid syntax"},
	} {
		file := filepath.Join(t.TempDir(), "dev")
		if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := deviceDrops(file)
		if got != tt.want || (err == nil) != (tt.says == "") || err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%d, %v, want %d, %q", got, err, tt.want, tt.says)
		}
	}
}
