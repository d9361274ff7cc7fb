package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func pattern(words int) []byte {
	b := make([]byte, 4*words)
	control.FillPayload(b, 7, protocol.Int)
	return b
}

// before is the initial configuration. after sets everything that a reload may change to values that would
// affect the messages of these tests if they applied to them.
const (
	before = "log: {level: info}\ndefaults: {warn_after: 0s}"
	after  = `log: {level: debug}
stop_timeout: 3s
defaults:
  warn_after: 20ms
  on_partial: retransmit
  max_message_words: 10
  pace: {per_datagram: 1ms, over_words: 1}
  deadlines: {clear: 1ms, ack: 1ms, data: 1ms}`
)

// host starts a daemon with a host, a rank that the test plays, and a third one.
func host(t *testing.T) (cluster, *running, *zap.AtomicLevel) {
	c := newCluster(t)
	level := zap.NewAtomicLevel()
	r := startWith(t, c.yaml(before, "run: host", "peer: fpga", "peer: fpga"), func(o *Options) { o.Level = &level })
	return c, r, &level
}

// text returns a configuration of that cluster with other addresses of ranks.
func (c cluster) text(extra string, addr ...string) string {
	text := c.yaml(extra, "run: host", "peer: fpga", "peer: fpga")
	for rank, a := range addr {
		if a != "" {
			text = strings.Replace(text, c.addr(rank), a, 1)
		}
	}
	return text
}

func (r *running) mustReload(t *testing.T, text string) {
	t.Helper()
	if err := r.Reload(mustParse(t, text)); err != nil {
		t.Fatal(err)
	}
}

// TestReloadDuringSend changes everything that can change at each step of a send. The message completes by its
// initial configuration, and the next one uses the new one.
func TestReloadDuringSend(t *testing.T) {
	c, r, level := host(t)
	fpga := at(t, c.addr(1), c.addr(0))
	data := pattern(1000)
	sent := make(chan error, 1)
	send := func() {
		_, err := r.findRank(0).port.Send(within(t), 1, data, mpe.Options{})
		sent <- err
	}
	go send()
	fpga.awaits(protocol.SendRequest)
	r.mustReload(t, c.text(after, "", "", c.addr(7)))
	if level.Level() != zapcore.DebugLevel {
		t.Errorf("the log's level is %v", level)
	}
	fpga.awaits(protocol.SendRequest)                  // still retransmitted, with new deadlines of 1ms
	r.log.waitFor(t, " for CLEAR_TO_SEND from rank 1") // by warn_after
	fpga.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	first := fpga.awaits(protocol.Data)
	r.mustReload(t, c.text(before))
	r.mustReload(t, c.text(after))
	if got := fpga.rest(first, 1000); !bytes.Equal(got, data) {
		t.Error("the message has other data")
	}
	r.mustReload(t, c.text(before))
	r.mustReload(t, c.text(after))
	fpga.says(protocol.Ack, protocol.RecvInt, 0, nil)
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	// A piece of 10 words, and a deadline that cannot be kept.
	_, err := r.findRank(0).port.Send(within(t), 1, data, mpe.Options{})
	var late *handshake.TimeoutError
	if !errors.As(err, &late) || late.Wait.Words != 10 {
		t.Errorf("the next message ends with %v", err)
	}
	s := r.Status()
	if s.Cluster[2].Address != c.addr(2) {
		t.Errorf("rank 2 is at %s", s.Cluster[2].Address)
	}
}

