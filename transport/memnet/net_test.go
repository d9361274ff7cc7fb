package memnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// collect reads a transport until it is closed, and returns the datagrams and the final error.
func collect(tr mpe.Transport) (<-chan mpe.RxPacket, <-chan error) {
	got, end := make(chan mpe.RxPacket, 1000), make(chan error, 1)
	go func() {
		batch := make([]mpe.RxPacket, 2)
		for {
			n, err := tr.Recv(batch)
			for _, a := range batch[:n] {
				got <- a
			}
			if err != nil {
				close(got)
				end <- err
				return
			}
		}
	}()
	return got, end
}

func header(text string) []byte {
	b := make([]byte, protocol.HeaderLen)
	copy(b, text)
	return b
}

// texts returns the datagrams received so far.
func texts(got <-chan mpe.RxPacket) (s []string) {
	synctest.Wait()
	for len(got) > 0 {
		s = append(s, string(bytes.TrimRight((<-got).Bytes, "\x00")))
	}
	return s
}

func TestHook(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name string
		hook memnet.Hook
		at   []time.Duration // times of the checks
		want [][]string      // expected results
	}{
		{"none", nil, []time.Duration{0}, [][]string{{"a", "b", "c"}}},
		{"lose b", func(_, _ int, b []byte) []time.Duration {
			if b[0] == 'b' {
				return nil
			}
			return []time.Duration{0}
		}, []time.Duration{0, time.Hour}, [][]string{{"a", "c"}, nil}},
		{"duplicate", func(_, _ int, b []byte) []time.Duration { return []time.Duration{0, 5 * ms} },
			[]time.Duration{0, 4 * ms, 1 * ms}, [][]string{{"a", "b", "c"}, nil, {"a", "b", "c"}}},
		{"a longer cable keeps order", func(_, _ int, b []byte) []time.Duration { return []time.Duration{3 * ms} },
			[]time.Duration{0, 3 * ms}, [][]string{nil, {"a", "b", "c"}}},
		{"swap", func(_, _ int, b []byte) []time.Duration { return []time.Duration{time.Duration('d'-b[0]) * ms} },
			[]time.Duration{0, time.Second}, [][]string{nil, {"c", "b", "a"}}},
		{"damage", func(_, _ int, b []byte) []time.Duration { b[0]++; return []time.Duration{0} },
			[]time.Duration{0}, [][]string{{"b", "c", "d"}}},
		{"from and to", func(from, to int, b []byte) []time.Duration {
			b[1], b[2] = byte('0'+from), byte('0'+to)
			return []time.Duration{0}
		}, []time.Duration{0}, [][]string{{"a01", "b01", "c01"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				net := memnet.New(2)
				from, to := net.Transport(0), net.Transport(1)
				got, end := collect(to)
				net.SetHook(tt.hook)
				for _, s := range []string{"a", "b", "c"} {
					if err := from.SendHeader(1, header(s)); err != nil {
						t.Fatal(err)
					}
				}
				for i, d := range tt.at {
					wait(d)
					if s := texts(got); !slices.Equal(s, tt.want[i]) {
						t.Errorf("after %v more: %q, want %q", d, s, tt.want[i])
					}
				}
				to.Close()
				if err := <-end; !errors.Is(err, mpe.ErrTransportClosed) {
					t.Errorf("Recv after Close: %v", err)
				}
			})
		})
	}
}

// wait waits for d in the bubble's time.
func wait(d time.Duration) { <-time.After(d) }

func TestSendDataFragmentsAsUDP(t *testing.T) {
	for _, shape := range []protocol.Shape{protocol.CPUShape(), protocol.FPGAShape(true), protocol.FPGAShape(false)} {
		for _, words := range []uint32{0, 1, 2, 345, 346, 347, 348, 349, 700, 708 + 347, 1000, 65537} {
			t.Run(fmt.Sprintf("%+v/%d", shape, words), func(t *testing.T) {
				net := memnet.New(2)
				from, to := net.Transport(0), net.Transport(1)
				payload := make([]byte, words*protocol.WordLen)
				for i := range payload {
					payload[i] = byte(i%251) + 1
				}
				if err := from.SendData(1, header("head"), payload, shape); err != nil {
					t.Fatal(err)
				}
				batch := make([]mpe.RxPacket, 1000)
				n, err := to.Recv(batch)
				if err != nil || int64(n) != shape.NumDatagrams(words) {
					t.Fatalf("%d datagrams, %v; want %d", n, err, shape.NumDatagrams(words))
				}
				var all []byte
				for i, a := range batch[:n] {
					if a.Kind != mpe.RxDatagram || a.Peer != 0 || a.SourceAddr != from.LocalAddr() {
						t.Fatalf("arrival %d: %+v", i, a)
					}
					if i < n-1 && len(a.Bytes) != protocol.MaxDatagram {
						t.Errorf("datagram %d of %d has %d bytes", i, n, len(a.Bytes))
					}
					all = append(all, a.Bytes...)
				}
				want := append(header("head"), payload...)
				want = append(want, make([]byte, shape.PayloadBytes(words)-int64(len(payload)))...)
				if !bytes.Equal(all, want) {
					t.Errorf("%d bytes arrived, want %d, or they differ", len(all), len(want))
				}
			})
		}
	}
}

func TestBindAndClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(2)
		from := net.Transport(0)
		if err := from.SendHeader(1, header("early")); err != nil {
			t.Errorf("to a rank that is not bound: %v, want nil as from UDP", err)
		}
		first := net.Transport(1)
		got1, end1 := collect(first)
		from.SendHeader(1, header("one"))
		second := net.Transport(1)
		got2, end2 := collect(second)
		from.SendHeader(1, header("two"))
		net.Inject(mpe.UnknownPeer, 1, header("stranger"))
		if s := texts(got1); !slices.Equal(s, []string{"one"}) {
			t.Errorf("first: %q", s)
		}
		first.Close()
		if s := texts(got2); !slices.Equal(s, []string{"two", "stranger"}) {
			t.Errorf("second: %q", s)
		}
		from.SendHeader(1, header("three")) // closing the first transport must not unbind the second
		if s := texts(got2); !slices.Equal(s, []string{"three"}) {
			t.Errorf("second: %q", s)
		}
		second.Close()
		second.Close()
		<-end1
		<-end2
		if err := second.SendHeader(0, header("")); !errors.Is(err, mpe.ErrTransportClosed) {
			t.Errorf("send after Close: %v", err)
		}
		if err := from.SendData(2, header(""), nil, protocol.CPUShape()); err == nil {
			t.Error("a rank outside the network: no error")
		}
	})
}
