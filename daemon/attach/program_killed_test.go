package attach

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

const (
	childSocket = "ZRLMPID_TEST_ATTACH_SOCKET"
	childServer = "ZRLMPID_TEST_ATTACH_SERVE"
	childEcho   = "ZRLMPID_TEST_ATTACH_ECHO"
)

// TestMain turns the test binary into a program that attaches, for tests that kill it or run it as another
// user. For benchmarks, it turns the binary into a daemon or an echo program.
func TestMain(m *testing.M) {
	if socket := os.Getenv(childEcho); socket != "" {
		echo(socket)
		return
	}
	if socket := os.Getenv(childServer); socket != "" {
		childDaemon(socket)
		return
	}
	if socket := os.Getenv(childSocket); socket != "" {
		child(socket)
		return
	}
	os.Exit(m.Run())
}

// child attaches to the rank given as its argument, or to rank 0, and prints the result. It then keeps
// operations of all kinds in progress until it is killed.
func child(socket string) {
	rank := 0
	if len(os.Args) > 1 {
		rank, _ = strconv.Atoi(os.Args[1])
	}
	c, err := client.Dial(context.Background(), socket, rank)
	if err != nil {
		fmt.Println(err)
		return
	}
	for tag := range 100 {
		c.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: make([]byte, 20_000)})
	}
	c.Start(mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Tag: 200, Buf: []byte("nobody receives it")})
	go c.Probe(context.Background(), mpe.Match{Source: 1, Tag: 999}, true)
	for tag, of := range []coll.Collective{coll.Barrier, coll.Gather} { // no other rank makes these calls
		c.StartCollective(&collective.Operation{Call: coll.Call{Collective: of, Ranks: 3}, Members: []int{0, 1, 2},
			Comm: 1, Tag: tag + 1})
	}
	fmt.Println("attached")
	// Send large messages one after the other, so that the program is killed in the middle of one.
	data := make([]byte, 32<<20)
	for {
		op, err := c.Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: 300, Buf: data})
		if err == nil {
			_, err = op.Await(context.Background())
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
}

// startChild runs cmd and returns the first line that it prints.
func startChild(t *testing.T, cmd *exec.Cmd, socket string) string {
	t.Helper()
	cmd.Env = append(os.Environ(), childSocket+"="+socket)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	sendQueue, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(sendQueue)
}

func TestKilled(t *testing.T) {
	leaksNothing(t)
	h := serve(t, newWorld(3, 0, 2), Options{})
	other := h.dial(t, 2)
	pending := attachtest.Recv(t, other, 1, 7, make([]byte, 4))
	for range 3 {
		cmd := exec.Command(os.Args[0])
		if sendQueue := startChild(t, cmd, h.socket); sendQueue != "attached" {
			t.Fatal(sendQueue)
		}
		_, err := client.Dial(attachtest.TestContext(t), h.socket, 0)
		if err == nil || !strings.Contains(err.Error(), "pid "+strconv.Itoa(cmd.Process.Pid)) {
			t.Errorf("while it has the rank: %v", err)
		}
		attachtest.WaitUntil(t, "a large message is being sent", func() bool {
			list := h.server.AttachedPrograms()
			return list[0].Operations > 103 && list[0].Bytes > 32<<20
		})
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		attachtest.WaitUntil(t, "the rank is free", func() bool { return len(h.server.AttachedPrograms()) == 1 })
		if n := h.w.openOps(0); n != 0 {
			t.Errorf("%d operations are left", n)
		}
		h.w.mu.Lock()
		for _, msg := range h.w.ranks[1].sent {
			if msg.op.Tag == 300 && len(msg.data) != 32<<20 {
				t.Errorf("a part of %d bytes was sent", len(msg.data))
			}
		}
		h.w.ranks[1].sent = nil
		h.w.mu.Unlock()
	}
	attachtest.Wait(t, attachtest.Send(t, other, 1, 0, []byte("well")))
	if _, ended, _ := pending.Test(); ended {
		t.Error("another program's receive is done")
	}
	c := h.dial(t, 0)
	attachtest.Wait(t, attachtest.Send(t, c, 2, 0, []byte("well")))
	attachtest.Wait(t, attachtest.Recv(t, other, 0, 0, make([]byte, 4)))
}
