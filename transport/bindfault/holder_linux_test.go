package bindfault

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestHolderOfARealSocket(t *testing.T) {
	udp, err := net.ListenPacket("udp", ":0") // in the IPv6 table, if the system has IPv6
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	tcp, err := net.Listen("tcp4", "127.0.0.3:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	udpPort := netip.MustParseAddrPort(udp.LocalAddr().String()).Port()
	for network, addr := range map[string]netip.AddrPort{
		"udp": netip.AddrPortFrom(netip.MustParseAddr("127.0.0.9"), udpPort),
		"tcp": netip.MustParseAddrPort(tcp.Addr().String()),
	} {
		s := Bound(network, addr)
		if s == nil {
			t.Errorf("%s %v is not found", network, addr)
			continue
		}
		holder := s.Holder
		if holder == nil || holder.PID != os.Getpid() || holder.Name == "" {
			t.Errorf("%s %v is held by %+v", network, addr, holder)
		}
	}
}

func TestHolder(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	socket := func(pid, inode string) {
		t.Helper()
		write(pid+"/comm", "name"+pid+"\n")
		if err := os.MkdirAll(filepath.Join(root, pid, "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("socket:["+inode+"]", filepath.Join(root, pid, "fd", "3")); err != nil {
			t.Fatal(err)
		}
	}
	line := func(ip [4]byte, port int, inode string) string {
		return fmt.Sprintf("  1: %08X:%04X 00000000:0000 07 00000000:00000000 00:00000000 00000000  0  0 %s 2 0 7\n",
			binary.NativeEndian.Uint32(ip[:]), port, inode)
	}
	write("thread-self/net/udp", "  sl  local_address rem_address st ...\n"+
		"short line\n  1: nonsense 0:0 07 0 0 0 0 0 1 2\n  1: 00:0A9E 0:0 07 0 0 0 0 0 1 2\n"+
		line([4]byte{10, 1, 1, 1}, 2718, "100")+
		line([4]byte{10, 1, 1, 2}, 2718, "200")+
		line([4]byte{10, 1, 1, 2}, 2719, "300")+
		line([4]byte{0, 0, 0, 0}, 2720, "400")+
		line([4]byte{10, 1, 1, 3}, 2721, "0")+
		line([4]byte{10, 1, 1, 4}, 2722, "unreadable"))
	socket("11", "100")
	socket("12", "200")
	socket("13", "300")
	socket("14", "400")
	socket("15", "0")
	write("version", "not a process")
	for addr, want := range map[string]int{
		"10.1.1.1:2718": 11,
		"10.1.1.2:2718": 12,
		"10.1.1.2:2719": 13,
		"10.1.1.9:2720": 14,
		"10.1.1.9:2718": 0,
		"10.1.1.3:2721": 0,
		"10.1.1.4:2722": 0,
	} {
		var holder *Process
		if s := proc(root).findSocket("udp", netip.MustParseAddrPort(addr)); s != nil {
			if holder = s.Holder; s.Drops != 7 {
				t.Errorf("%s has %d drops", addr, s.Drops)
			}
		}
		switch {
		case want == 0 && holder != nil:
			t.Errorf("%s is held by %+v, want nobody", addr, holder)
		case want != 0 && (holder == nil || holder.PID != want || holder.Name != fmt.Sprint("name", want)):
			t.Errorf("%s is held by %+v, want %d", addr, holder, want)
		}
	}
	if h := proc(root).findSocket("tcp", netip.MustParseAddrPort("10.1.1.1:2718")); h != nil {
		t.Errorf("without a table, %+v", h)
	}
}
