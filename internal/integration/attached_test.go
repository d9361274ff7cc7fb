package integration_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

const victimSocket = "ZRLMPI_TEST_VICTIM_SOCKET"

// testPrograms maps environment variables to programs that the test binary runs instead of the tests. A program gets
// the variable's value.
var testPrograms = map[string]func(string){victimSocket: victim, earlierSocket: earlier}

// TestMain runs the tests, or a test program.
func TestMain(m *testing.M) {
	for variable, program := range testPrograms {
		if value := os.Getenv(variable); value != "" {
			program(value)
			return
		}
	}
	code := statetest.Run(m)
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}

// atEnd lists functions to call after all tests.
var atEnd []func()

// victim keeps operations of every kind in progress: waiting receives, a send without a receive, and a large send in
// transfer.
func victim(socket string) {
	ctx := context.Background()
	c, err := attach.Dial(ctx, socket, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	for tag := range 100 {
		c.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: make([]byte, 20_000)})
	}
	c.Start(mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Tag: 200, Buf: []byte("nobody receives it")})
	for i := 0; ; i++ {
		data := make([]byte, 16<<20>>(i%2)) // alternately too long for the arena, and short enough
		op, err := c.Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: 300, Buf: data})
		if err == nil {
			_, err = op.Await(ctx)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		if i == 0 {
			fmt.Println("under way")
		}
	}
}

// attachedWorld starts a daemon with three hosts, and returns its socket and a client for it.
func attachedWorld(t *testing.T) (socket string, client *control.Client) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.sock")
	cfg := newPlace(t).config(t, 3, fmt.Sprintf("control: {socket: %q}\ndefaults: {profile: extended}", path))
	startDaemon(t, cfg)
	client = control.NewClient(path)
	t.Cleanup(client.Close)
	return cfg.AttachSocket(), client
}

func dial(t *testing.T, socket string, rank int) *attach.Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := attach.Dial(ctx, socket, rank)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(ended()) })
	return c
}

// exchange sends a message in each direction between two clients.
func exchange(t *testing.T, a, b *attach.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, way := range [][2]*attach.Client{{a, b}, {b, a}} {
		data, buf := bytes.Repeat([]byte("intact "), 10_000), make([]byte, 70_000)
		r, err := way[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: way[0].Rank(), Tag: 5, Buf: buf})
		if err != nil {
			t.Fatal(err)
		}
		s, err := way[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: way[1].Rank(), Tag: 5, Buf: data})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Await(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Await(ctx); err != nil || !bytes.Equal(buf, data) {
			t.Fatalf("%v, intact: %v", err, bytes.Equal(buf, data))
		}
	}
}

func TestAttachedProgramIsKilled(t *testing.T) {
	socket, client := attachedWorld(t)
	one, two := dial(t, socket, 1), dial(t, socket, 2)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), victimSocket+"="+socket)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Once its first large message is received, it is sending the next one.
		sink := make([]byte, 16<<20)
		r, err := one.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: 300, Buf: sink})
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() || lines.Text() != "under way" {
			t.Fatalf("the program says %q", lines.Text())
		}
		if _, err := r.Await(ctx); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		// The daemon notices through the socket, with some delay.
		for s, err := client.Status(ctx); err != nil || len(s.Ranks[0].Attached) > 0; s, err = client.Status(ctx) {
			if err != nil {
				t.Fatal(err)
			}
		}
		exchange(t, one, two) // the other programs are unaffected
	}
	// The rank is free again, keeps no state of the dead program, and works.
	zero := dial(t, socket, 0)
	s, err := client.Status(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Ranks[0].Engine; e.Posted != 0 || len(s.Ranks[0].Attached) != 1 {
		t.Errorf("rank 0 has %d receives posted, and is attached to by %+v", e.Posted, s.Ranks[0].Attached)
	}
	exchange(t, zero, one)
}

// TestHostileProgram checks that garbage on the socket ends only the connection that sent it.
func TestHostileProgram(t *testing.T) {
	socket, _ := attachedWorld(t)
	one, two := dial(t, socket, 1), dial(t, socket, 2)
	for _, nonsense := range [][]byte{
		{}, {0}, bytes.Repeat([]byte{0xff}, 8), bytes.Repeat([]byte{0}, 4096), bytes.Repeat([]byte{0x96}, 1<<20),
		[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
	} {
		c, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		c.Write(nonsense)
		c.Close()
		exchange(t, one, two)
	}
}
