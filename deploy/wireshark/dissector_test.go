// Package wireshark_test runs the dissector in tshark on captures of the deployed stack, on corrupt captures that the
// tests create, and on noise. A test must never pass merely because nothing was dissected.
package wireshark_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

const script = "zrlmpi.lua"

// fields lists all fields of the dissector, in the order in which tshark is asked for them.
var fields = []string{
	"zrlmpi.mark.start", "zrlmpi.dst_rank", "zrlmpi.src_rank", "zrlmpi.size", "zrlmpi.call", "zrlmpi.type",
	"zrlmpi.tag",
	"zrlmpi.reserved", "zrlmpi.mark.end", "zrlmpi.payload", "zrlmpi.data.offset", "zrlmpi.data.bytes",
	"zrlmpi.data.padding",
	"zrlmpi.data.total", "zrlmpi.data.frame", "zrlmpi.data.complete", "zrlmpi.message", "zrlmpi.request_in",
	"zrlmpi.clear_in",
	"zrlmpi.ack_in", "zrlmpi.time_clear", "zrlmpi.time_data", "zrlmpi.time_ack",
	"zrlmpi.ext.version", "zrlmpi.ext.flags", "zrlmpi.ext.flags.eager", "zrlmpi.ext.flags.ack_now",
	"zrlmpi.ext.flags.sync",
	"zrlmpi.ext.flags.hello", "zrlmpi.ext.flags.retransmit", "zrlmpi.ext.flags.plain", "zrlmpi.ext.payload_length",
	"zrlmpi.ext.checksum", "zrlmpi.ext.session",
	"zrlmpi.ext.peer_session", "zrlmpi.ext.number", "zrlmpi.ext.acknowledged", "zrlmpi.ext.message",
	"zrlmpi.ext.communicator",
	"zrlmpi.ext.tag", "zrlmpi.ext.code", "zrlmpi.ext.question", "zrlmpi.ext.report", "zrlmpi.ext.length",
	"zrlmpi.ext.offset", "zrlmpi.ext.clock", "zrlmpi.ext.message_limit",
	"zrlmpi.ext.eager_limit", "zrlmpi.ext.delay", "zrlmpi.ext.range.first", "zrlmpi.ext.range.end",
}

// experts lists the names of all expert infos, without the prefix "zrlmpi.expert.".
var experts = []string{
	"bad_header", "reserved_byte", "wrong_call", "wrong_source", "wrong_destination", "datatype_mismatch",
	"size_mismatch",
	"padding", "retransmitted_packet", "duplicate_packet", "stale_header", "unsolicited_data", "unexpected_payload",
	"gap",
	"crossed_requests", "revocation", "error_packet", "bad_checksum",
}

// frame is a frame as tshark shows it. It maps each field to its values, in the order of the packets in the frame.
type frame map[string][]string

// one returns the only value of a field, or "".
func (f frame) one(t *testing.T, field string) string {
	t.Helper()
	if len(f[field]) > 1 {
		t.Fatalf("%s occurs %d times: %v", field, len(f[field]), f[field])
	}
	return strings.Join(f[field], "")
}

