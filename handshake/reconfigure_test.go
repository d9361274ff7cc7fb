package handshake_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// quick returns a configuration with other timeouts and deadlines.
func quick() *handshake.Config {
	b := handshake.Backoff{First: 20 * time.Millisecond, Retransmissions: 1}
	return &handshake.Config{
		Timing: handshake.Timing{
			Clear: b, Ack: b, Data: b, FragmentGap: 10 * time.Millisecond,
			ClearDeadline: 200 * time.Millisecond, AckDeadline: 200 * time.Millisecond,
			DataDeadline: 200 * time.Millisecond,
		},
		OnPartial: handshake.RetransmitPartial,
	}
}

func hostOf(rules handshake.PeerRules) handshake.Config {
	cfg := hostTo(1, rules)
	cfg.MaxWords = 1 << 20
	return cfg
}

func send(t *testing.T, p *handshake.Pair, now time.Duration, words uint32) {
	t.Helper()
	if _, err := p.Send(now, handshake.SendOp{ID: 1, Words: words}, nil); err != nil {
		t.Fatal(err)
	}
}

func packet(t protocol.Type, c protocol.Call, words uint32) []byte {
	return protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Type: t, Call: c, Size: words})
}

// due returns the pair's deadline.
func due(t *testing.T, p *handshake.Pair) time.Duration {
	t.Helper()
	at, ok := p.Timeout()
	if !ok {
		t.Fatal("the pair waits for no time")
	}
	return at
}

// ended returns the error of the message that one of the actions ends.
func ended(acts []handshake.Action, kind handshake.ActionKind) (error, bool) {
	for _, a := range acts {
		if a.Kind == kind {
			return a.Err, true
		}
	}
	return nil, false
}

// TestReconfigureBetweenMessages checks that a message in progress keeps the timeouts and deadlines with which it
// began, and that the next one uses the new ones.
func TestReconfigureBetweenMessages(t *testing.T) {
	const second = time.Second
	t.Run("send, not cleared", func(t *testing.T) {
		p := handshake.New(hostOf(handshake.FPGAPeer(1)))
		send(t, p, 0, 1)
		p.Reconfigure(quick())
		if at := due(t, p); at != 100*time.Millisecond {
			t.Errorf("the timeout is at %v", at)
		}
		if _, over := ended(p.Tick(second, nil), handshake.SendDone); over {
			t.Error("it has the new deadline")
		}
		if _, ok := p.CancelSend(second, 1, nil); !ok {
			t.Fatal("it cannot be canceled")
		}
		send(t, p, second, 1)
		if at := due(t, p); at != second+20*time.Millisecond {
			t.Errorf("the next one's timeout is at %v", at)
		}
		if err, _ := ended(p.Tick(second+200*time.Millisecond, nil), handshake.SendDone); !errors.Is(err,
			handshake.ErrTimeout) {
			t.Errorf("the next one ends with %v", err)
		}
	})
	t.Run("fragmented message that must not be retransmitted", func(t *testing.T) {
		p := handshake.New(hostOf(handshake.FPGAPeer(1)))
		send(t, p, 0, 1000)
		p.Datagram(0, packet(clr, rInt, 0), nil)
		p.DataSent(0)
		p.Reconfigure(quick())
		if acts := p.Tick(100*time.Millisecond, nil); len(acts) > 0 {
			t.Errorf("%+v", acts)
		}
		deadline := hostOf(handshake.FPGAPeer(1)).Timing.AckDeadline
		if at := due(t, p); at != deadline {
			t.Errorf("it is to be retransmitted, or to time out, at %v", at)
		}
		if err, _ := ended(p.Tick(deadline, nil), handshake.SendDone); !errors.Is(err, handshake.ErrPartial) {
			t.Errorf("it ends with %v", err)
		}
		p.Reset()
		send(t, p, 20*second, 1000)
		p.Datagram(20*second, packet(clr, rInt, 0), nil)
		p.DataSent(20 * second)
		if at := due(t, p); at != 20*second+20*time.Millisecond {
			t.Errorf("the next one is to be retransmitted at %v", at)
		}
	})
	t.Run("receive", func(t *testing.T) {
		p := handshake.New(hostOf(handshake.FPGAPeer(1)))
		p.Recv(0, handshake.RecvOp{ID: 1, Words: 1000}, nil)
		p.Datagram(0, packet(sreq, sInt, 0), nil)
		p.Reconfigure(quick())
		if at := due(t, p); at != 4*second {
			t.Errorf("the timeout is at %v", at)
		}
		// A pause between datagrams that exceeds the new FragmentGap.
		data := append(packet(dat, sInt, 700), make([]byte, 346*4)...)
		p.Datagram(time.Millisecond, data, nil)
		acts := p.Datagram(31*time.Millisecond, make([]byte, 354*4), nil)
		if err, over := ended(acts, handshake.RecvDone); !over || err != nil {
			t.Fatalf("it ends with %v: %v", err, over)
		}
		p.Recv(second, handshake.RecvOp{ID: 2, Words: 1000}, nil)
		p.Datagram(second, packet(sreq, sInt, 0), nil)
		if at := due(t, p); at != second+20*time.Millisecond {
			t.Errorf("the next one's timeout is at %v", at)
		}
		p.Tick(second+20*time.Millisecond, nil)
		if at := due(t, p); at != second+200*time.Millisecond {
			t.Errorf("the next one is ended at %v", at)
		}
	})
	t.Run("both directions for themselves", func(t *testing.T) {
		p := handshake.New(hostOf(handshake.SoftwarePeer()))
		p.Recv(0, handshake.RecvOp{ID: 1, Words: 1}, nil)
		p.Datagram(0, packet(sreq, sInt, 0), nil)
		p.Reconfigure(quick())
		if got := p.Config(); got.OnPartial != handshake.RetransmitPartial ||
			got.Timing.Clear.First != 20*time.Millisecond ||
			got.Timing.Data.First != 100*time.Millisecond {
			t.Errorf("a pair that receives has %+v", got)
		}
		p.Datagram(0, append(packet(dat, sInt, 1), 1, 2, 3, 4), nil)
		if got := p.Config().Timing; got != quick().Timing {
			t.Errorf("an idle pair has %+v", got)
		}
	})
	t.Run("the last counts", func(t *testing.T) {
		p := handshake.New(hostOf(handshake.SoftwarePeer()))
		before := p.Config()
		p.Recv(0, handshake.RecvOp{ID: 1, Words: 1}, nil)
		p.Datagram(0, packet(sreq, sInt, 0), nil)
		p.Reconfigure(quick())
		p.Reconfigure(&before)
		p.Datagram(0, append(packet(dat, sInt, 1), 1, 2, 3, 4), nil)
		if got := p.Config(); got != before {
			t.Errorf("it has %+v", got)
		}
	})
}
