package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/cmd/zrlctl/relay"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// impairFiles writes a configuration of two ranks and a script, and returns their paths.
func impairFiles(t *testing.T) (cfg, script string) {
	t.Helper()
	dir := t.TempDir()
	cfg, script = filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "script.yaml")
	network := loopback.Network(t)
	text := fmt.Sprintf("ranks:\n  - {rank: 0, address: %[1]s1, run: host}\n  - {rank: 1, address: %[1]s2, run: "+
		"standin}\n", network)
	for path, text := range map[string]string{cfg: text, script: "seed: 7\nrules:\n  - packet ACK nth 2 loss 100%\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cfg, script
}

func TestImpairUsage(t *testing.T) {
	cfg, script := impairFiles(t)
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{cfg + " --print-config 0", exitOK,
			`(?s)rank: 0\n    address: 127\.\d+\.\d+\.1:.*run: host.*address: 127\.27\.18\.2:\d+\n    peer: fpga.*transport: udp`, `^$`},
		{cfg + " --print-config 0,1 --via 127.240.0.0/24", exitOK, `(?s)run: host.*run: standin`, `^$`},
		{cfg + " --print-config 2", exitUsage, `^$`, `there is no rank 2: the ranks are 0 to 1`},
		{cfg + " --loss 5", exitUsage, `^$`, `rule "loss 5": loss: "5" is not a percentage`},
		{cfg + " --after 1s", exitUsage, `^$`, `rule "after 1s": no fault given`},
		{cfg + " --rule x", exitUsage, `^$`, `rule "x": unknown word "x"`},
		{cfg + " --transport tcp --script " + script, exitUsage, `^$`,
			`rule "packet ACK nth 2 loss 100%": loss is not possible over tcp`},
		{cfg + " --transport shm", exitUsage, `^$`, `transport "shm" cannot be relayed`},
		{cfg + " --from 9 --partition", exitUsage, `^$`, `there is no rank 9`},
		{cfg + " --via x", exitUsage, `^$`, `--via: pool: "x" is not an address, range or network`},
		{cfg + " --script " + cfg, exitUsage, `^$`, `unknown key "ranks": the keys here are seed, rules`},
		{cfg + " --script /no/such/file", exitUsage, `^$`, `/no/such/file`},
		{"/no/such/file", exitUsage, `^$`, `/no/such/file`},
		{"", exitUsage, `^$`, `impair: CONFIG is missing`},
		{cfg + " --via 192.0.2.1,192.0.2.2", exitFailure, `^$`,
			`rank 0 cannot listen on udp 192.0.2.1:\d+: this machine does not have that address`},
	} {
		code, stdout, stderr := zrlctl(t, "", strings.Fields("impair "+tt.args)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) ||
			!regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("%s: exit code %d\n%s\n%s", tt.args, code, stdout, stderr)
		}
	}
}

// TestImpair runs the command, sends packets through the relay, and interrupts the command.
func TestImpair(t *testing.T) {
	cfg, script := impairFiles(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"impair", cfg, "--script", script, "--duplicate", "100%", "--json"}, nil, w,
			os.Stderr)
		w.Close()
	}()
	lines := json.NewDecoder(bufio.NewReader(r))
	var ready struct {
		Ready bool
		Seed  int
		Rules []string
		Ranks []relayedRank
	}
	if err := lines.Decode(&ready); err != nil || !ready.Ready || ready.Seed != 7 || len(ready.Ranks) != 2 ||
		strings.Join(ready.Rules, "; ") != "packet ACK nth 2 loss 100%; duplicate 100%" {
		t.Fatalf("%+v, %v", ready, err)
	}
	at := func(s string) *net.UDPAddr { return net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s)) }
	var conns [2]*net.UDPConn
	for rank := range conns {
		conn, err := net.ListenUDP("udp4", at(ready.Ranks[rank].Address))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conns[rank] = conn
	}
	ack := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Type: protocol.Ack})
	for range 3 {
		if _, err := conns[0].WriteToUDP(ack, at(ready.Ranks[1].RelayAddress)); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		if _, source, err := conns[1].ReadFromUDP(make([]byte, 100)); err != nil ||
			source.String() != ready.Ranks[0].RelayAddress {
			t.Errorf("from %v, %v", source, err)
		}
	}
	cancel()
	var report relay.Report
	if err := lines.Decode(&report); err != nil || len(report.Rows) != 1 || report.Rows[0].Packet != "ACK" ||
		report.Rows[0].Lost != 1 ||
		report.Total.Packets != 3 || report.Total.Duplicated != 2 || report.Seed != 7 {
		t.Errorf("%+v, %v", report, err)
	}
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}
