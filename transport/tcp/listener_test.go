package tcp

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// listener is Listen, or a function that opens a Conn that cannot be polled.
type listener func(Config) (*Conn, error)

// bothWays runs a test of packets twice: with polled Conns, if the system supports them, and with Conns that
// use goroutines.
func bothWays(t *testing.T, test func(t *testing.T, listen listener)) {
	for _, poll := range []bool{true, false} {
		if poll && !hasPoll {
			continue
		}
		t.Run(map[bool]string{true: "polled", false: "received"}[poll], func(t *testing.T) {
			test(t, func(cfg Config) (*Conn, error) {
				c, err := listen(cfg, poll)
				if err == nil && c.CanPoll() != poll {
					t.Errorf("CanPoll is %v", c.CanPoll())
				}
				return c, err
			})
		})
	}
}

// start is like the function start, with another listener.
func (listen listener) start(t *testing.T, cfg Config) *transporttest.End {
	t.Helper()
	if cfg.Backoff == nil {
		cfg.Backoff = soon
	}
	c, err := listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return transporttest.Start(t, c)
}
