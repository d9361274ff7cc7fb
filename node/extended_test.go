package node

import (
	"testing"
	"time"
)

func TestExtendedLink(t *testing.T) {
	const ranks = `
ranks:
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, peer: software}
defaults: {profile: extended`
	for _, tt := range []struct {
		more                string
		eager, payload, bag int
		giveUp              time.Duration
	}{
		{"}", 65536, 1344, 1 << 20, 10 * time.Second},
		{", eager_limit: 0, max_datagram: 1000, deadlines: {ack: 3s}}", -1, 928, 1 << 20, 3 * time.Second},
		{", eager_limit: 1KiB, credit: {bytes: 2KiB, messages: 5}, transport: tcp}", 1024, 32768, 2048, 10 * time.Second},
	} {
		cfg := mustParse(t, ranks+tt.more+"\n")
		l, err := NewLink(cfg, cfg.Rank(0), cfg.Rank(1))
		if err != nil {
			t.Fatal(err)
		}
		if x := l.Extended; x == nil || x.EagerLimit != tt.eager || x.MaxPayload != tt.payload || x.EagerBytes != tt.bag || x.Timing.GiveUp != tt.giveUp {
			t.Errorf("%s: %+v", tt.more, x)
		}
	}
}
