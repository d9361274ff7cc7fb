package main

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/attach"
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// reloader is a daemon of which only the reload is asked.
type reloader struct {
	control.Backend
	answer control.Reloaded
	err    error
}

func (r *reloader) Authorize(string, attach.Credentials, error) error { return nil }

func (r *reloader) Reread() (control.Reloaded, error) { return r.answer, r.err }

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
		answer         control.Reloaded
		err            error
		code           int
		stdout, stderr string
	}{
		{name: "nothing", answer: control.Reloaded{Config: "z.yaml"}, stdout: "z.yaml: no changes\n"},
		{name: "changes", answer: control.Reloaded{Config: "z.yaml", Changes: []control.Change{
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
			control.Reloaded
			Kind    control.Kind `json:"kind"`
			Restart []string     `json:"restart"`
		}
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != tt.code || len(got.Changes) != len(tt.answer.Changes) {
			t.Errorf("%s: exit code %d, %v\n%s", tt.name, code, err, stdout)
		}
		if tt.err != nil && (got.Kind != control.Refused || !slices.Equal(got.Restart, refused.Restart)) {
			t.Errorf("%s: %s", tt.name, stdout)
		}
	}
	if code, _, _ := zrlctl(t, "", "reload", "now"); code != exitUsage {
		t.Errorf("with an argument: exit code %d", code)
	}
}
