package daemon

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestForeignProfile: the log and the error of a send to a peer that speaks the extended profile
// name the profiles of both sides.
func TestForeignProfile(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "peer: software"))
	laddr, err := net.ResolveUDPAddr("udp", c.addr(1))
	if err != nil {
		t.Fatal(err)
	}
	raddr, err := net.ResolveUDPAddr("udp", c.addr(0))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUDP("udp", laddr, raddr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	packet := make([]byte, protocol.ExtHeaderLen)
	protocol.PutExtended(packet, &protocol.ExtHeader{Type: protocol.Ack, Src: 1})
	if _, err := conn.Write(packet); err != nil {
		t.Fatal(err)
	}
	r.log.waitFor(t, "packet of profile extended, and profile cloudfpga is configured for rank 1 here")
	ctx, cancel := context.WithCancel(within(t))
	errs := make(chan error, 1)
	go func() {
		_, err := r.client.Send(ctx, control.SendRequest{From: 0, To: 1}, strings.NewReader("1234"))
		errs <- err
	}()
	await(t, "the send to wait", func() bool { return r.ranks[0].Engine.Snapshot().Peers[0].Sending != nil })
	cancel()
	if err := <-errs; !strings.Contains(err.Error(), "; rank 1 sends packets of profile extended, and profile cloudfpga is configured for it here") {
		t.Error(err)
	}
}

// TestAttachToControlSocket: a program that is given the control socket gets the path of the other one in the error.
func TestAttachToControlSocket(t *testing.T) {
	c := newCluster(t)
	start(t, c.yaml("", "run: host", "peer: software"))
	t.Setenv(mpi.EnvSocket, c.socket)
	_, err := mpi.OpenDevice(within(t))
	if err == nil || !strings.Contains(err.Error(), "that is a daemon's control socket; attach to "+strings.TrimSuffix(c.socket, ".sock")+"-attach.sock") {
		t.Error(err)
	}
}
