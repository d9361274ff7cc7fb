package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture"
)

const captures = "../../capture/testdata/captures/"

func TestPacketTools(t *testing.T) {
	dir := t.TempDir()
	whole, err := os.ReadFile(captures + "ref_mpe_echo_1000.pcap")
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(dir, "cut.pcap")
	if err := os.WriteFile(cut, whole[:len(whole)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	corrupt := filepath.Join(dir, "corrupt.pcap") // corrupt from the length field of packet 20 on
	at, bad := 24, bytes.Clone(whole)
	for range 19 {
		at += 16 + int(binary.LittleEndian.Uint32(whole[at+8:]))
	}
	bad[at+11] = 0xff
	if err := os.WriteFile(corrupt, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	early, late := filepath.Join(dir, "early.pcap"), filepath.Join(dir, "late.pcap") // by a second
	for at := 24; at < len(bad); at += 16 + int(binary.LittleEndian.Uint32(whole[at+8:])) {
		copy(bad[at+8:], whole[at+8:at+12])
		binary.LittleEndian.PutUint32(bad[at:], binary.LittleEndian.Uint32(whole[at:])+1)
	}
	for name, b := range map[string][]byte{early: whole, late: bad} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	noPackets := filepath.Join(dir, "empty.pcap")
	if err := os.WriteFile(noPackets, whole[:24], 0o600); err != nil {
		t.Fatal(err)
	}
	written := filepath.Join(dir, "out.pcapng")
	page := filepath.Join(dir, "report.html")
	for _, tt := range []struct {
		args   string
		stdin  string
		code   int
		stdout string // regular expressions
		stderr string
	}{
		{args: "decode " + captures + "ref_ref_pingpong_347.pcap",
			stdout: `(?m)^ +4 +0\.000088 127\.0\.0\.1 > 127\.0\.0\.2 udp 4: payload 0→1, message 1, bytes 1384–1387 of 1388 \(packet 3\), complete$`},
		{args: "decode -t none --type ACK --rank 1 --message 2 " + captures + "ref_ref_pingpong_1.pcap",
			stdout: `^ +8 127\.0\.0\.1 > 127\.0\.0\.2 udp 32: ACK 0→1 RECV_INT, message 2\n$`},
		{args: "decode -t delta --pair 1,2 " + captures + "ref_ring3_347.pcap",
			stdout: `^ +6 +0\.000000 .*SEND_REQUEST 1→2`},
		{args: "decode -t epoch " + captures + "ref_ref_pingpong_1.pcap", stdout: `^ +1 \d{10}\.\d{6} `},
		{args: "decode -t abs " + captures + "ref_ref_pingpong_1.pcap",
			stdout: `^ +1 \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} `},
		{args: "decode -x --message 1 --type data " + captures + "ref_ref_pingpong_1.pcap",
			stdout: `00000000  96 96 96 96 01 00 00 00`},
		{args: "decode --json " + captures + "ref_ref_pingpong_1.pcap",
			stdout: `^\{"packet":1,"time":"[^"]+","proto":"udp","src_address":"127.0.0.1:2718","dst_address":"127.0.0.2:2718","length":32,"kind":"packet","type":"SEND_REQUEST","call":"SEND_INT","src":0,"dst":1,"size":0,"tag":0,"message":1\}`},
		{args: "decode -o " + written + " --rank 1 " + captures + "ref_ring3_347.pcap"},
		{args: "analyze " + written, stdout: `4 messages, 4 complete`},
		{args: "decode -", stdin: string(whole), stdout: `SEND_REQUEST 0→1`},
		{args: "decode --type FOO " + captures + "ref_ref_pingpong_1.pcap", code: exitUsage,
			stderr: `must be one of PAYLOAD, BAD, SEND_REQUEST`},
		{args: "decode --pair 1 " + captures + "ref_ref_pingpong_1.pcap", code: exitUsage, stderr: `give two ranks`},
		{args: "decode -t noon " + captures + "ref_ref_pingpong_1.pcap", code: exitUsage,
			stderr: `must be rel, delta, abs, epoch or none`},
		{args: "decode", code: exitUsage, stderr: `give a capture file or several`},
		{args: "decode /no/such/file", code: exitUsage, stderr: `/no/such/file`},
		{args: "decode main.go", code: exitUsage, stderr: `not a pcap or pcapng file`},
		{args: "decode --port 70000 " + captures + "ref_ref_pingpong_1.pcap", code: exitUsage,
			stderr: `must be at most 65535`},
		{args: "decode --port 9 " + captures + "ref_mpe_echo_1.pcap", code: exitUsage,
			stderr: `(?s)^ignored packets: other_port 24\n.*all 24 packets were ignored \(other_port 24\): give the ports of the ranks with --port, or --all-ports`},
		{args: "decode --json --port 9 " + captures + "ref_mpe_echo_1.pcap", code: exitUsage,
			stderr: `^\{"skipped":\{"other_port":24\}\}\n`},
		{args: "decode " + noPackets, code: exitUsage,
			stderr: `no packets: record while the ranks exchange messages; zrlctl capture .* record.shared_memory`},
		{args: "decode --type BAD " + captures + "ref_mpe_echo_1.pcap"},
		{args: "decode -o " + written + ".none --port 9 " + captures + "ref_mpe_echo_1.pcap", code: exitUsage,
			stderr: `all 24 packets were ignored`},
		{args: "decode -i no_such_interface0", code: exitUsage, stderr: `no_such_interface0`},

		{args: "analyze " + captures + "ref_mpe_echo_1000.pcap",
			stdout: `(?s)^ +MESSAGE +START.*6 messages, 6 complete, 0 retransmissions.*no problems found\n$`},
		{args: "analyze " + captures + "ref_ref_late_start.pcap", code: exitFailure,
			stdout: `(?s)FINDINGS.*retransmitted_packet.*packets 1, 2, 3\n.*decode \S+late_start.pcap --packet 1,2,3\nIn Wireshark: frame.number in \{1,2,3\}\n$`},
		{args: "decode --packet 2,5 -t none " + captures + "ref_ref_late_start.pcap", stdout: `^ +2 .*\n +5 .*\n$`},
		{args: "analyze --messages=false " + captures + "ref_mpe_echo_1.pcap", stdout: `^` + captures},
		{args: "analyze --limit 2 " + captures + "ref_mpe_echo_1.pcap", stdout: `… and 4 more messages`},
		{args: "analyze --progress " + captures + "ref_mpe_echo_1.pcap", stdout: `no problems found`,
			stderr: `24 packets, [\d.]+ k?B`},
		{args: "analyze " + cut, code: exitFailure,
			stdout: `(?s)cut off .*after 34 packets.*the recording ends here: rank \d waits for `},
		{args: "analyze " + corrupt, code: exitFailure,
			stdout: fmt.Sprintf(`(?s)4 messages, 3 complete.*corrupt at byte %d, after 19 packets: a packet claims .*the recording ends here: rank \d waits for `, at)},
		{args: "analyze --json " + corrupt, code: exitFailure,
			stdout: fmt.Sprintf(`"truncated":"[^"]*corrupt at byte %d, after 19 packets: `, at)},
		{args: "analyze " + early + " " + late,
			stdout: `(?s)6 messages, 6 complete.*\njoined: recordings of 2 places, 36 packets, 36 of them ` +
				`recorded at more than one\n  .*early.pcap: 36 packets, 0 only here\n  .*late.pcap: 36 packets, 0 only here; its clock is 1.000000 s ` +
				`ahead \(± 0.0 µs, by 36 packets\): corrected\n.*no problems found`},
		{args: "decode --type ACK --message 1 " + early + " " + late,
			stdout: `ACK 1→0 RECV_INT, message 1, early.pcap:6, late.pcap:6 \+0.0 µs\n$`},
		{args: "analyze " + early + " -", code: exitUsage, stderr: `standard input cannot be joined with files`},
		{args: "analyze " + early + " main.go", code: exitUsage, stderr: `main.go: not a pcap or pcapng file`},
		{args: "analyze main.go", code: exitUsage, stderr: `not a pcap or pcapng file`},
		{args: "analyze --limit -1 " + cut, code: exitUsage, stderr: `--limit -1`},
		{args: "analyze --profile v1 " + cut, code: exitUsage, stderr: `unknown profile`},
		{args: "analyze --html " + page + " " + captures + "ref_mpe_echo_1.pcap", stdout: `no problems found`},

		{args: "analyze --port 9 " + captures + "ref_mpe_echo_1.pcap", code: exitUsage,
			stdout: `ignored packets: other_port 24\n$`,
			stderr: `all 24 packets were ignored \(other_port 24\): give the ports of the ranks with --port, or --all-ports`},
		{args: "analyze " + noPackets, code: exitUsage,
			stderr: `no packets: record while the ranks exchange messages; zrlctl capture .* record.shared_memory`},

		{args: "replay x.pcap --to 127.0.0.2", code: exitUsage,
			stderr: `replay: --as is missing\nusage: zrlctl replay`},
		{args: "replay " + captures + "ref_mpe_echo_1.pcap --as 0 --to nowhere", code: exitUsage, stderr: `--to`},
		{args: "replay " + captures + "ref_mpe_echo_1.pcap --as 0 --to 127.0.0.2 --speed warp", code: exitUsage,
			stderr: `recorded or full`},
		{args: "replay " + captures + "ref_mpe_echo_1.pcap --as 0 --to 127.0.82.2:2999 --bind 127.0.82.1:0 --timeout " +
			"10ms --speed full", code: exitFailure,
			stdout: `1 packet sent, 0 received: packet 2, CLEAR_TO_SEND 1→0 RECV_INT \(32 bytes\), did not come`},
		{args: "replay " + captures + "ref_mpe_echo_1.pcap --as 7 --to 127.0.0.2", code: exitFailure,
			stderr: `no UDP packets between these ranks`},
	} {
		code, stdout, stderr := zrlctl(t, tt.stdin, strings.Fields(tt.args)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) ||
			!regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("zrlctl %s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
	if b, err := os.ReadFile(page); err != nil || !strings.Contains(string(b), "<html") {
		t.Errorf("the page: %d bytes, %v", len(b), err)
	}
}

func TestAnalyzeJSON(t *testing.T) {
	code, stdout, _ := zrlctl(t, "", "analyze", "--json", captures+"loss_fpga_ack_lost.pcap")
	var r capture.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitFailure {
		t.Fatal(code, err)
	}
	if len(r.Messages) != 1 || r.Messages[0].Words != 100 || r.Messages[0].Retransmissions != 3 ||
		r.Messages[0].Complete || r.Messages[0].Phases.DataToAck != nil {
		t.Errorf("%+v", r.Messages)
	}
	if len(r.Findings) != 1 || r.Findings[0].Kind != capture.RetransmissionsExhausted {
		t.Errorf("%+v", r.Findings)
	}
}
