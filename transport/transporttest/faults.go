package transporttest

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func (k Kind) testUnknownSource(t *testing.T) {
	a, _ := k.Pair(t)
	from, kind := k.FromUnknown(t, FreeAddr(t).Addr(), a.LocalAddr())
	if got := a.Next(t); got.Kind != kind || got.Peer != mpe.UnknownPeer || got.SourceAddr != from {
		t.Errorf("%+v arrived, want %d from an unknown peer at %v", got, kind, from)
	}
}

func (k Kind) testClose(t *testing.T) {
	m := k.newMap(t, 2)
	tr, err := k.Listen(m, 0)
	if err != nil {
		t.Fatal(err)
	}
	recv := func() error {
		_, err := tr.Recv(make([]mpe.RxPacket, 1))
		return err
	}
	inProgress := make(chan error, 1)
	go func() { inProgress <- recv() }()
	if err := tr.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	select {
	case err := <-inProgress:
		if !errors.Is(err, mpe.ErrTransportClosed) {
			t.Errorf("Recv in progress returned %v", err)
		}
	case <-time.After(Timeout):
		t.Fatal("Recv is still waiting")
	}
	if err := recv(); !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("Recv after Close returned %v", err)
	}
	if err := tr.(mpe.HandshakeTransport).SendHeader(1, numberedHeader(0, 1, 0)); !errors.Is(err, mpe.ErrTransportClosed) {
		t.Errorf("SendHeader after Close returned %v", err)
	}
	again, err := k.Listen(m, 0)
	if err != nil {
		t.Fatalf("Close did not release the address: %v", err)
	}
	again.Close()
}

func (k Kind) testMisuse(t *testing.T) {
	a, b := k.Pair(t)
	good := numberedHeader(0, 1, 0)
	data := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: 1, Type: protocol.Data})
	for name, err := range map[string]error{
		"no such peer":     a.SendHeader(2, good),
		"negative peer":    a.SendData(-1, data, make([]byte, 4), protocol.CPUShape()),
		"short header":     a.SendHeader(1, good[:31]),
		"long header":      a.SendHeader(1, append(bytes.Clone(good), 0)),
		"no header":        a.SendData(1, nil, make([]byte, 4), protocol.CPUShape()),
		"part of a word":   a.SendData(1, data, make([]byte, 3), protocol.CPUShape()),
		"shape of nothing": a.SendData(1, data, make([]byte, 4), protocol.Shape{}),
	} {
		if err == nil && (name != "shape of nothing" || !a.Reliable()) {
			t.Errorf("%s: no error", name)
		}
	}
	if a.Reliable() { // a stream ignores the shape
		if err := b.checkMessage(data, make([]byte, 4), protocol.CPUShape()); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.Transport.Recv(nil); err == nil {
		t.Error("Recv into nothing: no error")
	}
	// None of the previous calls has sent anything.
	if err := a.SendHeader(1, good); err != nil {
		t.Fatal(err)
	}
	b.checkHeader(t, 0, good)
}

func (k Kind) testPortTaken(t *testing.T) {
	m := k.newMap(t, 2)
	first, err := k.Listen(m, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	_, err = k.Listen(m, 1)
	checkErrorText(t, err, syscall.EADDRINUSE, "rank 1 cannot listen", m.Addr(1).String(), "holds the port")
}

func (k Kind) testWrongAddress(t *testing.T) {
	here := FreeAddr(t)
	m := MapOf(t, netip.MustParseAddrPort("198.51.100.77:40000"), here)
	_, err := k.Listen(m, 0)
	checkErrorText(t, err, syscall.EADDRNOTAVAIL, "rank 0 cannot listen", "198.51.100.77:40000",
		"does not have that address; it has ", "127.0.0.1", "rank map may be shifted")
}

func checkErrorText(t *testing.T, err error, cause error, texts ...string) {
	t.Helper()
	if !errors.Is(err, cause) {
		t.Fatalf("got %v, want %v", err, cause)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}
