package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestReadyLine(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "run: standin", "run: standin, kernel: sink", "peer: fpga"))
	want := fmt.Sprintf("ready rank 0 host %s, rank 1 standin echo %s, rank 2 standin sink %s, control %s, attach "+
		"%s, http none\n", c.addr(0), c.addr(1), c.addr(2), c.socket, config.AttachSocketFor(c.socket))
	if r.ready != want {
		t.Errorf("got  %swant %s", r.ready, want)
	}
	many := newCluster(t)
	if r := start(t, many.yaml("", slices.Repeat([]string{"run: host"}, 12)...)); !strings.Contains(r.ready,
		fmt.Sprintf("rank 7 host %s, and 4 more ranks, control ", many.addr(7))) {
		t.Error(r.ready)
	}
	if info, err := os.Lstat(c.socket); err != nil || info.Mode() != os.ModeSocket|0o660 {
		t.Errorf("the control socket: %v, %v", info.Mode(), err)
	}
}

// paced is the length in words of a message whose datagrams are paced. It is not much longer than necessary,
// because on a busy machine the sender of a long message stalls in the middle, which fails the message.
const paced = 80_000

func TestPing(t *testing.T) {
	for _, link := range []string{"", "defaults: {max_message_words: 100}", "defaults: {transport: tcp}",
		"defaults: {profile: v0.9}", "defaults: {max_datagram: 400}"} {
		t.Run(link, func(t *testing.T) {
			c := newCluster(t)
			r := start(t, c.yaml(link, echoes(2, "")...))
			for _, words := range []int{1, 2, 3, 346, 347, 348, 1000} {
				r.ping(t, 1, words, 3)
			}
			r.ping(t, 2, paced, 1)
			// A message to a rank on TCP may be sent before the connection has been made.
			if log := r.log.String(); strings.Contains(log, "WARN") && !strings.Contains(log, "rmem_max") &&
				!strings.Contains(link, "tcp") {
				t.Errorf("warnings:\n%s", log)
			}
		})
	}
}

// TestSharedLink checks that the entry of one rank applies to both ends of a link, even if that rank is the
// caller.
func TestSharedLink(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "run: standin, link: {transport: tcp, profile: v0.9}", "run: standin"))
	r.ping(t, 1, 1000, 2)
	r.ping(t, 2, 1000, 2)
	s, err := r.client.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for rank, want := range []string{"[udp tcp]", "[tcp]", "[udp tcp]"} {
		if got := fmt.Sprint(s.Ranks[rank].Transports); got != want {
			t.Errorf("rank %d is on %s, want %s", rank, got, want)
		}
	}
	if m := s.Member(1); m.Transport != "tcp" || m.Profile != "v0.9" || m.Role != state.RoleStandin ||
		m.Kernel != "echo" || m.Kind != "fpga" {
		t.Errorf("%+v", m)
	}
}

func TestSendRecv(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", echoes(1, "")...))
	const words = paced
	data := make([]byte, words*protocol.WordLen)
	control.FillPayload(data, 1, protocol.Float)
	send := control.SendRequest{From: 0, To: 1, Datatype: protocol.Float, Tag: 7, Timeout: testTimeout}
	for range 2 {
		m, err := r.client.Send(within(t), send, bytes.NewReader(data))
		if err != nil || m.Words != words || m.From != 0 || m.To != 1 || m.Elapsed <= 0 {
			t.Fatalf("%+v, %v", m, err)
		}
		m, got, err := r.client.Recv(within(t),
			control.RecvRequest{From: 1, To: 0, Words: words, AnyDatatype: true, Timeout: testTimeout})
		if err != nil || !bytes.Equal(got, data) || m.Datatype != "float" || m.From != 1 || m.To != 0 {
			t.Fatalf("%+v, %d bytes, %v", m, len(got), err)
		}
	}
	if n := strings.Count(r.log.String(), "profile cloudfpga has no tags"); n != 1 {
		t.Errorf("the log says %d times that tags are not sent:\n%s", n, r.log)
	}

	t.Run("truncated", func(t *testing.T) {
		if _, err := r.client.Send(within(t), send, bytes.NewReader(data[:40])); err != nil {
			t.Fatal(err)
		}
		m, got, err := r.client.Recv(within(t),
			control.RecvRequest{From: 1, To: 0, Words: 4, AnyDatatype: true, Timeout: testTimeout})
		if err != nil || m.Words != 10 || !bytes.Equal(got, data[:16]) ||
			!strings.Contains(m.Truncated, "sent 10 words, but the posted buffer holds 4") {
			t.Errorf("%+v, %x, %v", m, got, err)
		}
	})
}

