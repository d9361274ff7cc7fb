package dashboards_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// fpga plays a deployed FPGA whose messages consist of one word.
type fpga struct {
	conn       *net.UDPConn
	rank, host uint32
	to         netip.AddrPort // address of the host
}

// packet sends a packet to the host. The payload of DATA is the given word.
func (f *fpga) packet(packetType protocol.Type, call protocol.Call, word uint32) {
	header := protocol.Header{Src: f.rank, Dst: f.host, Type: packetType, Call: call}
	if packetType == protocol.Data {
		header.Size = 1
	}
	p := protocol.CloudFPGA.Append(nil, header)
	if packetType == protocol.Data {
		p = binary.LittleEndian.AppendUint32(p, word)
	}
	f.conn.WriteToUDPAddrPort(p, f.to)
}

// serve calls handle for each packet from the host until the test ends.
func (f *fpga) serve(handle func(packetType protocol.Type)) {
	pump(f.conn, func(p []byte, _ netip.AddrPort) {
		if header, err := protocol.CloudFPGA.Decode(p); err == nil {
			handle(header.Type)
		}
	})
}

// sendCopies sends messages to the host. In place of every tenth message, the network delivers a copy of an earlier
// one, and then the message itself.
func (f *fpga) sendCopies() {
	const period = 10
	number := uint32(0)
	request := func() { f.packet(protocol.SendRequest, protocol.SendInt, 0) }
	f.serve(func(packetType protocol.Type) {
		copied := number%period == period-1
		switch {
		case packetType == protocol.ClearToSend && copied:
			f.packet(protocol.Data, protocol.SendInt, number-period/2)
		case packetType == protocol.ClearToSend:
			f.packet(protocol.Data, protocol.SendInt, number)
		case packetType == protocol.Ack:
			if copied {
				f.packet(protocol.Data, protocol.SendInt, number)
			}
			number++
			request()
		}
	})
	request()
}

// receiveSlowly receives messages from the host. It acknowledges them at once, and late when isSlow is set.
func (f *fpga) receiveSlowly(isSlow *atomic.Bool, late time.Duration) {
	f.serve(func(packetType protocol.Type) {
		acknowledge := func() { f.packet(protocol.Ack, protocol.RecvInt, 0) }
		switch {
		case packetType == protocol.SendRequest:
			f.packet(protocol.ClearToSend, protocol.RecvInt, 0)
		case packetType == protocol.Data && isSlow.Load():
			time.AfterFunc(late, acknowledge)
		case packetType == protocol.Data:
			acknowledge()
		}
	})
}

// startFPGAs starts a daemon with two hosts and two FPGAs: rank 1 sends copies to rank 0, and rank 3 acknowledges the
// messages of rank 2 late when isSlow is set.
func startFPGAs(t *testing.T, isSlow *atomic.Bool) *running {
	n := newNetwork(t)
	d := startDaemon(t, daemon.Options{Log: zap.NewNop()}, "", // the log has the faults
		fmt.Sprintf("address: %q, run: host", n.address(0)), fmt.Sprintf("address: %q, peer: fpga", n.address(1)),
		fmt.Sprintf("address: %q, run: host", n.address(2)), fmt.Sprintf("address: %q, peer: fpga", n.address(3)))
	keep(t, func(ctx context.Context) { d.client.Recv(ctx, control.RecvRequest{To: 0, From: 1, Words: 1}) })
	keep(t, func(ctx context.Context) {
		d.client.Send(ctx, control.SendRequest{From: 2, To: 3}, strings.NewReader("word"))
	})
	copies := &fpga{conn: socket(t, n.address(1)), rank: 1, host: 0, to: n.address(0)}
	copies.sendCopies()
	slow := &fpga{conn: socket(t, n.address(3)), rank: 3, host: 2, to: n.address(2)}
	slow.receiveSlowly(isSlow, 800*time.Millisecond)
	return d
}
