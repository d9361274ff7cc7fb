package main

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
)

const (
	payloadLen  = 32
	ethernetLen = 14
	ipv4Len     = 20
	udpLen      = 8
	headersLen  = ethernetLen + ipv4Len + udpLen
	frameLen    = headersLen + payloadLen

	etherIPv4 = 0x0800
	ipv4Start = 0x4500 // version, length of the header, type of service
	ipv4Whole = 0x4000 // do not fragment
	ipv4UDP   = 0x4011 // time to live, UDP

	// port is the UDP port of both sides.
	port = 2718
)

var errForeign = errors.New("received a datagram that is not the peer's, or a corrupt one")

// endpoint is one end of the veth pair.
type endpoint struct {
	MAC  net.HardwareAddr
	Addr netip.Addr
}

// endpoints holds the endpoints of the host and of the peer.
var endpoints = [2]endpoint{
	{net.HardwareAddr{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("10.77.0.1")},
	{net.HardwareAddr{2, 0, 0, 0, 0, 2}, netip.MustParseAddr("10.77.0.2")},
}

// checksum returns the complement of the one's complement sum of an initial value and b, whose length is even.
func checksum(sum uint64, b []byte) uint16 {
	for ; len(b) >= 4; b = b[4:] {
		sum += uint64(binary.BigEndian.Uint32(b))
	}
	if len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// checksumUDP returns the checksum of the UDP datagram in an IPv4 packet, with its pseudo header.
func checksumUDP(packet []byte) uint16 {
	return checksum(ipv4UDP&0xff+uint64(len(packet)-ipv4Len), packet[12:])
}

// writeFrame writes an Ethernet frame with a UDP datagram into f, including both checksums.
func writeFrame(f []byte, from, to *endpoint, payload []byte) {
	copy(f, to.MAC)
	copy(f[6:], from.MAC)
	binary.BigEndian.PutUint16(f[12:], etherIPv4)
	packet := f[ethernetLen:]
	binary.BigEndian.PutUint32(packet, ipv4Start<<16|uint32(len(packet)))
	binary.BigEndian.PutUint32(packet[4:], ipv4Whole)
	binary.BigEndian.PutUint32(packet[8:], ipv4UDP<<16)
	source, destination := from.Addr.As4(), to.Addr.As4()
	copy(packet[12:], source[:])
	copy(packet[16:], destination[:])
	binary.BigEndian.PutUint16(packet[10:], checksum(0, packet[:ipv4Len]))
	datagram := packet[ipv4Len:]
	binary.BigEndian.PutUint32(datagram, port<<16|port)
	binary.BigEndian.PutUint32(datagram[4:], uint32(len(datagram))<<16)
	copy(datagram[udpLen:], payload)
	sum := checksumUDP(packet)
	if sum == 0 {
		sum = 0xffff // 0 would mean that there is no checksum
	}
	binary.BigEndian.PutUint16(datagram[6:], sum)
}

// readFrame returns the payload of a frame from one endpoint to another, or errForeign.
func readFrame(f []byte, from, to *endpoint) ([]byte, error) {
	if len(f) != frameLen || binary.BigEndian.Uint16(f[12:]) != etherIPv4 {
		return nil, errForeign
	}
	packet := f[ethernetLen:]
	datagram := packet[ipv4Len:]
	if packet[0] != ipv4Start>>8 || int(binary.BigEndian.Uint16(packet[2:])) != len(packet) ||
		binary.BigEndian.Uint16(packet[6:])&0x3fff != 0 || packet[9] != ipv4UDP&0xff ||
		[4]byte(packet[12:]) != from.Addr.As4() || [4]byte(packet[16:]) != to.Addr.As4() ||
		checksum(0, packet[:ipv4Len]) != 0 || binary.BigEndian.Uint32(datagram) != port<<16|port ||
		int(binary.BigEndian.Uint16(datagram[4:])) != len(datagram) ||
		binary.BigEndian.Uint16(datagram[6:]) != 0 && checksumUDP(packet) != 0 {
		return nil, errForeign
	}
	return datagram[udpLen:], nil
}
