package attach

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// TestClientInC runs a program that was written from docs/attach.md alone. The program attaches, sends and
// receives through rings, with and without payload in the arena, and detaches. Long messages make it wait for
// space.
func TestClientInC(t *testing.T) {
	cc := needs.Program(t, "a client in C", "cc", "gcc libc6-dev")
	program := filepath.Join(t.TempDir(), "client")
	if out, err := exec.Command(cc, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-o", program,
		"testdata/client.c").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	h, arena := serve(t, newWorld(2, 0, 1), Options{}), []string{"arena"}
	other := h.dial(t, 1)
	for _, tt := range []struct {
		bytes, times int
		arena        []string
	}{{0, 3, nil}, {4, 2000, nil}, {100_000, 50, nil}, {5*wire.RingLen + 3, 3, nil}, {0, 3, arena},
		{100_000, 50, arena}, {wire.ArenaLen / 2, 3, arena}, {wire.ArenaLen/2 + 1, 3, arena}} {
		echoed := make(chan error, 1)
		go func() { echoed <- sendBack(other, tt.bytes, tt.times) }()
		cmd := exec.CommandContext(attachtest.TestContext(t), program,
			append([]string{h.socket, "0", "1", fmt.Sprint(tt.bytes), fmt.Sprint(tt.times)}, tt.arena...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%d messages of %d bytes: %v\n%s", tt.times, tt.bytes, err, out)
		}
		if err := <-echoed; err != nil {
			t.Fatal(err)
		}
		attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
	}
}

// sendBack receives messages from rank 0 and sends them back.
func sendBack(d mpe.Device, n, times int) error {
	buf := make([]byte, n)
	for range times {
		for _, kind := range []mpe.OpKind{mpe.OpRecv, mpe.OpSend} {
			op, err := d.Start(mpe.Operation{Kind: kind, Buf: buf, AnyDatatype: kind == mpe.OpRecv})
			if err == nil {
				_, err = op.Await(context.Background())
			}
			if err != nil {
				return err
			}
			op.Free()
		}
	}
	return nil
}
