package system

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

// dumpTable returns all messages that describe the entries of a kernel table.
func dumpTable(request, family int) ([]syscall.NetlinkMessage, error) {
	table, err := syscall.NetlinkRIB(request, family)
	if err != nil {
		return nil, os.NewSyscallError("netlink", err)
	}
	return syscall.ParseNetlinkMessage(table)
}

// attributes calls the function each for every attribute that follows the header of a netlink message.
func attributes(data []byte, header int, each func(kind uint16, value []byte)) {
	if len(data) < header {
		return
	}
	for b := data[header:]; len(b) >= unix.SizeofRtAttr; {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			return
		}
		each(binary.NativeEndian.Uint16(b[2:])&^(unix.NLA_F_NESTED|unix.NLA_F_NET_BYTEORDER),
			b[unix.SizeofRtAttr:length])
		b = b[min((length+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(b)):]
	}
}

// readInterfaces returns the interfaces with their addresses and counters.
func readInterfaces() ([]doctor.Interface, error) {
	links, err := dumpTable(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	var all []doctor.Interface
	for _, m := range links {
		if m.Header.Type == unix.RTM_NEWLINK && len(m.Data) >= unix.SizeofIfInfomsg {
			all = append(all, parseLink(m.Data))
		}
	}
	addresses, err := dumpTable(unix.RTM_GETADDR, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	for _, m := range addresses {
		if m.Header.Type != unix.RTM_NEWADDR || len(m.Data) < unix.SizeofIfAddrmsg {
			continue
		}
		index := int(binary.NativeEndian.Uint32(m.Data[4:]))
		own := addressOf(m.Data)
		for i := range all {
			if all[i].Index == index && own.IsValid() {
				all[i].Addresses = append(all[i].Addresses, own)
				if m.Data[2]&unix.IFA_F_DADFAILED != 0 {
					all[i].Duplicates = append(all[i].Duplicates, own)
				}
			}
		}
	}
	for i := range all {
		all[i].ReversePath = doctor.NewFact(readReversePath(all[i].Name))
	}
	return all, nil
}

// addressOf returns the host's address from a netlink message about an address. On a point-to-point link, this is the
// attribute IFA_LOCAL.
func addressOf(data []byte) (own netip.Addr) {
	attributes(data, unix.SizeofIfAddrmsg, func(kind uint16, value []byte) {
		if ip, ok := netip.AddrFromSlice(value); ok &&
			(kind == unix.IFA_LOCAL || kind == unix.IFA_ADDRESS && !own.IsValid()) {
			own = ip
		}
	})
	return own
}

// Positions of counters in struct rtnl_link_stats64, in units of 8 bytes.
const (
	rxPackets, txPackets = 0, 1
	rxErrors, txErrors   = 4, 5
	txDropped            = 7
	rxMissed             = 14
)

func parseLink(data []byte) doctor.Interface {
	flags := binary.NativeEndian.Uint32(data[8:])
	i := doctor.Interface{
		Index: int(int32(binary.NativeEndian.Uint32(data[4:]))), Loopback: flags&unix.IFF_LOOPBACK != 0,
		Up: flags&unix.IFF_UP != 0, Carrier: flags&unix.IFF_LOWER_UP != 0,
	}
	attributes(data, unix.SizeofIfInfomsg, func(kind uint16, value []byte) {
		switch {
		case kind == unix.IFLA_IFNAME:
			i.Name = unix.ByteSliceToString(value)
		case kind == unix.IFLA_MTU && len(value) >= 4:
			i.MTU = int(binary.NativeEndian.Uint32(value))
		case kind == unix.IFLA_STATS64 && len(value) >= (rxMissed+1)*8:
			count := func(at int) uint64 { return binary.NativeEndian.Uint64(value[at*8:]) }
			i.Counters = doctor.Counters{
				Received: count(rxPackets), Sent: count(txPackets),
				ReceiveErrors: count(rxErrors) + count(rxMissed), SendErrors: count(txErrors) + count(txDropped),
			}
		}
	})
	return i
}

// readReversePath returns the mode of the reverse path filter of an interface. The kernel applies the higher of the
// interface's setting and the setting for all interfaces. The filter does not exist for IPv6.
func readReversePath(name string) (mode doctor.ReversePath, err error) {
	for _, of := range []string{"all", name} {
		text, err := os.ReadFile("/proc/sys/net/ipv4/conf/" + of + "/rp_filter")
		if err != nil {
			return 0, err
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return 0, err
		}
		mode = max(mode, doctor.ReversePath(n))
	}
	return mode, nil
}

// addRoutes adds its route, and the state of the route's next hop, to each path.
func addRoutes(paths []doctor.Path, known []doctor.Interface) {
	neighbours := readNeighbours()
	for i := range paths {
		path := &paths[i]
		route, index, err := queryRoute(path.From, path.To)
		if errno, ok := errors.AsType[syscall.Errno](err); ok {
			route, err = doctor.Route{Refused: errno.Error()}, nil
		}
		for j := range known {
			if known[j].Index == index {
				route.Interface = known[j].Name
			}
		}
		if route.Refused == "" && err == nil {
			route.MTU = pathMTU(path.From, path.To)
		}
		path.Route = doctor.NewFact(route, err)
		hop := path.To
		if route.Gateway.IsValid() {
			hop = route.Gateway
		}
		path.Neighbour = neighbours[neighbour{index, hop}]
	}
}

// neighbour is the key by which an entry in the ARP or neighbour discovery table is found.
type neighbour struct {
	index int
	addr  netip.Addr
}

// readNeighbours returns the state of each neighbour in the kernel's tables, or nil if the tables cannot be read.
func readNeighbours() map[neighbour]doctor.Neighbour {
	messages, err := dumpTable(unix.RTM_GETNEIGH, unix.AF_UNSPEC)
	if err != nil {
		return nil
	}
	states := make(map[neighbour]doctor.Neighbour)
	for _, m := range messages {
		if m.Header.Type != unix.RTM_NEWNEIGH || len(m.Data) < unix.SizeofNdMsg {
			continue
		}
		at := neighbour{index: int(int32(binary.NativeEndian.Uint32(m.Data[4:])))}
		state := doctor.NeighbourKnown
		if binary.NativeEndian.Uint16(m.Data[8:])&(unix.NUD_FAILED|unix.NUD_INCOMPLETE) != 0 {
			state = doctor.NeighbourFailed
		}
		attributes(m.Data, unix.SizeofNdMsg, func(kind uint16, value []byte) {
			if ip, ok := netip.AddrFromSlice(value); ok && kind == unix.NDA_DST {
				at.addr = ip
			}
		})
		states[at] = state
	}
	return states
}

// queryRoute asks the kernel for the route between two addresses. If there is no route, the error is a syscall.Errno.
func queryRoute(from, to netip.Addr) (route doctor.Route, index int, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return route, 0, fmt.Errorf("netlink socket: %s", err.Error()) // not an Errno: the route is unknown
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, routeRequest(from, to), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return route, 0, fmt.Errorf("netlink: %s", err.Error())
	}
	buf := make([]byte, 1<<14)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return route, 0, fmt.Errorf("netlink: %s", err.Error())
	}
	messages, err := syscall.ParseNetlinkMessage(buf[:n])
	if err != nil || len(messages) == 0 {
		return route, 0, errors.New("netlink: the answer is not valid")
	}
	m := messages[0]
	if m.Header.Type == unix.NLMSG_ERROR && len(m.Data) >= 4 {
		return route, 0, syscall.Errno(-int32(binary.NativeEndian.Uint32(m.Data)))
	}
	attributes(m.Data, unix.SizeofRtMsg, func(kind uint16, value []byte) {
		switch {
		case kind == unix.RTA_OIF && len(value) >= 4:
			index = int(int32(binary.NativeEndian.Uint32(value)))
		case kind == unix.RTA_GATEWAY:
			route.Gateway, _ = netip.AddrFromSlice(value)
		}
	})
	return route, index, nil
}

// routeRequest returns the netlink message that requests the route between two addresses.
func routeRequest(from, to netip.Addr) []byte {
	family := byte(unix.AF_INET)
	if to.Is6() {
		family = unix.AF_INET6
	}
	b := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg)
	message := (*unix.RtMsg)(unsafe.Pointer(&b[unix.SizeofNlMsghdr]))
	message.Family, message.Dst_len, message.Src_len = family, byte(to.BitLen()), byte(from.BitLen())
	for kind, ip := range map[uint16]netip.Addr{unix.RTA_DST: to, unix.RTA_SRC: from} {
		value := ip.AsSlice()
		b = binary.NativeEndian.AppendUint16(b, uint16(unix.SizeofRtAttr+len(value)))
		b = binary.NativeEndian.AppendUint16(b, kind)
		b = append(b, value...)
	}
	header := (*unix.NlMsghdr)(unsafe.Pointer(&b[0]))
	header.Len, header.Type, header.Flags, header.Seq = uint32(len(b)), unix.RTM_GETROUTE, unix.NLM_F_REQUEST, 1
	return b
}