// TestReloadDuringReceive does the same with a received message, between its datagrams.
func TestReloadDuringReceive(t *testing.T) {
	c, r, _ := host(t)
	fpga := at(t, c.addr(1), c.addr(0))
	data, buf := pattern(1000), make([]byte, 4000)
	fpga.says(protocol.SendRequest, protocol.SendInt, 0, nil)
	req, err := r.findRank(0).Engine.Irecv(1, buf, mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fpga.awaits(protocol.ClearToSend)
	r.mustReload(t, c.text(after))
	// On a slow machine the datagrams may be too far apart for one message.
	for acked := false; !acked; acked = fpga.receives(protocol.Ack) {
		fpga.says(protocol.Data, protocol.SendInt, 1000, data[:346*4])
		r.mustReload(t, c.text(before, "", "", c.addr(7)))
		r.mustReload(t, c.text(after))
		fpga.sends(data[346*4 : 700*4])
		r.mustReload(t, c.text(after, "", "", c.addr(7)))
		fpga.sends(data[700*4:])
	}
	if _, err := req.Wait(within(t)); err != nil || !bytes.Equal(buf, data) {
		t.Fatalf("%v, the same data %v", err, bytes.Equal(buf, data))
	}
}

// TestReloadMovesThePeer checks that a handshake continues with a peer that moves during it, and that packets from the
// old address count as packets from an unknown address.
func TestReloadMovesThePeer(t *testing.T) {
	c, r, _ := host(t)
	was, is := at(t, c.addr(1), c.addr(0)), at(t, c.addr(6), c.addr(0))
	data := pattern(3)
	sent := make(chan error, 1)
	go func() {
		_, err := r.findRank(0).Engine.Send(within(t), 1, data, mpe.Options{})
		sent <- err
	}()
	was.awaits(protocol.SendRequest)
	r.mustReload(t, c.text(before, "", c.addr(6)))
	was.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	is.awaits(protocol.SendRequest) // a retransmission
	is.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	if b := is.awaits(protocol.Data); !bytes.Equal(b[protocol.HeaderLen:], data) {
		t.Errorf("%x arrived", b)
	}
	is.says(protocol.Ack, protocol.RecvInt, 0, nil)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	s := r.Status()
	if s.Cluster[1].Address != c.addr(6) || s.Ranks[0].Engine.Peers[0].Address != c.addr(6) {
		t.Errorf("rank 1 is said to be at %s and %s", s.Cluster[1].Address, s.Ranks[0].Engine.Peers[0].Address)
	}
	if n := s.Ranks[0].Engine.Dropped[state.DropUnknownAddress]; n != 1 {
		t.Errorf("%d packets are strangers'", n)
	}
}

// TestReloadByControlSocket checks that the caller is notified of the reloaded configuration.
func TestReloadByControlSocket(t *testing.T) {
	c := newCluster(t)
	text := c.text(before)
	now := text
	var loadErr error
	r := startWith(t, text, func(o *Options) {
		o.LoadConfig = func() (*config.Config, error) { return mustParse(t, now), loadErr }
	})
	got, err := r.client.Reload(within(t))
	if err != nil || got.Config != "test.yaml" || len(got.Changes) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	now = strings.Replace(c.text("stop_timeout: 9s"+strings.TrimPrefix(before, "log: {level: info}")), c.addr(2),
		c.addr(8), 1)
	got, err = r.client.Reload(within(t))
	if err != nil || len(got.Changes) != 2 || got.Changes[0].Text != "stop_timeout: 2s -> 9s" ||
		got.Changes[0].Rank != nil ||
		got.Changes[1].Key != "address" || *got.Changes[1].Rank != 2 || got.Changes[1].From != c.addr(2) ||
		got.Changes[1].To != c.addr(8) {
		t.Errorf("%+v, %v", got, err)
	}
	now += "limits: {posted: 7}\n"
	_, err = r.client.Reload(within(t))
	refused, ok := errors.AsType[*control.Error](err)
	if !ok || refused.Kind != control.Refused || !slices.Contains(refused.Restart, "limits.posted: 1048576 -> 7") {
		t.Errorf("%+v", err)
	}
	loadErr = errors.New("no such file")
	if _, err = r.client.Reload(within(t)); err == nil ||
		!strings.Contains(err.Error(), "the previous one stays in effect: no such file") {
		t.Error(err)
	}
}

// TestReloadUnderLoad checks that no message between two ranks is lost while a third rank moves to and fro and
// everything else changes.
func TestReloadUnderLoad(t *testing.T) {
	for _, link := range []string{"profile: cloudfpga", "profile: extended, transport: udp",
		"profile: extended, transport: tcp"} {
		t.Run(link, func(t *testing.T) {
			c := newCluster(t)
			text := func(moved bool, deadline string) string {
				s := c.yaml("defaults: {"+link+", deadlines: {ack: "+deadline+"}}", "run: host", "run: host",
					"peer: software")
				if moved {
					s = strings.Replace(s, c.addr(2), c.addr(9), 1)
				}
				return s
			}
			r := start(t, text(false, "10s"))
			ctx, stop := context.WithCancel(within(t))
			defer stop()
			const messages = 300
			ended := make(chan error, 2)
			go func() {
				for i := range messages {
					if _, err := r.findRank(0).Engine.Send(ctx, 1, pattern(1+i%900), mpe.Options{}); err != nil {
						ended <- fmt.Errorf("send %d: %w", i, err)
						return
					}
				}
				ended <- nil
			}()
			go func() {
				buf := make([]byte, 4*900)
				for i := range messages {
					st, err := r.findRank(1).Engine.Recv(ctx, 0, buf, mpe.Options{})
					if n := 1 + i%900; err != nil || st.Bytes != int64(4*n) || !bytes.Equal(buf[:4*n], pattern(n)) {
						ended <- fmt.Errorf("receive %d: %+v, %w", i, st, err)
						return
					}
				}
				ended <- nil
			}()
			for reloads, left := 0, 2; left > 0; reloads++ {
				r.mustReload(t, text(reloads%2 == 0, fmt.Sprintf("%ds", 10+reloads%3)))
				select {
				case err := <-ended:
					if left--; err != nil {
						t.Fatal(err)
					}
				default:
				}
			}
		})
	}
}

// TestReloadMovesAPeerOnTCP checks that a queued message reaches a peer at its new address.
func TestReloadMovesAPeerOnTCP(t *testing.T) {
	c := newCluster(t)
	const links = "defaults: {profile: extended, transport: tcp}"
	text := c.yaml(links, "run: host", "peer: software")
	r := start(t, text)
	sent := make(chan error, 1)
	go func() {
		_, err := r.findRank(0).Engine.Send(within(t), 1, pattern(100_000), mpe.Options{})
		sent <- err
	}()
	other := newCluster(t)
	other.network = c.network
	far := start(t, strings.Replace(other.yaml(links, "peer: software", "run: host"), c.addr(1), c.addr(5), 1))
	r.mustReload(t, strings.Replace(text, c.addr(1), c.addr(5), 1))
	buf := make([]byte, 400_000)
	if _, err := far.findRank(1).Engine.Recv(within(t), 0, buf, mpe.Options{}); err != nil ||
		!bytes.Equal(buf, pattern(100_000)) {
		t.Error(err)
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
