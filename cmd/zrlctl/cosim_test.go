package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCosimNew(t *testing.T) {
	newProject := func(args ...string) (stdout, stderr string, code int) {
		var out, errs bytes.Buffer
		code = run(t.Context(), append([]string{"cosim", "new"}, args...), strings.NewReader(""), &out, &errs)
		return out.String(), errs.String(), code
	}
	dir := filepath.Join(t.TempDir(), "role")
	out, stderr, code := newProject("--language", "verilog", dir)
	if code != exitOK || stderr != "" || !strings.Contains(out, filepath.Join(dir, "role.v")+"\n") ||
		!strings.HasSuffix(out, "next: make -C "+dir+"\n") {
		t.Errorf("exit code %d, %s\n%s", code, stderr, out)
	}
	out, stderr, code = newProject("--language", "hls", "--json", dir+"2")
	var result struct{ Files []string }
	if err := json.Unmarshal([]byte(out), &result); code != exitOK || err != nil || len(result.Files) != 9 {
		t.Errorf("exit code %d, %s, %v\n%s", code, stderr, err, out)
	}
	for _, f := range result.Files {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	for args, want := range map[string]string{
		"--language verilog " + dir: "is there",
		"--language ada x":          "--language ada: must be one of verilog, vhdl, hls, verilog-mpe, vhdl-mpe",
		"x":                         "--language is missing",
		"--language hls":            "DIR is missing",
	} {
		_, stderr, code := newProject(strings.Fields(args)...)
		wantCode := exitUsage
		if want == "is there" {
			wantCode = exitFailure
		}
		if code != wantCode || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
}
