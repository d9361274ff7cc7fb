package cosim_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/deploy/cosim/simulators"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// upstreamPeer returns the simulator of upstream's MPE and wrapper, with the arguments of their program. It
// forwards messages of the given lengths in words from one rank to another, each length the given number of times per
// datatype.
func upstreamPeer(t *testing.T, from, to, times int, lengths []int, datatypes ...string) string {
	t.Helper()
	command := fmt.Sprint(simulators.BuildMPE(t, "peer", simulators.EchoEdit), " ", from, " ", to)
	for _, datatype := range datatypes {
		for _, words := range lengths {
			command += strings.Repeat(fmt.Sprint(" ", words, map[string]string{"float": "f"}[datatype]), times)
		}
	}
	return command
}

// TestUpstreamMPE runs upstream's MPE, simulated from its source code, as the FPGA of a host that sends messages of all
// lengths.
func TestUpstreamMPE(t *testing.T) {
	for _, options := range []string{"time_scale=20", "time_scale=20 stall_percent=30 seed=7"} {
		c := startNetwork(t, upstreamPeer(t, 0, 0, 3, sizes, "int", "float"), options, "")
		for _, datatype := range []string{"int", "float"} {
			for _, words := range sizes {
				c.ping(t, words, 3, datatype)
			}
		}
		// The program has exited, but the MPE is still running.
		last := c.simulation(t).Cycle
		until(t, "another cycle", func() bool { return c.simulation(t).Cycle > last })
		if sim := c.simulation(t); sim.Fault {
			t.Errorf("%+v", sim)
		}
	}
}

// TestUpstreamMPERing passes a message from the host through upstream's MPE and a software stand-in back to the host.
func TestUpstreamMPERing(t *testing.T) {
	c := startNetwork(t, upstreamPeer(t, 0, 2, 3, sizes, "int", "float"), "time_scale=20", "",
		"run: standin, kernel: ring")
	for _, datatype := range []string{"int", "float"} {
		for _, words := range sizes {
			for range 3 {
				c.around(t, words, datatype)
			}
		}
	}
}

// TestUpstreamProgramMeetsUpstreamMPE exchanges messages of all lengths between upstream's program on its CPU library
// and upstream's MPE, through the shell.
func TestUpstreamProgramMeetsUpstreamMPE(t *testing.T) {
	program := upstreamProgram(t)
	c := startKernel(t, "peer: cpu",
		fmt.Sprintf("\"rtl-net:stall_percent=30 seed=7 %s\"", upstreamPeer(t, 0, 0, 3, sizes, "int")))
	for _, words := range sizes {
		c.runUpstream(t, program, strconv.Itoa(words))
	}
}

// TestUpstreamMPELoss checks that any datagram lost between a host and upstream's MPE is retransmitted.
func TestUpstreamMPELoss(t *testing.T) {
	for _, direction := range []string{"0 to 1", "1 to 0"} {
		for _, lost := range []struct {
			words  int
			packet string
		}{{100, "SEND_REQUEST"}, {100, "CLEAR_TO_SEND"}, {100, "DATA"}, {100, "ACK"}, {1000, "DATA"},
			{1000, "PAYLOAD"}} {
			if direction == "0 to 1" && lost.packet == "PAYLOAD" {
				continue // see TestUpstreamMPEWedges
			}
			t.Run(fmt.Sprintf("from %s %s of %d words", direction, lost.packet, lost.words), func(t *testing.T) {
				t.Parallel()
				peer := upstreamPeer(t, 0, 0, 4, []int{lost.words}, "int")
				c := startNetwork(t, peer, "time_scale=20",
					fmt.Sprintf(", faults: {rules: [from %s packet %s nth 2 loss 100%%]}", direction, lost.packet))
				c.ping(t, lost.words, 4, "int")
				c.lostOne(t, direction, lost.words)
			})
		}
	}
}

// TestUpstreamMPEWedges loses a datagram other than the first of a message to upstream's MPE. The message must not be
// retransmitted, because the MPE would read the header as payload. The host must report that for this message and the
// next one.
func TestUpstreamMPEWedges(t *testing.T) {
	c := startNetwork(t, upstreamPeer(t, 0, 0, 4, []int{1000}, "int"), "",
		", faults: {rules: [from 0 to 1 packet PAYLOAD nth 3 loss 100%]}")
	c.ping(t, 1000, 1, "int")
	for range 2 {
		_, err := c.Client.Send(within(t, time.Minute),
			control.SendRequest{From: 0, To: 1, Datatype: protocol.Int, Timeout: time.Minute},
			bytes.NewReader(make([]byte, 4000)))
		if e, ok := errors.AsType[*control.Error](err); !ok || e.Kind != control.Partial {
			t.Errorf("%v, want that it was not acknowledged", err)
		}
	}
	_, _, err := c.Client.Recv(within(t, time.Minute),
		control.RecvRequest{From: 1, To: 0, Words: 1000, Timeout: time.Minute})
	if e, ok := errors.AsType[*control.Error](err); !ok || e.Kind != control.Partial ||
		!strings.Contains(err.Error(), `run "zrlctl reset 1 --from 0"`) {
		t.Errorf("a receive: %v", err)
	}
}

// upstreamProgram returns the path of testdata/pingpong.cpp of package integration, built with upstream's CPU library.
func upstreamProgram(t *testing.T) string {
	t.Helper()
	program := os.Getenv("ZRLMPI_UPSTREAM_PINGPONG")
	if program == "" {
		t.Skip("NOT TESTED against upstream's CPU library: set ZRLMPI_UPSTREAM_PINGPONG to " +
			"internal/integration/testdata/pingpong.cpp built with it")
	}
	return program
}

// runUpstream runs the program as rank 0. It sends messages of a length, such as 347 or 347f for FLOAT, to rank 1, and
// verifies the echoes.
func (c *cluster) runUpstream(t *testing.T, program, length string) {
	t.Helper()
	out, err := exec.CommandContext(within(t, time.Minute), program, "udp", c.net+"1", "2", "0", c.net+"2",
		length).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "pingpong of "+length+" words: ok") {
		t.Fatalf("%s: %v\n%s\n%s", length, err, out, c.said())
	}
}
