package udp

import (
	"bytes"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// offloadPair returns the Conns of two ranks with offload, and the socket of the first one.
func offloadPair(t *testing.T, cfg Config) (near, far *Conn, sock *mmsgSocket) {
	t.Helper()
	t.Setenv(EnvOffload, "auto")
	cfg.Map = transporttest.Map(t, 2)
	for rank, c := range []**Conn{&near, &far} {
		cfg.Rank = rank
		var err error
		if *c, err = Listen(cfg); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*c).Close() })
	}
	sock, ok := near.sock.(*mmsgSocket)
	if !ok || !sock.caps.canSegment || !sock.caps.canCoalesce {
		t.Skip("NOT CHECKED: this kernel has no UDP_SEGMENT or UDP_GRO")
	}
	return near, far, sock
}

// exchangeData sends a message. It returns the received bytes, and the maximum number of datagrams received by one
// system call.
func exchangeData(t *testing.T, near, far *Conn, words int) (got []byte, most int) {
	t.Helper()
	header, payload := dataPacket(words)
	if err := near.SendData(1, header, payload, protocol.CPUShape()); err != nil {
		t.Fatal(err)
	}
	batch := make([]mpe.RxPacket, 64)
	for len(got) < len(header)+len(payload) {
		n, err := far.Recv(batch)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
		for _, a := range batch[:n] {
			if len(a.Bytes) > protocol.MaxDatagram || a.Kind != mpe.RxDatagram || a.Peer != 0 {
				t.Fatalf("%v of %d bytes from %d", a.Kind, len(a.Bytes), a.Peer)
			}
			got = append(got, a.Bytes...)
		}
	}
	if !bytes.Equal(got, append(bytes.Clone(header), payload...)) {
		t.Fatal("the received message differs from the sent one")
	}
	return got, most
}

func TestOffload(t *testing.T) {
	near, far, _ := offloadPair(t, Config{})
	for _, words := range []int{0, 1, 346, 347, 1000, 354 * 46, 20_000} {
		exchangeData(t, near, far, words)
	}
	if o := near.Offload(); !o.Batches || !o.Segments || !o.Coalesces || o.Off || o.Refused != nil {
		t.Errorf("offload: %+v", o)
	}
	if _, most := exchangeData(t, near, far, 354*40); most < 40 {
		t.Errorf("at most %d datagrams arrived at a time: they were not cut and put together by the kernel", most)
	}
}

// TestOffloadIsDisabledPerPeer checks that a message is sent without segmentation if the kernel refuses to segment for
// its path, here because checksums are disabled. Offload is called concurrently.
func TestOffloadIsDisabledPerPeer(t *testing.T) {
	near, far, sock := offloadPair(t, Config{})
	if err := unix.SetsockoptInt(sock.fd, unix.SOL_SOCKET, unix.SO_NO_CHECK, 1); err != nil {
		t.Fatal(err)
	}
	var asking sync.WaitGroup
	sent := make(chan struct{})
	asking.Go(func() {
		for seen := false; !seen; {
			select {
			case <-sent:
				return
			default:
				seen = near.Offload().Refused != nil
			}
		}
	})
	exchangeData(t, near, far, 20_000)
	close(sent)
	asking.Wait()
	o := near.Offload()
	// The error number depends on the kernel.
	if len(o.Refused) != 1 || o.Refused[0].Peer != 1 || segmentRefusal(o.Refused[0].Err) == 0 || !o.Segments {
		t.Errorf("offload: %+v", o)
	}
	if sock.segments(1) || !sock.segments(0) {
		t.Error("the wrong peer was aborted")
	}
	if o := far.Offload(); o.Refused != nil {
		t.Errorf("offload of the other rank: %+v", o)
	}
}

// TestPacedPeersGetSingleDatagrams checks that messages to a paced peer are never segmented by the kernel, even if they
// are too short to be paced.
func TestPacedPeersGetSingleDatagrams(t *testing.T) {
	near, far, sock := offloadPair(t,
		Config{Pace: func(int) Pacing { return Pacing{PerDatagram: 1, OverWords: 1 << 20} }})
	exchangeData(t, near, far, 20_000)
	for i, n := range sock.out.counts {
		if n > 1 {
			t.Errorf("message %d of a batch stands for %d datagrams", i, n)
		}
	}
}

// TestJoiningFollowsTheTraffic checks that coalescing is enabled only while many datagrams arrive close together,
// because it would slow down short messages.
func TestJoiningFollowsTheTraffic(t *testing.T) {
	near, far, _ := offloadPair(t, Config{})
	gro := func() bool { return far.sock.(*mmsgSocket).in.groEnabled }
	batch := make([]mpe.RxPacket, 64)
	single := func(n int) {
		for range n {
			if err := near.SendHeader(1, make([]byte, protocol.HeaderLen)); err != nil {
				t.Fatal(err)
			}
			for got := 0; got == 0; {
				var err error
				if got, err = far.Poll(batch, nil); err != nil {
					t.Fatal(err)
				}
			}
			far.Poll(batch, nil) // finds nothing
		}
	}
	for range 2 {
		single(100)
		if gro() {
			t.Fatal("short messages are tried to put together")
		}
		exchangeData(t, near, far, 100_000)
		if !gro() {
			t.Fatal("long messages are not put together")
		}
		single(groIdleLimit / 2)
		exchangeData(t, near, far, 1000)
		single(groIdleLimit - 10)
		if !gro() {
			t.Fatal("disabled too soon")
		}
		single(20)
	}
}