// TestSendWaitsForAReceive checks that a send waits for a matching receive, even in the extended profile, in
// which a message may complete at its sender as soon as it has been copied.
func TestSendWaitsForAReceive(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("defaults: {profile: extended}", "run: host", "run: host"))
	send := control.SendRequest{From: 0, To: 1, Timeout: 100 * time.Millisecond}
	_, err := r.client.Send(within(t), send, strings.NewReader("word"))
	if e, ok := errors.AsType[*control.Error](err); !ok || e.Kind != control.Timeout {
		t.Errorf("a message that nothing receives: %v", err)
	}
}

func TestRequestErrors(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "run: standin, kernel: sink", "peer: software"))
	ctx := within(t)
	send := func(from, to int, data string) error {
		_, err := r.client.Send(ctx, control.SendRequest{From: from, To: to, Timeout: 100 * time.Millisecond},
			strings.NewReader(data))
		return err
	}
	recv := func(from, to, words int) error {
		_, _, err := r.client.Recv(ctx,
			control.RecvRequest{From: from, To: to, Words: words, Timeout: 100 * time.Millisecond})
		return err
	}
	for _, tt := range []struct {
		name string
		err  error
		kind control.Kind
		text string
	}{
		{"timeout", recv(1, 0, 1), control.Timeout, " for SEND_REQUEST from rank 1"},
		{"no peer", send(0, 2, "1234"), control.Timeout, " for CLEAR_TO_SEND from rank 2"},
		{"no such rank", send(0, 9, "1234"), control.Rank, "rank 9: no such rank: the cluster has ranks 0 to 2"},
		{"itself", recv(0, 0, 1), control.Rank, "rank 0 cannot send to itself"},
		{"stand-in", send(1, 0, "1234"), control.Rank,
			"rank 1 is a stand-in with kernel sink: choose a rank with run: host"},
		{"remote", send(2, 0, "1234"), control.Rank, "rank 2 is not a local rank of this daemon"},
		{"half a word", send(0, 1, "123"), control.Usage, "3 bytes: the length is not a multiple of 4"},
		{"empty to an FPGA", send(0, 1, ""), control.Empty, "a message of 0 words wedges an FPGA"},
		{"too long", recv(1, 0, 1<<26+1), control.TooLong, "67108865 words: must be at most 67108864"},
		{"negative", recv(1, 0, -1), control.Usage, "-1 words"},
		{"reset of no peer", query.Do(ctx, r.client.Handle, query.Request{Kind: query.Reset, Rank: 0, Peer: 5}),
			control.Rank, "rank 5: no such peer"},
		{"reset by a remote", query.Do(ctx, r.client.Handle, query.Request{Kind: query.Reset, Rank: 2, Peer: 0}),
			control.Rank, "rank 2 is not a local rank of this daemon"},
		{"reset", query.Do(ctx, r.client.Handle, query.Request{Kind: query.Reset, Rank: control.AnyRank, Peer: 1}), "",
			""},
	} {
		if tt.err == nil {
			if tt.kind != "" {
				t.Errorf("%s: no error", tt.name)
			}
			continue
		}
		if control.KindOf(tt.err) != tt.kind || !strings.Contains(tt.err.Error(), tt.text) {
			t.Errorf("%s: %q: %v", tt.name, control.KindOf(tt.err), tt.err)
		}
	}
	r.log.waitFor(t, `send failed	{"rank": 0, "peer": 2, "error": "rank 0 has waited `)
}

// TestCancelledSend checks that the error of a send to a peer that does not answer describes the state of the
// peer, and that the status no longer shows a wait.
func TestCancelledSend(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "peer: fpga"))
	ctx, cancel := context.WithCancel(within(t))
	errs := make(chan error, 1)
	go func() {
		_, err := r.client.Send(ctx, control.SendRequest{From: 0, To: 1}, strings.NewReader("1234"))
		errs <- err
	}()
	sending := func() bool { return r.ranks[0].Engine.Snapshot().Peers[0].Sending != nil }
	await(t, "the send to wait", sending)
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) ||
		!strings.Contains(err.Error(), "rank 1 keeps the SEND_REQUEST if it has received it") ||
		!strings.Contains(err.Error(), "; no packet was ever received from 127.") {
		t.Error(err)
	}
	if sending() {
		t.Error("the send is still there")
	}
}

