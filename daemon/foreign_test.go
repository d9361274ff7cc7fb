package daemon

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi/job"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestForeignProfile checks that the profiles of both sides are named in the log and in the error of a send to
// a peer with the extended profile.
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
	if err := <-errs; !strings.Contains(err.Error(),
		"; rank 1 sends packets of profile extended, and profile cloudfpga is configured for it here") {
		t.Error(err)
	}
}

// TestAttachToControlSocket checks that a program that attaches to the control socket gets an error that names
// the right socket.
func TestAttachToControlSocket(t *testing.T) {
	c := newCluster(t)
	start(t, c.yaml("", "run: host", "peer: software"))
	t.Setenv(job.EnvSocket, c.socket)
	_, err := job.Device(within(t))
	if err == nil || !strings.Contains(err.Error(),
		"that is a daemon's control socket; attach to "+strings.TrimSuffix(c.socket, ".sock")+"-attach.sock") {
		t.Error(err)
	}
}

// TestControlOnAttachSocket checks that zrlctl reports the right socket if it is given the socket for programs.
func TestControlOnAttachSocket(t *testing.T) {
	c := newCluster(t)
	start(t, c.yaml("", "run: host", "peer: software"))
	client := control.NewClient(strings.TrimSuffix(c.socket, ".sock") + "-attach.sock")
	defer client.Close()
	_, err := client.Status(within(t))
	if err == nil || !strings.Contains(err.Error(),
		"-attach.sock: programs attach to ranks through this socket (attach.socket of the daemon's configuration)") {
		t.Error(err)
	}
}

// program writes a program for the exec kernel. The program prints text, which is in printf format, and waits
// for the end of its input.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\nprintf '"+text+"'\nexec cat >&2\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMistakesOfPrograms checks that mistakes of a stand-in's program are described in the log and in the
// errors of ranks that wait.
func TestMistakesOfPrograms(t *testing.T) {
	for name, tt := range map[string]struct {
		text, logged, want string
	}{
		"text": {"result: 5", "the program has written the text ",
			"; rank 1 is a stand-in of this zrlmpid: program PATH failed "},
		"other datatype": {"\\001\\001\\000\\000\\000\\000\\000\\000\\000",
			"rank 0 asks to send with SEND_FLOAT, which the posted receive does not match",
			"; rank 1 is a stand-in of this zrlmpid: rank 1 waits for SEND_REQUEST from rank 0; rank 0 asks to send " +
				"with SEND_FLOAT, which the posted receive does not match"},
	} {
		t.Run(name, func(t *testing.T) {
			path := program(t, tt.text)
			c := newCluster(t)
			r := start(t, c.yaml("defaults: {warn_after: 20ms}", "run: host",
				"run: standin, kernel: \"exec:"+path+"\""))
			ctx, cancel := context.WithCancel(within(t))
			errs := make(chan error, 2)
			go func() {
				_, err := r.client.Send(ctx, control.SendRequest{From: 0, To: 1, Datatype: protocol.Float},
					strings.NewReader("1234"))
				errs <- err
			}()
			r.log.waitFor(t, tt.logged)
			await(t, "the send to wait", func() bool { return r.ranks[0].Engine.Snapshot().Peers[0].Sending != nil })
			cancel()
			want := strings.ReplaceAll(tt.want, "PATH", path)
			if err := <-errs; !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
			// The error of an attached program describes the mistake, too.
			dev, err := attach.Dial(within(t), strings.TrimSuffix(c.socket, ".sock")+"-attach.sock", 0)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close(within(t))
			op, err := dev.Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Datatype: protocol.Float,
				Buf: []byte("5678")})
			if err != nil {
				t.Fatal(err)
			}
			soon, stop := context.WithTimeout(within(t), 10*time.Millisecond)
			defer stop()
			if _, err := op.Await(soon); err == nil ||
				!strings.Contains(err.Error(), "; rank 1 is a stand-in of this zrlmpid: ") {
				t.Error(err)
			}
		})
	}
}
