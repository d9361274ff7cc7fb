package cosim_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// tcpRole runs a role that echoes chunks of TCP connections, as rank 1. The test is rank 0.
func tcpRole(t *testing.T, language, file, network, options, arguments string) *daemontest.TestDaemon {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return daemontest.Start(t, daemon.Options{}, "", fmt.Sprintf("address: %s1, peer: cpu", network),
		fmt.Sprintf("address: %s2, run: standin, kernel: \"rtl-net:%s %s %s\"", network, options,
			build(t, language, change{1: string(source)}), arguments))
}

func simulationOf(t *testing.T, c *daemontest.TestDaemon) *state.Simulation {
	t.Helper()
	s, err := c.Client.Status(within(t, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	return s.Ranks[0].KernelStats.Simulation
}

// connect opens a connection from an address as soon as the port is open.
func connect(t *testing.T, from, to string) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from + ":0"))}
	var conn net.Conn
	until(t, "an open port", func() bool {
		var err error
		if conn, err = d.DialContext(t.Context(), "tcp", to); err != nil && !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// echoed sends bytes and verifies the echo.
func echoed(t *testing.T, conn net.Conn, n int) {
	t.Helper()
	sent, got := make([]byte, n), make([]byte, n)
	for i := range sent {
		sent[i] = byte(i*7 + n)
	}
	go conn.Write(sent)
	if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes do not come back: %v", n, err)
	}
}

// TestNetworkTCP checks that a role in Verilog echoes data over TCP and, at the same time, over UDP.
func TestNetworkTCP(t *testing.T) {
	for _, options := range []string{"", "stall_percent=30 seed=7"} {
		for _, arguments := range []string{"", "+len"} {
			t.Run(options+" "+arguments, func(t *testing.T) {
				at := loopback.Network(t)
				c := tcpRole(t, "verilog-mpe", "tcp.v", at, options, arguments)
				first := connect(t, at+"1", at+"2:2720")
				second := connect(t, at+"1", at+"2:2720")
				for _, n := range []int{1, 7, 8, 9, 1352, 1353, 2000, 2001, 100_000} {
					echoed(t, first, n)
					echoed(t, second, n)
				}
				datagrams, err := net.DialUDP("udp4", &net.UDPAddr{IP: net.ParseIP(at + "1"), Port: 2718},
					&net.UDPAddr{IP: net.ParseIP(at + "2"), Port: 2718})
				if err != nil {
					t.Fatal(err)
				}
				defer datagrams.Close()
				if err := datagrams.SetDeadline(time.Now().Add(time.Minute)); err != nil {
					t.Fatal(err)
				}
				echoed(t, datagrams, 100)
				// A peer closes its connection in the middle of the echo.
				if _, err := second.Write(make([]byte, 50_000)); err != nil {
					t.Fatal(err)
				}
				second.Close()
				until(t, "the end of a connection", func() bool { return simulationOf(t, c).TCP.Open == 1 })
				echoed(t, first, 3000)
				if conn, err := net.Dial("tcp", at+"2:2718"); !errors.Is(err, syscall.ECONNREFUSED) {
					t.Errorf("a closed port: %v, %v", conn, err)
				}
				if s := simulationOf(t, c); s.Fault || s.TCP.Accepted != 2 || s.TCP.Received == 0 ||
					s.TCP.Sent < s.TCP.Received || s.TCP.Refused+s.TCP.Unknown+s.TCP.Limit != 0 ||
					s.Datagrams.Sent != 1 {
					t.Errorf("%+v, %+v", s.TCP, s.Datagrams)
				}
			})
		}
	}
}

// TestNetworkTCPOpens checks that a role that sends first opens the connection, and receives the answer on it.
func TestNetworkTCPOpens(t *testing.T) {
	at := loopback.Network(t)
	l, err := net.Listen("tcp", at+"1:4000")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := tcpRole(t, "verilog-mpe", "tcp.v", at, "stall_percent=30 seed=5", "+first")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	got := make([]byte, 8)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "firstone" ||
		!strings.HasPrefix(conn.RemoteAddr().String(), at+"2:") {
		t.Fatalf("%q from %v, %v", got, conn.RemoteAddr(), err)
	}
	echoed(t, conn, 5000)
	if s := simulationOf(t, c).TCP; s.Opened != 1 || s.Accepted != 0 || s.Open != 1 {
		t.Errorf("%+v", s)
	}
}

// TestNetworkTCPFault checks that a violation by a role on TCP is reported with signal and cycle.
func TestNetworkTCPFault(t *testing.T) {
	at := loopback.Network(t)
	c := tcpRole(t, "verilog-mpe", "tcp.v", at, "", "+hole")
	if _, err := connect(t, at+"1", at+"2:2720").Write([]byte("a few bytes")); err != nil {
		t.Fatal(err)
	}
	until(t, "the fault", func() bool { return simulationOf(t, c).Fault })
	if text := simulationOf(t, c).BlockReason(); !strings.HasPrefix(text, "soNRC_Tcp_Data_tkeep at cycle ") ||
		!strings.Contains(text, "in the chunk to rank 0") {
		t.Errorf("the problem is %q", text)
	}
}

// TestNetworkTCPLanguages runs TCP roles in VHDL and HLS C++ that do not use UDP.
func TestNetworkTCPLanguages(t *testing.T) {
	for language, file := range map[string]string{"vhdl-mpe": "tcp.vhdl", "hls": "tcp.cpp"} {
		t.Run(language, func(t *testing.T) {
			at := loopback.Network(t)
			c := tcpRole(t, language, file, at, "stall_percent=30 seed=7", "")
			conn := connect(t, at+"1", at+"2:2720")
			for _, n := range []int{1, 8, 9, 2001, 10_000} {
				echoed(t, conn, n)
			}
			until(t, "the end of the last transfer", func() bool { return simulationOf(t, c).Signal == "" })
		})
	}
}
