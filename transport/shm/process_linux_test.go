package shm

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

const (
	victimMap = "ZRLMPI_TEST_VICTIM_MAP"
	// victimRole names the variable with the victim's role: empty, or one of the following.
	victimRole = "ZRLMPI_TEST_VICTIM_ROLE"
	exposer    = "exposer"
	fetcher    = "fetcher"
	advertiser = "advertiser"
	starved    = "starved"
)

// TestMain turns the test binary into the process to be killed, if the environment requests it.
func TestMain(m *testing.M) {
	if addrs := os.Getenv(victimMap); addrs != "" {
		victim(addrs)
	}
	if addr := os.Getenv(strangerAddr); addr != "" {
		stranger(addr)
	}
	dir, err := os.MkdirTemp("", "zrlmpi-shm-test-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_RUNTIME_DIR", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// victim runs rank 1. When its parent exits, its standard input is closed.
func victim(addrs string) {
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		os.Exit(0)
	}()
	role := os.Getenv(victimRole)
	switch role {
	case liedTo:
		fmt.Println(beLiedTo(addrs))
		os.Exit(1)
	case starved:
		fmt.Println(beStarved(addrs))
		os.Exit(1)
	case hostileAdvert, hostileDescriptor:
		fmt.Println("ready")
		n := liarSize
		if role == hostileDescriptor {
			n *= 2
		}
		fmt.Println(lie(addrs, n))
		os.Exit(1)
	}
	c, err := Listen(Config{Rank: 1, Map: parseMap(addrs)})
	if err == nil {
		fmt.Println("ready")
		switch role {
		case exposer:
			err = exposeAll(c)
		case fetcher:
			err = fetchAll(c)
		case advertiser:
			err = advertiseAll(c)
		default:
			err = sendAll(c)
		}
	}
	fmt.Println(err)
	os.Exit(1)
}

// sendAll sends endlessly, and reads all packets.
func sendAll(c *Conn) error {
	batch := make([]mpe.RxPacket, 64)
	for number := uint32(0); ; {
		packets := make([]mpe.Packet, 8)
		for i := range packets {
			packets[i] = transporttest.Packet(1, 0, number+uint32(i), int(number*37%3000))
		}
		n, err := c.SendPackets(0, packets)
		if err == nil {
			_, err = c.Poll(batch, nil)
		}
		if err != nil {
			return err
		}
		number += uint32(n)
	}
}

// startVictim starts rank 1 in a separate process.
func startVictim(t *testing.T, addrs, role string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimMap+"="+addrs, victimRole+"="+role)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	said := bufio.NewReader(out)
	if line, err := said.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the process says %q, %v", line, err)
	}
	return cmd, said
}

// TestKilled kills a process during traffic. It checks that nothing is left behind, that the rank can start
// again, and that packets sent before arrive complete.
func TestKilled(t *testing.T) {
	m := transporttest.Map(t, 2)
	addrs := fmt.Sprint(m.Addr(0), ",", m.Addr(1))
	c := listen(t, Config{Rank: 0, Map: m})
	mapped := mappings(t)
	batch := make([]mpe.RxPacket, 16)
	for life := range 3 {
		cmd, _ := startVictim(t, addrs, "")
		if _, err := Listen(Config{Rank: 1, Map: m}); err == nil ||
			!strings.Contains(err.Error(), "process "+strconv.Itoa(cmd.Process.Pid)+" ") {
			t.Fatalf("a second rank 1: %v", err)
		}
		// Until the link is removed, once its ring is empty.
		next, connected, killed := uint32(0), false, false
		read := c.nap
		for !killed || len(c.inbox.links) > 0 {
			n, err := read(batch[:1+next%16])
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range batch[:n] {
				if a.Kind == mpe.RxConnected && !connected {
					connected = true
					continue
				}
				if (a.Kind == mpe.RxPeerDied || a.Kind == mpe.RxPeerClosed) && (killed || life > 0 && !connected) {
					continue // the event of the previous process precedes the next link
				}
				h, _, d := protocol.ParseExtended(a.Bytes)
				if a.Kind != mpe.RxDatagram || !d.OK() || h.Number != next || !connected {
					t.Fatalf("start %d, packet %d: %d, %v, %v", life, next, a.Kind, &h, d)
				}
				next++
			}
			if next > 2000 && !killed {
				killed, read = true, func(batch []mpe.RxPacket) (int, error) { return c.Poll(batch, nil) }
				cmd.Process.Kill()
				cmd.Wait()
			}
		}
		if n, err := c.SendPackets(1, []mpe.Packet{transporttest.Packet(0, 1, 1, 1)}); n != 0 || err != nil {
			t.Fatalf("%d packets went to the dead, %v", n, err)
		}
		if now := mappings(t); now > mapped+1 { // the last process's shared buffer can still be read
			t.Fatalf("%d pieces of memory were mapped, and %d are left", mapped, now)
		}
	}
}

// mappings counts the shared memory mappings of this process.
func mappings(t *testing.T) (n int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "/memfd:zrlmpid") {
			n++
		}
	}
	return n
}

// TestNothingIsLeft checks that no file is created and no descriptor is leaked.
func TestNothingIsLeft(t *testing.T) {
	descriptors := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			to, _ := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
			if strings.HasPrefix(to, "/memfd:zrlmpid") || to == "anon_inode:[eventfd]" {
				n++
			}
		}
		return n
	}
	before, mapped := descriptors(), mappings(t)
	for range 3 {
		a, b := polled(t)
		for _, c := range []*Conn{a, b} {
			c.Close()
			if _, err := c.Poll(make([]mpe.RxPacket, 1), nil); err == nil {
				t.Error("it is not closed")
			}
		}
	}
	if n := descriptors(); n > before {
		t.Errorf("%d descriptors before, %d after", before, n)
	}
	if n := mappings(t); n > mapped {
		t.Errorf("%d mappings before, %d after", mapped, n)
	}
}

// TestMemoryOfTheForgotten checks that the memory of a Conn is released with the Conn if nobody polls it after
// Close. It cannot be released earlier, because it may be in use.
func TestMemoryOfTheForgotten(t *testing.T) {
	m := transporttest.Map(t, 2)
	before := mappings(t)
	func() {
		var conns [2]*Conn
		for rank := range conns {
			c, err := Listen(Config{Rank: rank, Map: m})
			if err != nil {
				t.Fatal(err)
			}
			conns[rank] = c
		}
		for _, c := range conns {
			if n, err := c.Recv(make([]mpe.RxPacket, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		for _, c := range conns {
			c.Close()
		}
	}()
	for deadline := time.Now().Add(transporttest.Timeout); mappings(t) > before; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("the memory is still mapped")
		}
	}
}
