package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestPacketToolsExtended: the packet tools recognize packets of the extended profile without a flag.
func TestPacketToolsExtended(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, talk *capturetest.ExtSession) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, talk.Capture.Pcap(capturetest.Format{}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clean := file("clean.pcap",
		capturetest.NewExtSession(false).SendAck(0).SendAck(1).SendRendezvous(0, 1, make([]byte, 3000), 1336).SendEager(1,
			1, []byte("hello"),
			1336))
	open := file("open.pcap", capturetest.NewExtSession(true).SendAck(0).
		Send(0, protocol.ExtHeader{Type: protocol.SendRequest, Message: 1, Tag: 5, Length: 3000}, nil).
		Send(0, protocol.ExtHeader{Type: protocol.Error, Message: 1, Tag: uint32(protocol.CodeCancel)}, nil))
	page := filepath.Join(dir, "page.html")
	for _, tt := range []struct {
		args   string
		code   int
		stdout string
	}{
		{"decode -t none --type data --rank 1 " + clean, 0,
			`^ +5 10\.12\.0\.1 > 10\.12\.0\.2 udp 1416: DATA 0→1 SEND_INT #2 msg=1 tag=5 comm=0 0\.\.1336 of 3000 ack=0\n`},
		{"decode -t none --type ack --profile extended " + clean, 0,
			`ACK 1→0 RECV_INT ack=5 messages<65537 eager<1048576 delay=250µs\n`},
		{"decode -t none " + open, 0, `tcp 80: ERROR 0→1 SEND_INT #2 msg=1 "cancel" ack=0\n$`},
		{"decode --json --type send_request " + open, 0,
			`"kind":"packet","type":"SEND_REQUEST","call":"SEND_INT","src":0,"dst":1,"size":750,"extended":\{"number":1,.*"length":3000`},
		{"analyze " + clean, 0, `(?s)EXTENDED PROFILE\n.*\n +0 +1 +1 +6 +2 +1 +1 +0 +3000 +0 +0 +0 +0 +0\n +1 +0 +1 +4 +2 +1 +1 +0 +5 +0 .*no problems found\n$`},
		{"analyze " + open, exitFailure,
			`(?s)FINDINGS.*never_cleared +rank 0 has waited \S+ for CLEAR_TO_SEND from rank 1: no receive has matched message 1, tag 5, communicator 0, 3000 bytes`},
		{"analyze --json " + open, exitFailure,
			`"extended":\[\{"src":0,"dst":1,"sessions":1,"packets":3,"acks":1,"messages":1,"complete":0,"open":1,`},
		{"analyze --html " + page + " " + clean, 0, ``},
	} {
		code, stdout, stderr := zrlctl(t, "", strings.Fields(tt.args)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) {
			t.Errorf("zrlctl %s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
	b, err := os.ReadFile(page)
	if err != nil || !strings.Contains(string(b), "10 packets of the extended profile: 2 messages, 2 complete, 0 "+
		"packets retransmitted") || !strings.Contains(string(b), "clean") {
		t.Errorf("the page: %d bytes, %v", len(b), err)
	}
}
