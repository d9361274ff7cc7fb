package goodput

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// worlds opens both ranks of a flow in this process.
func worlds(t *testing.T) (both [2]*mpi.Comm) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "c.yaml")
	if err := bench.Configure(file, "extended", "udp", "", 2); err != nil {
		t.Fatal(err)
	}
	for rank := range both {
		dev, err := node.OpenFile(file, rank)
		if err != nil {
			t.Fatal(err)
		}
		if both[rank], err = mpi.New(dev); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			// The other rank may have exited, so that messages are never acknowledged.
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			_ = both[rank].Finalize(ctx)
		})
	}
	return both
}

// TestMessages checks that a flow with a limit receives everything, and that a flow without a limit counts bytes until
// it is stopped.
func TestMessages(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  job
	}{
		{"with an end", job{Time: time.Minute, Bytes: quickBytes}},
		{"without", job{Time: 100 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both := worlds(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			sent := make(chan error, 1)
			go func() { sent <- sendMessages(ctx, both[0], &counter{job: &tt.job, stream: newStream()}) }()
			c := counter{job: &tt.job, stream: newStream()}
			if err := receiveMessages(ctx, both[1], &c); err != nil {
				t.Fatal(err)
			}
			want := error(nil)
			if tt.job.Bytes == 0 {
				cancel()
				want = context.Canceled
			}
			if err := <-sent; !errors.Is(err, want) {
				t.Errorf("the sender: %v", err)
			}
			if f := c.result(); f.Bytes == 0 || f.Bytes < tt.job.Bytes || f.Seconds <= 0 {
				t.Errorf("%+v", f)
			}
		})
	}
}

// TestWrongByte checks that a corrupt byte ends the measurement.
func TestWrongByte(t *testing.T) {
	both := worlds(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	j := job{Time: time.Minute, Bytes: quickBytes}
	wrong := newStream()
	wrong[messageLen+5] ^= 1
	sent := make(chan error, 1)
	go func() { sent <- sendMessages(ctx, both[0], &counter{job: &j, stream: wrong}) }()
	err := receiveMessages(ctx, both[1], &counter{job: &j, stream: newStream()})
	if err == nil || !strings.HasPrefix(err.Error(), "byte 131077 is ") {
		t.Error(err)
	}
	cancel()
	<-sent
}

// TestRunFlow checks that RunFlow returns an error if the job is invalid.
func TestRunFlow(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{nil, "0 arguments instead of one"},
		{[]string{"{"}, "unexpected end of JSON input"},
		{[]string{`{"Side": "extended-udp", "Rank": 1, "Config": "/does/not/exist"}`}, "extended-udp, rank 1: "},
	} {
		if err := RunFlow(t.Context(), tt.args, strings.NewReader(""), nil); err == nil ||
			!strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}
