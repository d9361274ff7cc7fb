package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	payloadLen = 32
	// port is the UDP port of both sides.
	port = 2718
)

// endpoint is one end of the veth pair.
type endpoint struct {
	MAC  net.HardwareAddr
	Addr netip.Addr
}

func (e *endpoint) addrPort() netip.AddrPort { return netip.AddrPortFrom(e.Addr, port) }

// endpoints holds the endpoints of the host and of the peer.
var endpoints = [2]endpoint{
	{net.HardwareAddr{2, 0, 0, 0, 0, 1}, netip.MustParseAddr("10.9.0.1")},
	{net.HardwareAddr{2, 0, 0, 0, 0, 2}, netip.MustParseAddr("10.9.0.2")},
}

var errForeign = errors.New("received a datagram that is not the peer's")

// transport exchanges datagrams with the peer. It polls. An error ends the process.
type transport interface {
	// send sends a datagram, or queues it until the next call of receive or flush.
	send(payload []byte)
	// receive waits for a datagram. The payload is valid until the next call.
	receive() []byte
	flush()
	// check ends the process unless counters show that total datagrams in each direction took this path.
	check(total int, c counts)
}

// path is a way to exchange datagrams.
type path struct {
	name string
	// busyPoll means that system calls also poll the device.
	busyPoll bool
	// gro means that the device coalesces packets, so that it has a NAPI and an XDP program runs in the driver's mode.
	gro  bool
	open func(own, peer *endpoint) transport
}

var paths = []path{
	udpPath("udp", false),
	udpPath("udp-busypoll", true),
	uringPath("uring", uringOptions{}),
	uringPath("uring-fixed", uringOptions{fixed: true}),
	uringPath("uring-try", uringOptions{try: true}),
	uringPath("uring-multishot", uringOptions{multishot: true}),
	uringPath("uring-busypoll", uringOptions{multishot: true, busyPoll: true}),
	uringPath("uring-sqpoll", uringOptions{multishot: true, sqPoll: true}),
	uringPath("uring-sqpoll-busypoll", uringOptions{multishot: true, sqPoll: true, busyPoll: true}),
	{name: "xdp-native", gro: true, open: func(own, peer *endpoint) transport { return openXDP(false, own, peer) }},
	{name: "xdp-generic", open: func(own, peer *endpoint) transport { return openXDP(true, own, peer) }},
}

func udpPath(name string, busyPoll bool) path {
	return path{name, busyPoll, busyPoll, func(own, peer *endpoint) transport { return openUDP(busyPoll, own, peer) }}
}

func uringPath(name string, o uringOptions) path {
	return path{name, o.busyPoll, o.busyPoll, func(own, peer *endpoint) transport { return openURing(o, own, peer) }}
}

// side describes one process of a ping-pong.
type side struct {
	Path  int // index in paths
	Index int // 0 is the host, which measures, and 1 is the peer
	Trips int // number of round trips, without a tenth as many to warm up
}

// figures are the results of one round. Only the host has times.
type figures struct {
	P50, P99   time.Duration
	Preempted  int     // number of times that the kernel ran another thread instead, often one of Go's runtime
	BusyPolled float64 // percentage of packets that system calls took from the device
}

// must ends the process if there is an error.
func must(what string, err error) {
	if err != nil {
		log.Fatalf("%s: %v", what, err)
	}
}

// runSide runs one process of a ping-pong. It writes "ready" to stdout if this kernel supports the path, waits for the
// end of stdin, and writes its figures.
func runSide(description string) {
	var s side
	must("description", json.Unmarshal([]byte(description), &s))
	runtime.LockOSThread()
	debug.SetGCPercent(-1)
	t := paths[s.Path].open(&endpoints[s.Index], &endpoints[1-s.Index])
	// The device sends packets some time after both ends are up.
	for ready := false; !ready; time.Sleep(time.Millisecond) {
		device, err := net.InterfaceByName("eth0")
		must("device", err)
		ready = device.Flags&net.FlagRunning != 0
	}
	fmt.Println("ready")
	times := make([]time.Duration, s.Trips/10+s.Trips)
	before := preemptions()
	if s.Index == 0 {
		_, _ = io.ReadAll(os.Stdin)
		measureTrips(t, times)
	} else {
		echo(t, len(times))
	}
	f := figures{Preempted: preemptions() - before}
	time.Sleep(10 * time.Millisecond) // until the last datagram is counted
	c := readCounts()
	t.check(len(times), c)
	if (c.busyPolled > 0) != paths[s.Path].busyPoll {
		log.Fatalf("busy polling received %d packets", c.busyPolled)
	}
	f.BusyPolled = 100 * float64(c.busyPolled) / float64(len(times))
	times = times[s.Trips/10:]
	slices.Sort(times)
	f.P50, f.P99 = times[len(times)/2], times[len(times)*99/100]
	must("stdout", json.NewEncoder(os.Stdout).Encode(f))
}

// preemptions returns the number of involuntary context switches of the calling thread.
func preemptions() int {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u) // its arguments are valid
	return int(u.Nivcsw)
}

// measureTrips measures round trips. Payloads differ.
func measureTrips(t transport, times []time.Duration) {
	payload := bytes.Repeat([]byte{0x5a}, payloadLen)
	start := time.Now()
	for i := range times {
		binary.LittleEndian.PutUint64(payload, uint64(i))
		t.send(payload)
		if answer := t.receive(); !bytes.Equal(answer, payload) {
			log.Fatalf("sent %x and received %x", payload, answer)
		}
		now := time.Now()
		times[i], start = now.Sub(start), now
	}
}

// echo returns received datagrams.
func echo(t transport, trips int) {
	for range trips {
		t.send(t.receive())
	}
	t.flush()
}

// counts are the numbers of UDP datagrams that the kernel received and sent in the network namespace, and of packets
// that busy polling received.
type counts struct{ received, sent, busyPolled int }

// readCounts reads the counters of the process's network namespace. A counter that the kernel does not have is 0.
func readCounts() counts {
	values := map[string]int{}
	for _, file := range []string{"/proc/self/net/snmp", "/proc/self/net/netstat"} {
		text, err := os.ReadFile(file)
		must("counters", err)
		var names []string // a line of names precedes each line of values
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			for i := 1; i < len(fields) && i < len(names) && names[0] == fields[0]; i++ {
				values[names[0]+names[i]], _ = strconv.Atoi(fields[i])
			}
			names = fields
		}
	}
	return counts{values["Udp:InDatagrams"], values["Udp:OutDatagrams"], values["TcpExt:BusyPollRxPackets"]}
}

// checkSockets ends the process unless the kernel's UDP received and sent total datagrams.
func (c counts) checkSockets(total int) {
	if c.received != total || c.sent != total {
		log.Fatalf("UDP received %d and sent %d of %d datagrams", c.received, c.sent, total)
	}
}
