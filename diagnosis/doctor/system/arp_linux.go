package system

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

const (
	// arpTries is the number of probes per address. arpWait is the time to wait for answers after each round.
	arpTries = 2
	arpWait  = 250 * time.Millisecond
)

// probeClaims sends ARP requests for those ranks' addresses that are in the networks of this host's interfaces, and
// returns the stations that answer. The requests are probes (RFC 5227), which do not change ARP tables.
func probeClaims(ctx context.Context, plan *doctor.Plan, facts *doctor.Facts) ([]doctor.Claim, error) {
	var own []string
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	for i := range interfaces {
		own = append(own, interfaces[i].HardwareAddr.String())
	}
	var all []doctor.Claim
	for i := range interfaces {
		addrs := plan.Neighbours(facts, interfaces[i].Name)
		if len(interfaces[i].HardwareAddr) != ethernetAddress || len(addrs) == 0 {
			continue
		}
		socket, err := openARP(&interfaces[i])
		if err != nil {
			return nil, err
		}
		socket.probeAll(ctx, addrs)
		unix.Close(socket.fd)
		for _, addr := range addrs {
			claim := doctor.Claim{Addr: addr, Interface: interfaces[i].Name}
			for _, station := range socket.stations[addr] {
				if !slices.Contains(own, station) {
					claim.Stations = append(claim.Stations, station)
				}
			}
			slices.Sort(claim.Stations)
			all = append(all, claim)
		}
	}
	return all, nil
}

// arpSocket sends ARP probes on one interface.
type arpSocket struct {
	fd       int
	index    int
	hardware net.HardwareAddr
	stations map[netip.Addr][]string
}

func openARP(i *net.Interface) (*arpSocket, error) {
	socket := &arpSocket{index: i.Index, hardware: i.HardwareAddr, stations: make(map[netip.Addr][]string)}
	var err error
	if socket.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC,
		int(networkOrder(unix.ETH_P_ARP))); err != nil {
		return nil, fmt.Errorf("this user may not send ARP requests: %w", err)
	}
	err = unix.Bind(socket.fd, &unix.SockaddrLinklayer{Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: socket.index})
	if err != nil {
		unix.Close(socket.fd)
		return nil, os.NewSyscallError("bind", err)
	}
	return socket, nil
}

func networkOrder(n uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
}

// probeAll sends the probes and collects the answers. It always waits for the full time, because a duplicate may answer
// after the owner.
func (s *arpSocket) probeAll(ctx context.Context, addrs []netip.Addr) {
	for _, addr := range addrs {
		s.stations[addr] = nil
	}
	for range arpTries {
		for _, addr := range addrs {
			if ctx.Err() != nil {
				return
			}
			s.probe(addr)
			time.Sleep(echoGap)
		}
		s.receive(ctx, time.Now().Add(arpWait))
	}
}

// Positions, lengths and operations of ARP for IPv4 over Ethernet. Positions and lengths are in bytes.
const (
	ethernetAddress = 6
	arpLength       = 28
	arpOperation    = 6
	arpSource       = 8
	arpSourceIP     = 14
	arpTargetIP     = 24

	arpRequest = 1
	arpReply   = 2
)

// arpHeader is the beginning of a packet: hardware type Ethernet, protocol IPv4, and the lengths of their addresses.
var arpHeader = []byte{0, 1, 8, 0, ethernetAddress, 4}

// probe sends an ARP request for an address. The request contains no source address. If it cannot be sent, it counts as
// unanswered.
func (s *arpSocket) probe(addr netip.Addr) {
	b := make([]byte, arpLength)
	copy(b, arpHeader)
	binary.BigEndian.PutUint16(b[arpOperation:], arpRequest)
	copy(b[arpSource:], s.hardware)
	copy(b[arpTargetIP:], addr.AsSlice())
	to := unix.SockaddrLinklayer{
		Protocol: networkOrder(unix.ETH_P_ARP), Ifindex: s.index, Halen: ethernetAddress,
		Addr: [8]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}
	_ = unix.Sendto(s.fd, b, 0, &to)
}

// receive processes answers to the probes until the deadline has passed.
func (s *arpSocket) receive(ctx context.Context, deadline time.Time) {
	buf := make([]byte, 1<<16)
	for ctx.Err() == nil {
		if !receiveUntil(s.fd, deadline) {
			return
		}
		if n, _, err := unix.Recvfrom(s.fd, buf, 0); err == nil {
			s.recordAnswer(buf[:n])
		}
	}
}

// maxStations is the maximum number of stations recorded for an address.
const maxStations = 8

// recordAnswer records a packet that answers a probe. It ignores other packets.
func (s *arpSocket) recordAnswer(b []byte) {
	if len(b) < arpLength || !slices.Equal(b[:len(arpHeader)], arpHeader) ||
		binary.BigEndian.Uint16(b[arpOperation:]) != arpReply {
		return
	}
	addr, _ := netip.AddrFromSlice(b[arpSourceIP : arpSourceIP+4])
	known, asked := s.stations[addr]
	station := net.HardwareAddr(b[arpSource : arpSource+ethernetAddress]).String()
	if asked && len(known) < maxStations && !slices.Contains(known, station) {
		s.stations[addr] = append(known, station)
	}
}
