package wireshark_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// sharkdTree returns the tree that Wireshark's engine shows for each of the given frames, in that order. The dissector
// is installed as described in the README.
func sharkdTree(t *testing.T, file string, numbers []int) []string {
	t.Helper()
	path := needs.Program(t, "random access", "sharkd", "tshark")
	home := t.TempDir()
	plugins := filepath.Join(home, ".local/lib/wireshark/plugins")
	if err := os.MkdirAll(plugins, 0o700); err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plugins, script), source, 0o600); err != nil {
		t.Fatal(err)
	}
	var input bytes.Buffer
	enc := json.NewEncoder(&input)
	type call struct {
		Version string         `json:"jsonrpc"`
		ID      int            `json:"id"`
		Method  string         `json:"method"`
		Params  map[string]any `json:"params"`
	}
	enc.Encode(call{"2.0", 1, "load", map[string]any{"file": file}})
	for i, n := range numbers {
		enc.Encode(call{"2.0", i + 2, "frame", map[string]any{"frame": n, "proto": true}})
	}
	cmd := exec.Command(path, "-")
	cmd.Stdin = &input
	cmd.Env = append(os.Environ(), "HOME="+home, "LC_ALL=C.UTF-8")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || hasLuaError(stderr.String()) {
		t.Fatalf("sharkd: %v\n%s", err, &stderr)
	}
	var trees []string
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := dec.Decode(&answer); err != nil {
			t.Fatalf("%v in %.1000s", err, out)
		}
		if answer.Error != nil {
			t.Fatalf("sharkd: %s", answer.Error)
		}
		if answer.ID > 1 {
			trees = append(trees, string(answer.Result))
		}
	}
	if len(trees) != len(numbers) {
		t.Fatalf("%d answers to %d questions", len(trees), len(numbers))
	}
	return trees
}

// If a user selects frames in any order, some of them repeatedly, each frame looks the same as when they are read in
// order.
func TestRandomAccess(t *testing.T) {
	t.Parallel()
	m := message()
	file, err := filepath.Abs(write(t, join(m, m[:4], []packet{m[2].later(100 * millisecond)}, m[3:], short())...))
	if err != nil {
		t.Fatal(err)
	}
	frames := dissect(t, file, "-2")
	random := rand.New(rand.NewPCG(1, 2))
	order := append(random.Perm(len(frames)), random.Perm(len(frames))...)
	for i := range order {
		order[i]++
	}
	for i, tree := range sharkdTree(t, file, order) {
		f := frames[order[i]-1]
		for _, field := range []string{"zrlmpi.message", "zrlmpi.data.offset", "zrlmpi.data.bytes", "zrlmpi.data.total",
			"zrlmpi.request_in", "zrlmpi.clear_in", "zrlmpi.ack_in", "zrlmpi.data.frame"} {
			value := f.one(t, field)
			shown := strings.Contains(tree, fmt.Sprintf(`"f":"%s == `, field))
			if value == "" && shown ||
				value != "" && !strings.Contains(tree, fmt.Sprintf(`"f":"%s == %s"`, field, value)) {
				t.Errorf("frame %d: %s is not %q in\n%s", order[i], field, value, tree)
			}
		}
		for _, name := range experts {
			if got, want := strings.Contains(tree, `"zrlmpi.expert.`+name+`"`),
				len(f["zrlmpi.expert."+name]) > 0; got != want {
				t.Errorf("frame %d: %s is shown: %v, want %v", order[i], name, got, want)
			}
		}
	}
}
