package main

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// roleCapture writes a capture that contains a message to rank 1 and a message to rank 2. It returns the path of the
// capture.
func roleCapture(t *testing.T) string {
	t.Helper()
	var file bytes.Buffer
	w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
	addr := func(rank uint32) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rank + 1)}), 2718)
	}
	for i, p := range []struct {
		src, dst uint32
		kind     protocol.Type
		call     protocol.Call
		cycles   []pcapng.Cycle
	}{
		{0, 1, protocol.SendRequest, protocol.SendInt, []pcapng.Cycle{{Rank: 1, Simulation: 1, Cycle: 900}}},
		{0, 1, protocol.SendRequest, protocol.SendInt, []pcapng.Cycle{{Rank: 1, Simulation: 2, Cycle: 16}}},
		{1, 0, protocol.ClearToSend, protocol.RecvInt, []pcapng.Cycle{{Rank: 1, Simulation: 2, Cycle: 18}}},
		{0, 1, protocol.Data, protocol.SendInt, []pcapng.Cycle{{Rank: 1, Simulation: 2, Cycle: 30}}},
		{1, 0, protocol.Ack, protocol.RecvInt, []pcapng.Cycle{{Rank: 1, Simulation: 2, Cycle: 30}}},
		{2, 1, protocol.SendRequest, protocol.SendInt,
			[]pcapng.Cycle{{Rank: 2, Simulation: 1, Cycle: 5}, {Rank: 1, Simulation: 2, Cycle: 31}}},
		{0, 2, protocol.SendRequest, protocol.SendInt, nil},
	} {
		h := protocol.Header{Src: p.src, Dst: p.dst, Type: p.kind, Call: p.call}
		u := pcapng.Unit{Time: time.Unix(int64(i), 0), Src: addr(p.src), Dst: addr(p.dst), Proto: pcapng.UDP}
		if p.kind == protocol.Data {
			h.Size = 1
		}
		u.Data = append(protocol.CloudFPGA.Append(nil, h), make([]byte, 4*h.Size)...)
		u.Comments = append(u.Comments, "rank 0: dropped, stale")
		for _, c := range p.cycles {
			u.Comments = append(u.Comments, c.String())
		}
		if err := w.WriteUnit(&u); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return writeTo(t, "role.pcapng", file.Bytes())
}

// writeTo writes a file to a temporary folder of the test and returns the file's path.
func writeTo(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCosimWaves(t *testing.T) {
	path := roleCapture(t)
	both := filepath.Join(t.TempDir(), "both.vcd")
	waves := writeTo(t, "waves.vcd", []byte("$timescale 1ps $end\n$enddefinitions $end\n#0\n0!\n#305\n1!\n"))
	runWaves := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		code = run(t.Context(), append([]string{"cosim", "waves"}, args...), strings.NewReader(""), &out, &errs)
		return out.String(), errs.String(), code
	}
	const want = `$timescale 1ps $end
$scope module zrlmpi $end
$var string 1 zrlmpi_sent sent $end
$var string 1 zrlmpi_received received $end
$upscope $end
$enddefinitions $end
#0
0!
#160
s2:SEND_REQUEST:0>1 zrlmpi_received
#180
s3:CLEAR_TO_SEND:1>0 zrlmpi_sent
#300
s5:ACK:1>0 zrlmpi_sent
s4:DATA:0>1 zrlmpi_received
#305
1!
#310
s6:SEND_REQUEST:2>1 zrlmpi_received
`
	out, stderr, code := runWaves(path, "--rank", "1", "--waves", waves, "-o", both)
	if got, err := os.ReadFile(both); err != nil || string(got) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if code != exitOK || stderr != "" ||
		out != both+": 5 packets of rank 1, simulation 2; view it with: gtkwave "+both+"\n" {
		t.Errorf("exit code %d, %s\n%s", code, stderr, out)
	}
	out, stderr, code = runWaves(path, "--rank", "2", "--waves", waves, "-o", both, "--period", "7", "--json")
	var got rolePackets
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitOK || got != (rolePackets{both, 2, 1, 1}) {
		t.Errorf("exit code %d, %v, %s\n%s", code, err, stderr, out)
	}
	if text, err := os.ReadFile(both); err != nil ||
		!strings.Contains(string(text), "\n#35\ns6:SEND_REQUEST:2>1 zrlmpi_sent\n#305\n") {
		t.Errorf("%v\n%s", err, text)
	}
	withWaves := path + " --waves " + waves
	for args, tt := range map[string]struct {
		code int
		want string
	}{
		path:                 {exitUsage, "--output is missing"},
		path + " -o " + both: {exitUsage, "--waves is missing"},
		withWaves + " -o " + both: {exitUsage,
			"--rank is missing: the capture has packets of the roles of ranks [1 2]"},
		withWaves + " -o " + both +
			" --rank 3": {exitFailure, "no packet has a cycle of a role in simulation of rank 3: capture the packets"},
		withWaves + " -o x --period 0":                           {exitUsage, "--period 0: must be at least 1"},
		withWaves + " -o x --profile v1":                         {exitUsage, "v1"},
		withWaves + " -o " + waves:                               {exitUsage, "must not be the file of --waves"},
		path + " -o " + both + " --rank 1 --waves " + path:       {exitFailure, "not a value change dump"},
		path + " -o " + both + " --rank 1 --waves " + path + "x": {exitFailure, "no such file"},
		waves + " -o " + both + " --waves " + path:               {exitUsage, waves},
		"": {exitUsage, "CAPTURE"},
	} {
		_, stderr, code := runWaves(strings.Fields(args)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
}
