package bindfault

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Bound returns the socket that occupies addr, or nil if addr is free. network is "udp" or "tcp".
func Bound(network string, addr netip.AddrPort) *Socket {
	return proc("/proc").findSocket(network, addr)
}

// proc is the path of a directory laid out like /proc.
type proc string

// findSocket returns the socket that occupies addr. It prefers a socket whose process it can identify; without root, it
// can identify only processes of the same user.
func (p proc) findSocket(network string, addr netip.AddrPort) *Socket {
	var found *Socket
	// An IPv6 socket on the unspecified address occupies the IPv4 port as well.
	for _, table := range []string{network, network + "6"} {
		for _, s := range p.sockets(table, addr) {
			if s.Holder = p.findOwner(s.inode); s.Holder != nil {
				return &s
			}
			if found == nil {
				found = &s
			}
		}
	}
	return found
}

// sockets returns the sockets bound to addr, as listed in net/table of the thread's network namespace.
func (p proc) sockets(table string, addr netip.AddrPort) []Socket {
	file, err := os.Open(filepath.Join(string(p), "thread-self/net", table))
	if err != nil {
		return nil
	}
	defer file.Close()
	var sockets []Socket
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// Fields: sl local_address rem_address st queues tr:tm retrnsmt uid timeout inode ref pointer drops. For TCP,
		// the fields after inode differ.
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[9] == "0" {
			continue
		}
		local, ok := parseProcAddr(fields[1])
		if !ok || local.Port() != addr.Port() {
			continue
		}
		if local.Addr() == addr.Addr() || local.Addr().IsUnspecified() {
			s := Socket{inode: fields[9]}
			if len(fields) == 13 && strings.HasPrefix(table, "udp") {
				s.Drops, _ = strconv.ParseUint(fields[12], 10, 64)
			}
			sockets = append(sockets, s)
		}
	}
	return sockets
}

// parseProcAddr parses an address in the format of /proc/net: the IP as 32-bit numbers in the machine's byte
// order, and the port, all in hexadecimal.
func parseProcAddr(s string) (netip.AddrPort, bool) {
	ipText, portText, _ := strings.Cut(s, ":")
	port, err := strconv.ParseUint(portText, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	raw, err := hex.DecodeString(ipText)
	if err != nil || len(raw)%4 != 0 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(raw); i += 4 {
		binary.NativeEndian.PutUint32(raw[i:], binary.BigEndian.Uint32(raw[i:]))
	}
	ip, ok := netip.AddrFromSlice(raw)
	return netip.AddrPortFrom(ip.Unmap(), uint16(port)), ok
}

// findOwner returns the first process in which the socket is open.
func (p proc) findOwner(inode string) *Process {
	pids, err := os.ReadDir(string(p))
	if err != nil {
		return nil
	}
	want := "socket:[" + inode + "]"
	for _, entry := range pids {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join(string(p), entry.Name())
		fds, err := os.ReadDir(filepath.Join(dir, "fd"))
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if link, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil && link == want {
				name, _ := os.ReadFile(filepath.Join(dir, "comm"))
				return &Process{PID: pid, Name: strings.TrimSpace(string(name))}
			}
		}
	}
	return nil
}