// TestDisconnectCancels checks that a caller that disconnects cancels its operation.
func TestDisconnectCancels(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", echoes(1, "")...))
	ctx, cancel := context.WithCancel(within(t))
	errs := make(chan error, 1)
	go func() {
		_, _, err := r.client.Recv(ctx, control.RecvRequest{From: 1, To: 0, Words: 1})
		errs <- err
	}()
	posted := func() bool { return r.ranks[0].Engine.Snapshot().Peers[0].Receiving != nil }
	await(t, "the receive to be posted", posted)
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), ": cancelled by its caller") {
		t.Error(err)
	}
	await(t, "the receive to be cancelled", func() bool { return !posted() })
}

// await polls until a condition is met for which there is no notification.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for late := time.After(testTimeout); !cond(); {
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func TestSecondDaemon(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", echoes(1, "")...))
	other := newCluster(t)
	other.socket = c.socket
	d, err := New(mustParse(t, other.yaml("", echoes(1, "")...)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Run(within(t)); !errors.Is(err, control.ErrInUse) {
		t.Errorf("a second daemon on the same control socket: %v", err)
	}
	// The addresses can be bound again.
	conn, err := net.ListenPacket("udp", other.addr(1))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	r.ping(t, 1, 1, 1)
}

func TestPortTaken(t *testing.T) {
	c := newCluster(t)
	conn, err := net.ListenPacket("udp", c.addr(2))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	d, err := New(mustParse(t, c.yaml("", echoes(3, "")...)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = d.Run(within(t))
	if want := fmt.Sprintf("rank 2 cannot listen on udp %s", c.addr(2)); !errors.Is(err, syscall.EADDRINUSE) ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
	free, err := net.ListenPacket("udp", c.addr(1))
	if err != nil {
		t.Fatalf("rank 1's address was not released: %v", err)
	}
	free.Close()
	if _, err := os.Lstat(c.socket); err == nil {
		t.Error("a daemon that could not start has made its control socket")
	}
}

func TestShutdown(t *testing.T) {
	before := runtime.NumGoroutine()
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "run: standin", "run: standin, kernel: source, kernel_options: {words: 1000}",
		"run: host"))
	r.ping(t, 1, 1000, 2)
	// A caller that waits gets an error.
	ended := make(chan error, 1)
	go func() {
		_, _, err := r.client.Recv(within(t), control.RecvRequest{From: 3, To: 0, Words: 1})
		ended <- err
	}()
	await(t, "the receive to be posted", func() bool { return r.ranks[0].Engine.Snapshot().Peers[2].Receiving != nil })
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if err := <-ended; control.KindOf(err) != control.Closed {
		t.Errorf("the caller got %v", err)
	}
	if _, err := os.Lstat(c.socket); err == nil {
		t.Error("the control socket is still there")
	}
	r.client.Close()
	await(t, "all goroutines to end", func() bool { return runtime.NumGoroutine() <= before })
	if _, err := r.client.Status(within(t)); err == nil ||
		!strings.Contains(err.Error(), "no zrlmpid answers on "+c.socket) {
		t.Errorf("%v", err)
	}
}

// TestKernelEnds checks that the daemon keeps running after a kernel exits.
func TestKernelEnds(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "run: standin, kernel: source, kernel_options: {words: 5, count: 2}"))
	for range 2 {
		if m, _, err := r.client.Recv(within(t),
			control.RecvRequest{From: 1, To: control.AnyRank, Words: 10, Timeout: testTimeout}); err != nil ||
			m.Words != 5 {
			t.Fatal(m, err)
		}
	}
	await(t, "the kernel to end", func() bool { return r.Status().Ranks[1].KernelState == state.KernelEnded })
	if s := r.Status().Ranks[1]; s.Engine.Peers[0].Sent != 2 || s.KernelError != "" {
		t.Errorf("%+v", s)
	}
}
