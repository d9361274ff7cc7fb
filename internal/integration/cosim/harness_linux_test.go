package cosim_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/deploy/cosim/simulators"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/statetest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // simulations mostly wait
	code := statetest.Run(m)
	simulators.RemoveAll()
	os.Exit(code)
}

type change = simulators.Change

func build(t testing.TB, language string, changes ...change) string {
	t.Helper()
	return simulators.BuildRole(t, language, changes...)
}

// cluster is a daemon with a role as rank 1, and the daemon's log.
type cluster struct {
	*daemontest.TestDaemon
	logs *observer.ObservedLogs
	// net is the prefix of the ranks' addresses, to which 1, 2 and so on are appended.
	net string
}

// start starts a host, a stand-in with a simulator, and further ranks. options configure the simulation, and more adds
// settings to the stand-in.
func start(t testing.TB, simulator, options, more string, ranks ...string) *cluster {
	t.Helper()
	return startKernel(t, "run: host", role(simulator, options, more), ranks...)
}

// startNetwork is like start, for a simulator that includes an MPE.
func startNetwork(t testing.TB, simulator, options, more string, ranks ...string) *cluster {
	t.Helper()
	return startKernel(t, "run: host", fmt.Sprintf("\"rtl-net:%s %s\"%s", options, simulator, more), ranks...)
}

// role returns the kernel setting of a role, and further settings of its rank.
func role(simulator, options, more string) string {
	return fmt.Sprintf("\"rtl:%s %s\", kernel_options: {words: 8192}%s", options, simulator, more)
}

// startKernel starts rank 0, a stand-in with a kernel, and further ranks.
func startKernel(t testing.TB, rank0, kernel string, ranks ...string) *cluster {
	t.Helper()
	core, logs := observer.New(zap.InfoLevel)
	net := loopback.Network(t)
	all := []string{
		rank0 + ", address: " + net + "1",
		fmt.Sprintf("run: standin, address: %s2, kernel: %s", net, kernel),
	}
	for i, r := range ranks {
		all = append(all, fmt.Sprintf("address: %s%d, %s", net, i+3, r))
	}
	return &cluster{daemontest.Start(t, daemon.Options{Log: zap.New(core)}, "", all...), logs, net}
}

// within returns a context with a timeout for a part of a test.
func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// ping sends messages to rank 1 and verifies the echoes.
func (c *cluster) ping(t testing.TB, words, count int, datatype string) {
	t.Helper()
	verified, failed := 0, ""
	err := c.Client.Ping(within(t, 2*time.Minute),
		control.PingRequest{From: 0, To: 1, Words: words, Count: count, Datatype: datatype, Timeout: "60s"},
		func(trip control.Trip) error {
			if trip.Verified {
				verified++
			} else {
				failed = trip.Error
			}
			return nil
		})
	if err != nil || verified != count {
		t.Fatalf("%d %s words: %d of %d echoes are right, %v, %s\n%s", words, datatype, verified, count, err, failed,
			c.said())
	}
}

// fails sends a message to rank 1, expects no echo, and returns the error text.
func (c *cluster) fails(t testing.TB, words int) (failed string) {
	t.Helper()
	err := c.Client.Ping(within(t, time.Minute),
		control.PingRequest{From: 0, To: 1, Words: words, Count: 1, Datatype: "int", Timeout: "0s"},
		func(trip control.Trip) error {
			failed = trip.Error
			return nil
		})
	if err != nil || failed == "" {
		t.Fatalf("%d words came back, or %v\n%s", words, err, c.said())
	}
	return failed
}

// around sends a message to rank 1 and receives it from the last rank.
func (c *cluster) around(t testing.TB, words int, datatype string) {
	t.Helper()
	message := make([]byte, 0, 4*words)
	for i := range words {
		message = binary.LittleEndian.AppendUint32(message, uint32(words<<16+i))
	}
	d := map[string]protocol.Datatype{"int": protocol.Int, "float": protocol.Float}[datatype]
	ctx := within(t, 2*time.Minute)
	if _, err := c.Client.Send(ctx, control.SendRequest{From: 0, To: 1, Datatype: d, Timeout: time.Minute},
		bytes.NewReader(message)); err != nil {
		t.Fatalf("%d %s words: %v\n%s", words, datatype, err, c.said())
	}
	_, got, err := c.Client.Recv(ctx,
		control.RecvRequest{From: 2, To: 0, Datatype: d, Words: words, Timeout: time.Minute})
	if err != nil || !bytes.Equal(got, message) {
		t.Fatalf("%d %s words came back as %d, %v\n%s", words, datatype, len(got)/4, err, c.said())
	}
}

// simulation returns the state of rank 1's simulation.
func (c *cluster) simulation(t testing.TB) *state.Simulation {
	t.Helper()
	s, err := c.Client.Status(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return s.Ranks[1].KernelStats.Simulation
}

// lostOne waits until a datagram of messages of the given length has been lost in a direction, "0 to 1" or "1 to 0".
// The last ACK may still be in flight.
func (c *cluster) lostOne(t testing.TB, direction string, words int) {
	t.Helper()
	until(t, "the one that is lost", func() bool {
		s, err := c.Client.Status(within(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		host, role := s.Ranks[0].Engine.Peers[0], s.Ranks[1].KernelStats.Simulation.Datagrams
		if direction == "1 to 0" {
			return role.Sent-host.PacketsIn == 1
		}
		sent := host.PacketsOut[protocol.Data] * uint64(protocol.CPUShape().NumDatagrams(uint32(words))-1)
		for _, n := range host.PacketsOut { // a message counts as one packet
			sent += n
		}
		return sent-role.Received-role.Closed == 1
	})
}

// retransmissions returns the number of packets that all ranks retransmitted.
func (c *cluster) retransmissions(t testing.TB) (n uint64) {
	t.Helper()
	s, err := c.Client.Status(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.Ranks {
		for _, p := range r.Engine.Peers {
			n += p.Retransmissions
		}
	}
	return n
}

// said returns the log.
func (c *cluster) said() string {
	var b strings.Builder
	for _, e := range c.logs.All() {
		fmt.Fprintln(&b, e.Level, e.Message, e.ContextMap())
	}
	return b.String()
}

// until waits for a condition that depends on another process.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}
