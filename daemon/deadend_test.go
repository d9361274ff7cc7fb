package daemon

import (
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestDeadEnd plays an FPGA that does not acknowledge a message from a program attached to the daemon's rank.
// All operations of this program, of the daemon and of the next program fail with that error until the daemon
// is reset (zrlctl reset).
func TestDeadEnd(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "peer: fpga, link: {deadlines: {ack: 250ms}}"))
	fpga := at(t, c.addr(1), c.addr(0))
	program := func() *mpi.Comm {
		client, err := attach.Dial(within(t), config.AttachSocketFor(c.socket), 0)
		if err != nil {
			t.Fatal(err)
		}
		world, err := mpi.New(client)
		if err != nil {
			t.Fatal(err)
		}
		return world
	}
	const step = `run "zrlctl reset 1 --from 0"`
	ends := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, handshake.ErrDeadEnd) || !strings.Contains(err.Error(), "did not acknowledge 1000 words") ||
			!strings.Contains(err.Error(), step) {
			t.Errorf("%s: %v", what, err)
		}
	}
	world := program()
	failed := make(chan error, 1)
	out, in := make([]int32, 1000), make([]int32, 1000)
	go func() {
		_, err := mpi.Sendrecv(within(t), world, out, 1, 0, in, 1, 0)
		failed <- err
	}()
	fpga.awaits(protocol.SendRequest)
	fpga.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	if err := <-failed; !errors.Is(err, handshake.ErrPartial) || errors.Is(err, handshake.ErrDeadEnd) ||
		!strings.Contains(err.Error(), step) {
		t.Fatal(err)
	}
	_, err := mpi.Recv(within(t), world, in, 1, 0)
	ends("a receive of the program", err)
	if err := world.Finalize(within(t)); err != nil {
		t.Fatal(err)
	}
	world = program()
	ends("a send of the next program", mpi.Send(within(t), world, out[:1], 1, 0))
	_, err = r.findRank(0).Engine.Recv(within(t), 1, make([]byte, 4), mpe.Options{})
	ends("a receive of the daemon", err)
	s, err := r.client.Status(within(t))
	if err != nil || !strings.Contains(s.Ranks[0].Engine.Peers[0].Refuses, step) {
		t.Errorf("the status: %+v, %v", s.Ranks, err)
	}

	if err := query.Do(within(t), r.client.Handle, query.Request{Kind: query.Reset, Rank: 0, Peer: 1}); err != nil {
		t.Fatal(err)
	}
	go func() { failed <- mpi.Send(within(t), world, out[:1], 1, 0) }()
	fpga.awaits(protocol.SendRequest)
	fpga.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	fpga.awaits(protocol.Data)
	fpga.says(protocol.Ack, protocol.RecvInt, 0, nil)
	if err := <-failed; err != nil {
		t.Errorf("after the reset: %v", err)
	}
}