// experts returns the names of the frame's expert infos, sorted.
func (f frame) experts() (names []string) {
	for _, name := range experts {
		for range f["zrlmpi.expert."+name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tshark runs tshark with the dissector and returns its output. If tshark is not installed, the test is skipped or, in
// CI, fails.
func tshark(t *testing.T, args ...string) string {
	t.Helper()
	return runTshark(t, script, args...)
}

func runTshark(t *testing.T, script string, args ...string) string {
	t.Helper()
	path := needs.Program(t, "the dissector", "tshark", "tshark")
	track(t, script)
	// "-G" must be the first argument.
	cmd := exec.Command(path, append(args, "-n", "-X", "lua_script:"+script)...)
	// Use a separate home directory, because the user's may contain preferences or an installed dissector.
	home := t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "LC_ALL=C.UTF-8", "TZ=UTC")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("tshark %q: %v\n%s", args, err, &stderr)
	}
	if hasLuaError(stderr.String()) {
		t.Fatalf("tshark %q:\n%s", args, &stderr)
	}
	return stdout.String()
}

// track makes go test aware that the result depends on a file that another program opens. Otherwise go test would reuse
// a cached result after the file changes.
func track(t *testing.T, file string) {
	t.Helper()
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
}

// hasLuaError reports whether tshark's output, on stdout or stderr, contains an error of a Lua script.
func hasLuaError(output string) bool {
	return strings.Contains(output, "Lua Error") || strings.Contains(output, "lua:") ||
		strings.Contains(output, ".lua\"]:")
}

// dissect returns the frames of a capture, beginning with frame 1.
func dissect(t *testing.T, file string, options ...string) []frame {
	t.Helper()
	track(t, file)
	args := append([]string{"-r", file, "-T", "fields", "-E", "occurrence=a", "-E", "aggregator=|"}, options...)
	names := append([]string{"frame.number", "_ws.col.Protocol", "_ws.col.Info"}, fields...)
	for _, name := range experts {
		names = append(names, "zrlmpi.expert."+name)
	}
	for _, name := range names {
		args = append(args, "-e", name)
	}
	var frames []frame
	for line := range strings.Lines(tshark(t, args...)) {
		f := frame{}
		for i, value := range strings.Split(strings.TrimSuffix(line, "\n"), "\t") {
			if value != "" {
				f[names[i]] = strings.Split(value, "|")
			}
		}
		frames = append(frames, f)
		if got := f.one(t, "frame.number"); got != strconv.Itoa(len(frames)) {
			t.Fatalf("frame %d is numbered %s", len(frames), got)
		}
		if info := f.one(t, "_ws.col.Info"); hasLuaError(info) {
			t.Fatalf("frame %d: %s", len(frames), info)
		}
	}
	if len(frames) == 0 {
		t.Fatalf("tshark shows nothing of %s", file)
	}
	return frames
}

// captures returns the captures of the deployed stack.
func captures(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../capture/testdata/captures/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	return files
}

// A script that fails must be distinguishable from a script that finds nothing.
func TestScriptErrorsAreSeen(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, old, broken string }{
		{"in the dissector", "local function dissect_datagram(tvb, pinfo, tree, len)\n",
			"local function dissect_datagram(tvb, pinfo, tree, len)\n error('sabotage')\n"},
		{"while displaying", "local function add_header(tree, tvb)\n",
			"local function add_header(tree, tvb)\n tree:add(nil)\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			broken := strings.Replace(string(source), c.old, c.broken, 1)
			if broken == string(source) {
				t.Fatalf("the script has no %q", c.old)
			}
			path := filepath.Join(t.TempDir(), "broken.lua")
			if err := os.WriteFile(path, []byte(broken), 0o600); err != nil {
				t.Fatal(err)
			}
			out := runTshark(t, path, "-r", captures(t)[0], "-V")
			if !hasLuaError(out) {
				t.Errorf("tshark's output does not have the error: %.2000s", out)
			}
		})
	}
}

// The lists of fields and expert infos above match the script.
func TestFieldsAreComplete(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range fields {
		known[name] = true
	}
	for _, name := range experts {
		known["zrlmpi.expert."+name] = true
	}
	found := 0
	for line := range strings.Lines(tshark(t, "-G", "fields")) {
		columns := strings.Split(line, "\t")
		if len(columns) < 3 || columns[0] != "F" || !strings.HasPrefix(columns[2], "zrlmpi") {
			continue
		}
		found++
		if !known[columns[2]] {
			t.Errorf("no test examines %s", columns[2])
		}
	}
	if found != len(fields)+len(experts) {
		t.Errorf("tshark knows %d fields, want %d", found, len(fields)+len(experts))
	}
}

// differences compares tshark's output from two runs on the same file.
func differences(a, b []frame, ignore ...string) error {
	if len(a) != len(b) {
		return fmt.Errorf("%d frames, and %d", len(a), len(b))
	}
	for i := range a {
		for _, field := range append(slices.Clone(fields), "_ws.col.Info") {
			if !slices.Contains(ignore, field) && !slices.Equal(a[i][field], b[i][field]) {
				return fmt.Errorf("frame %d: %s is %v, and %v", i+1, field, a[i][field], b[i][field])
			}
		}
		if !slices.Equal(a[i].experts(), b[i].experts()) {
			return fmt.Errorf("frame %d: expert infos are %v, and %v", i+1, a[i].experts(), b[i].experts())
		}
	}
	return nil
}
