package cosim_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// TestNetwork exchanges messages of all lengths between a host and a role with an MPE, with random stalls towards the
// network.
func TestNetwork(t *testing.T) {
	for _, language := range []string{"verilog-mpe", "vhdl-mpe"} {
		for _, stalls := range []string{"", "stall_percent=30 seed=7 "} {
			t.Run(language+" "+stalls, func(t *testing.T) { testNetwork(t, language, stalls+"time_scale=20") })
		}
	}
}

func testNetwork(t *testing.T, language, options string) {
	c := startNetwork(t, build(t, language), options, "")
	for _, words := range sizes {
		c.ping(t, words, 2, "int")
	}
	s, err := c.Client.Status(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	sim := s.Ranks[1].KernelStats.Simulation
	if sim == nil || sim.Datagrams == nil || sim.Fault || sim.Cycle == 0 {
		t.Fatalf("%+v", sim)
	}
	// The role receives and sends two messages of each length, in at least four packets each.
	if d := sim.Datagrams; d.Received < uint64(8*len(sizes)) || d.Sent < uint64(8*len(sizes)) ||
		d.Unknown+d.Length+d.Refused != 0 {
		t.Errorf("%+v", d)
	}
}

// TestNetworkLoss loses each packet of a message once in each direction, and checks that the simulated MPE or the host
// retransmits it.
func TestNetworkLoss(t *testing.T) {
	for _, from := range []string{"0 to 1", "1 to 0"} {
		for packet, words := range map[string]int{"SEND_REQUEST": 100, "CLEAR_TO_SEND": 100, "DATA": 100, "ACK": 100,
			"PAYLOAD": 1000} {
			t.Run("from "+from+" "+packet, func(t *testing.T) {
				t.Parallel()
				// The deployed timeout has three times as many cycles, which take a minute on a busy machine.
				c := startNetwork(t, build(t, "verilog-mpe")+" +timeout=5000000", "time_scale=4",
					fmt.Sprintf(", faults: {rules: [from %s packet %s nth 2 loss 100%%]}", from, packet))
				c.ping(t, words, 4, "int")
				c.lostOne(t, from, words)
			})
		}
	}
}

// deployed starts a daemon with a simulation as rank 1, which treats rank 0 as remote, and opens rank 0 in this
// process, which treats rank 1 as an FPGA.
func deployed(t *testing.T, kernel string) (*cluster, *mpi.Comm) {
	t.Helper()
	at := loopback.Network(t)
	c := &cluster{daemontest.Start(t, daemon.Options{}, "",
		fmt.Sprintf("address: %s1, peer: software", at),
		fmt.Sprintf("address: %s2, run: standin, kernel: \"%s\"", at, kernel)), nil, at}
	cfg, err := config.Parse(strings.NewReader(fmt.Sprintf("ranks:\n  - {rank: 0, address: %[1]s1, run: host}\n  - "+
		"{rank: 1, address: %[1]s2, peer: fpga}\n", at)), "host.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d, err := node.Open(cfg, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = d.Close(ctx)
	})
	world, err := mpi.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return c, world
}

// TestNetworkSender checks that the sender and the receiver in Verilog act as FPGAs towards a program that uses package
// mpi.
func TestNetworkSender(t *testing.T) {
	for _, words := range []int{1, 2, 3, 346, 347, 1000} {
		_, world := deployed(t, fmt.Sprintf("rtl-net:stall_percent=20 seed=3 %s +sender +words=%d",
			build(t, "verilog-mpe"), words))
		want := make([]uint32, words)
		for i := range want {
			want[i] = uint32(i)
		}
		for range 3 { // each is sent after the previous one is acknowledged
			got := make([]uint32, words)
			st, err := mpi.Recv(within(t, time.Minute), world, got, 1, 0)
			if err != nil || st.Bytes != int64(4*words) || !slices.Equal(got, want) {
				t.Fatalf("%d words: %+v, %v, %v", words, st, err, got[:min(words, 8)])
			}
		}
	}
}

func TestNetworkReceiver(t *testing.T) {
	_, world := deployed(t, "rtl-net:stall_percent=20 seed=3 "+build(t, "verilog-mpe")+" +receiver")
	for _, words := range sizes {
		for range 2 {
			if err := mpi.Send(within(t, time.Minute), world, make([]uint32, words), 1, 0); err != nil {
				t.Fatalf("%d words: %v", words, err)
			}
		}
	}
}

