package udp

import (
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// modePair returns the Conns of two ranks at a loopback address, which use the extended profile.
func modePair(t *testing.T, ip string) (near, far *Conn) {
	t.Helper()
	var entries []rankmap.Entry
	for rank := range 2 {
		entries = append(entries, rankmap.Entry{
			Rank: rank, Addr: netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(27300+rank)), Kind: rankmap.Software,
		})
	}
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	for rank, c := range []**Conn{&near, &far} {
		if *c, err = Listen(Config{Rank: rank, Map: m, Large: func(int) bool { return true }}); err != nil {
			t.Skipf("NOT CHECKED: %v", err)
		}
		t.Cleanup(func() { (*c).Close() })
	}
	if !near.Discovers() {
		t.Skip("NOT CHECKED: this kernel has no modes")
	}
	return near, far
}

// TestModes checks that packets of the extended profile are fragmented only if Packet.Fragment allows it, and that
// packets of the other profiles are sent in the system's default mode.
func TestModes(t *testing.T) {
	for _, tt := range []struct {
		ip                      string
		level, discover, length int
		fragments               int
	}{
		{"127.0.0.87", unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, 0, 0},
		{"::1", unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_MTU, 1280},
	} {
		t.Run(tt.ip, func(t *testing.T) {
			near, far := modePair(t, tt.ip)
			sock := near.sock.(*mmsgSocket)
			whole, parts := mpe.Packet{Payload: make([]byte, 5000)},
				mpe.Packet{Payload: make([]byte, 5000), Fragment: true}
			header := make([]byte, protocol.HeaderLen)
			send := func(packets ...mpe.Packet) {
				t.Helper()
				if n, err := near.SendPackets(1, packets); n != len(packets) || err != nil {
					t.Fatal(n, err)
				}
			}
			sent := 0
			for _, step := range []struct {
				do   func()
				n    int
				want int
			}{
				{func() { send(whole) }, 1, unix.IP_PMTUDISC_PROBE},
				{func() { send(parts) }, 1, unix.IP_PMTUDISC_DONT},
				{func() { send(parts, whole, whole, parts, parts, whole) }, 6, unix.IP_PMTUDISC_PROBE},
				{func() {
					if err := near.SendHeader(1, header); err != nil {
						t.Fatal(err)
					}
				}, 1, unix.IP_PMTUDISC_WANT},
				{func() { send(whole, parts) }, 2, unix.IP_PMTUDISC_DONT},
			} {
				step.do()
				sent += step.n
				if got, err := unix.GetsockoptInt(sock.fd, tt.level, tt.discover); got != step.want || err != nil {
					t.Errorf("after %d datagrams: %d, %v, want %d", sent, got, err, step.want)
				}
			}
			batch := make([]mpe.RxPacket, 64)
			for got := 0; got < sent; {
				n, err := far.Recv(batch)
				if err != nil {
					t.Fatal(err)
				}
				got += n
			}
		})
	}
}

// TestLongestDatagram uses the loopback interface, whose MTU is 65536.
func TestLongestDatagram(t *testing.T) {
	for ip, want := range map[string]int{"127.0.0.87": MaxDatagram, "::1": 65536 - 48} {
		near, _ := modePair(t, ip)
		sock := near.sock.(*mmsgSocket)
		for _, refusal := range []unix.Errno{0, unix.EMSGSIZE, unix.EINVAL} {
			sock.segmentErrnos[1].Store(uint32(refusal))
			if n := near.LongestDatagram(1); n != want || len(sock.refusals()) > 0 {
				t.Errorf("%s: %d, %v", ip, n, sock.refusals())
			}
		}
		sock.segmentErrnos[1].Store(uint32(unix.EIO)) // not an error about lengths
		if near.LongestDatagram(1); len(sock.refusals()) != 1 {
			t.Errorf("%s: %v", ip, sock.refusals())
		}
		if n := near.LongestDatagram(2); n != 0 {
			t.Errorf("%s: %d bytes to a rank that there is not", ip, n)
		}
		near.Close()
		if n := near.LongestDatagram(1); n != 0 {
			t.Errorf("%s: %d bytes after Close", ip, n)
		}
	}
}
