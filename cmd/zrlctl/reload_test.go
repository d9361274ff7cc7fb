package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// reloader is a daemon that supports only the reload request.
type reloader struct {
	control.Backend
	answer control.ReloadResult
	err    error
}

func (r *reloader) Authorize(string, wire.Credentials, error) error { return nil }

func (r *reloader) Handle(context.Context, query.Request) query.Response {
	return query.Response{Document: r.answer, Err: r.err}
}

func TestReload(t *testing.T) {
	r := new(reloader)
	socket := filepath.Join(t.TempDir(), "c.sock")
	l, err := control.Listen(socket, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- control.NewServer(r, log.New(io.Discard, "", 0)).Serve(ctx, l) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	rank := 3
	refused := control.Errorf(control.Refused, "refused:\n  a: 1 -> 2")
	refused.Restart = []string{"a: 1 -> 2"}
	for _, tt := range []struct {
		name           string
		answer         control.ReloadResult
		err            error
		code           int
		stdout, stderr string
	}{
		{name: "nothing", answer: control.ReloadResult{Config: "z.yaml"}, stdout: "z.yaml: no changes\n"},
		{name: "changes", answer: control.ReloadResult{Config: "z.yaml", Changes: []control.Change{
			{Key: "a", From: "1", To: "2", Text: "a: 1 -> 2"}, {Rank: &rank, Key: "b", Text: "rank 3: b: 3 -> 4"}}},
			stdout: "a: 1 -> 2\nrank 3: b: 3 -> 4\n"},
		{name: "refused", err: refused, code: exitFailure, stderr: "zrlctl: refused:\n  a: 1 -> 2\n"},
	} {
		r.answer, r.err = tt.answer, tt.err
		code, stdout, stderr := zrlctl(t, "", "--socket", socket, "reload")
		if code != tt.code || stdout != tt.stdout || stderr != tt.stderr {
			t.Errorf("%s: exit code %d\n%s%s", tt.name, code, stdout, stderr)
		}
		code, stdout, _ = zrlctl(t, "", "--socket", socket, "--json", "reload")
		var got struct {
			control.ReloadResult
			Kind    control.Kind `json:"kind"`
			Restart []string     `json:"restart"`
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != tt.code ||
			len(got.Changes) != len(tt.answer.Changes) {
			t.Errorf("%s: exit code %d, %v\n%s", tt.name, code, err, stdout)
		}
		if tt.err != nil && (got.Kind != control.Refused || !slices.Equal(got.Restart, refused.Restart)) {
			t.Errorf("%s: %s", tt.name, stdout)
		}
	}
	r.answer, r.err = control.ReloadResult{Config: "z.yaml"}, nil
	for text, want := range map[string]int{
		fmt.Sprintf("control: {socket: %q}\n", socket): exitOK, "control: {socket: \"\"}\n": exitFailure,
	} {
		file := filepath.Join(t.TempDir(), "z.yaml")
		if err := os.WriteFile(file, []byte(text+"ranks: [{rank: 0, address: 127.0.0.1, run: host}]\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
		if code, stdout, stderr := zrlctl(t, "", "reload", "--config", file); code != want {
			t.Errorf("%s: exit code %d, want %d: %s%s", text, code, want, stdout, stderr)
		}
	}
	if code, _, _ := zrlctl(t, "", "reload", "now"); code != exitUsage {
		t.Errorf("with an argument: exit code %d", code)
	}
}
