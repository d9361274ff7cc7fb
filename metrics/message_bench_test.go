package metrics_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/metrics/phases"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
)

// observer passes completed messages to a recorder. It ignores all other events.
type observer struct{ recorder *phases.Recorder }

func (observer) Dropped(int, int, mpe.Drop) {}
func (observer) CallFailed(int, error)      {}
func (observer) Noted(int, int, mpe.Note)   {}
func (observer) TransportError(int, error)  {}

func (o observer) Done(_ int, s mpe.Status, err error) { o.recorder.RecordMessage(&s, err) }

// pair starts two ranks in this process, connected by the given transport.
func pair(b *testing.B, transport string, observed bool) (engines [2]*mpe.Engine) {
	b.Helper()
	cfg, err := config.Parse(strings.NewReader(fmt.Sprintf(`
control: {socket: ""}
http: {listen: ""}
defaults: {profile: extended, transport: %[2]s}
ranks:
  - {rank: 0, address: %[1]s1, run: host}
  - {rank: 1, address: %[1]s2, run: host}
`, loopback.Network(b), transport)), "bench.yaml")
	if err != nil {
		b.Fatal(err)
	}
	m, err := node.RankMap(cfg)
	if err != nil {
		b.Fatal(err)
	}
	peers := []phases.Peer{{Profile: "extended", Kind: "software"}, {Profile: "extended", Kind: "software"}}
	for _, self := range cfg.LocalRanks() {
		r, err := node.Plan(cfg, self)
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Bind(m); err != nil {
			b.Fatal(err)
		}
		var o mpe.Observer
		if observed {
			o = observer{phases.NewRecorder(self.Rank, peers, 64)}
		}
		if err := r.Start(o); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = r.Close(ctx) // aborts messages that have not been acknowledged
		})
		engines[self.Rank] = r.Engine
	}
	return engines
}

// BenchmarkMessage sends a message from one rank to another and back, with and without a recorder at both
// ranks. One operation completes four messages.
func BenchmarkMessage(b *testing.B) {
	for _, transport := range []string{"shm", "udp"} {
		for _, observed := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/recorder=%v", transport, observed), func(b *testing.B) {
				engines := pair(b, transport, observed)
				ctx := context.Background()
				data, buf := make([]byte, 8), make([]byte, 8)
				move := func(from, to int) {
					if _, err := engines[from].Send(ctx, to, data, mpe.Options{}); err != nil {
						b.Fatal(err)
					}
					if _, err := engines[to].Recv(ctx, from, buf, mpe.Options{}); err != nil {
						b.Fatal(err)
					}
				}
				for range 1000 {
					move(0, 1)
					move(1, 0)
				}
				b.ReportAllocs()
				for b.Loop() {
					move(0, 1)
					move(1, 0)
				}
			})
		}
	}
}
