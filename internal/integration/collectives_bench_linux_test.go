package integration_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// BenchmarkCollectivesInTurn measures the processor time of a collective call by ranks that share memory. A single
// goroutine runs all ranks in turn, so no rank waits and no process switch occurs.
func BenchmarkCollectivesInTurn(b *testing.B) {
	for _, ranks := range []int{4, 8} {
		worlds := worldsInMemory(b, ranks)
		for _, call := range []struct {
			name  string
			start func(c *mpi.Comm, send, recv []int32) (mpi.Request, error)
		}{
			{"Bcast", func(c *mpi.Comm, send, _ []int32) (mpi.Request, error) { return mpi.Ibcast(c, send[:16], 0) }},
			{"Allreduce", func(c *mpi.Comm, send, recv []int32) (mpi.Request, error) {
				return mpi.Iallreduce(c, send[:16], recv[:16], mpi.Sum)
			}},
			{"Alltoall", func(c *mpi.Comm, send, recv []int32) (mpi.Request,
				error) {
				return mpi.Ialltoall(c, send, recv)
			}},
		} {
			b.Run(fmt.Sprintf("%s/ranks=%d", call.name, ranks), func(b *testing.B) {
				send, recv := make([]int32, 16*ranks), make([][]int32, ranks)
				for r := range recv {
					recv[r] = make([]int32, 16*ranks)
				}
				requests := make([]mpi.Request, ranks)
				b.ReportAllocs()
				for b.Loop() {
					for r, c := range worlds {
						var err error
						if requests[r], err = call.start(c, send, recv[r]); err != nil {
							b.Fatal(err)
						}
					}
					for left := ranks; left > 0; {
						for r := range requests {
							if requests[r] == (mpi.Request{}) {
								continue
							}
							_, over, err := requests[r].Test()
							if err != nil {
								b.Fatal(err)
							}
							if over {
								requests[r], left = mpi.Request{}, left-1
							}
						}
					}
				}
			})
		}
	}
}

// worldsInMemory opens ranks of this process that share memory.
func worldsInMemory(b *testing.B, ranks int) []*mpi.Comm {
	b.Helper()
	var text strings.Builder
	text.WriteString("control: {socket: \"\"}\ndefaults: {profile: extended, transport: shm}\nranks:\n")
	for r := range ranks {
		fmt.Fprintf(&text, "  - {rank: %d, address: \"127.0.80.%d:27181\", run: host}\n", r, 10*ranks+r)
	}
	cfg, err := config.Parse(strings.NewReader(text.String()), "test.yaml")
	if err != nil {
		b.Fatal(err)
	}
	worlds := make([]*mpi.Comm, ranks)
	for r := range worlds {
		d, err := node.Open(cfg, r, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = d.Close(ended()) })
		if worlds[r], err = mpi.New(d); err != nil {
			b.Fatal(err)
		}
	}
	return worlds
}