// TestNetworkHLS exchanges datagrams of all lengths between a program in HLS C++ and a socket, and compares bytes,
// lengths and metadata on the streams.
func TestNetworkHLS(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("testdata", "datagrams.cpp"))
	if err != nil {
		t.Fatal(err)
	}
	at := loopback.Network(t)
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.ParseIP(at + "1"), Port: 2718})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	c := daemontest.Start(t, daemon.Options{}, "", fmt.Sprintf("address: %s1, peer: cpu", at),
		fmt.Sprintf("address: %s2, run: standin, kernel: \"rtl-net:stall_percent=30 seed=5 %s\"", at,
			build(t, "hls", change{1: string(source)})))
	role := &net.UDPAddr{IP: net.ParseIP(at + "2"), Port: 2718}
	until(t, "an open port", func() bool {
		s, err := c.Client.Status(within(t, time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		sim := s.Ranks[0].KernelStats.Simulation
		return sim != nil && sim.Text == "no datagram is in progress"
	})
	if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	for _, n := range []int{1, 2, 7, 8, 9, 32, 36, 40, 1408, 1415, 1416} {
		for range 2 { // without and with a length in the metadata
			sent := make([]byte, n)
			for i := range sent {
				sent[i] = byte(i*3 + n)
			}
			if _, err := socket.WriteToUDP(sent, role); err != nil {
				t.Fatal(err)
			}
			k, from, err := socket.ReadFromUDP(buf)
			if err != nil || !bytes.Equal(buf[:k], sent) || from.String() != role.String() {
				t.Fatalf("%d bytes: %d from %v, %v\n% x", n, k, from, err, buf[:k])
			}
		}
	}
}

// TestNetworkHLSEnds checks that the simulation continues when the role of a program in HLS C++ has done its work and
// waits for no stream.
func TestNetworkHLSEnds(t *testing.T) {
	const program = `#include "hls_stream.h"
int main() {
	zrlmpi::network<int, int> net;
	zrlmpi::meanwhile([&] { net.next(1); });
	while (zrlmpi::cycle()) {}
}
`
	c := startNetwork(t, build(t, "hls", change{1: program}), "", "")
	until(t, "cycles", func() bool {
		sim := c.simulation(t)
		return sim != nil && sim.Cycle > 1000 && sim.Text == "no datagram is in progress"
	})
}

// TestNetworkFindings checks that violations by the MPE and omissions by its role are reported with signal and cycle.
func TestNetworkFindings(t *testing.T) {
	for fault, tt := range map[string]struct {
		changes []change
		want    string
	}{
		"closed port": {[]change{{"(0 => not piSHL_156_25Rst,", "(1 => not piSHL_156_25Rst,"}},
			"poROL_Nrc_Udp_Rx_ports since cycle"},
		"takes no data": {[]change{
			{"siNRC_Udp_Data_tready <= waiting and have_meta;", "siNRC_Udp_Data_tready <= '0';"},
			{"and waiting = '1' and have_meta = '1';", "and waiting = '1' and have_meta = '1' and false;"},
		}, "siNRC_Udp_Data_tready since cycle"},
		"undefined": {[]change{{"soROLE_Nrc_Udp_Meta_TDATA <= x\"0000\" &",
			"soROLE_Nrc_Udp_Meta_TDATA <= \"UUUUUUUUUUUUUUUU\" &"}}, "soROLE_Nrc_Udp_Meta_TDATA at cycle"},
	} {
		t.Run(fault, func(t *testing.T) {
			c := startNetwork(t, build(t, "vhdl-mpe", tt.changes...), "", "")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = c.Client.Ping(ctx, control.PingRequest{From: 0, To: 1, Words: 5, Count: 1, Datatype: "int",
					Timeout: "0s"}, func(control.Trip) error { return nil })
			}()
			until(t, "the cause", func() bool {
				s, err := c.Client.Status(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range diagnosis.Diagnose([]diagnosis.Source{{Status: &s}}, 200*time.Millisecond).Findings {
					if f.Cause == diagnosis.RoleHolds && strings.Contains(f.Text, tt.want) {
						return true
					}
				}
				return false
			})
			cancel()
			<-ended
		})
	}
}

// TestNetworkCapture checks that packets of a rank with a simulated MPE are recorded with the MPE's cycles.
func TestNetworkCapture(t *testing.T) {
	c := startNetwork(t, build(t, "verilog-mpe"), "", "")
	c.ping(t, 347, 2, "int") // the first SEND_REQUEST may precede the first cycle
	seen := packets(t, c)
	for _, want := range []string{
		"SEND_REQUEST 0", "CLEAR_TO_SEND 1", "DATA 0", "ACK 1", "SEND_REQUEST 1", "CLEAR_TO_SEND 0", "DATA 1", "ACK 0",
	} {
		if seen[want] == 0 {
			t.Errorf("no %s among %v", want, seen)
		}
	}
	if seen["DATA 1"] < seen["DATA 0"]+173 {
		t.Errorf("the echo has cycle %d, and the message %d", seen["DATA 1"], seen["DATA 0"])
	}
}
