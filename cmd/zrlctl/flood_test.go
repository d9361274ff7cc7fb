package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
)

var floodMessages = flag.Int("flood", 0,
	"messages of TestFlood that wait for receives; 0: 100,000, or 20,000 if each takes a round trip over sockets")

const (
	floodTag = 7
	afterTag = 8
)

// flood is the program of TestFlood. Its arguments are a mode, the number of messages, and the number of words of each.
// Rank 0 starts the sends and then sends a message with another tag, which rank 1 receives first. In mode bound, rank 0
// starts sends until one is rejected, and later does so again.
func flood(ctx context.Context, world *mpi.Comm) error {
	mode := os.Args[2]
	n, _ := strconv.Atoi(os.Args[3])
	words, _ := strconv.Atoi(os.Args[4])
	values := make([]int32, 2*n+words)
	for i := range values {
		values[i] = int32(i)
	}
	requests := make([]mpi.Request, 0, 2*n)
	if err := mpi.Barrier(ctx, world); err != nil {
		return err
	}
	before := resident()
	for round := range 2 {
		count := make([]int32, 1)
		if world.Rank() == 0 {
			var err error
			if requests, err = startFlood(world, mode, n, words, values, requests[:0]); err != nil {
				return err
			}
			count[0] = int32(len(requests))
		}
		if err := mpi.Bcast(ctx, world, count, 0); err != nil { // collective calls still work
			return err
		}
		got := []int32{int32(round)}
		if world.Rank() == 0 {
			if mode != "bound" {
				if err := mpi.Send(ctx, world, got, 1, afterTag); err != nil {
					return err
				}
				fmt.Printf("rank 0: %.0f B a message\n", (resident()-before)/float64(n))
			}
			if err := mpi.Waitall(ctx, requests, nil); err != nil {
				return err
			}
		} else {
			if mode != "bound" {
				if _, err := mpi.Recv(ctx, world, got, 0, afterTag); err != nil || got[0] != int32(round) {
					return fmt.Errorf("the later message is %d: %w", got[0], err)
				}
				fmt.Printf("rank 1: %.0f B a message\n", (resident()-before)/float64(n))
			}
			if err := drainFlood(ctx, world, int(count[0]), words); err != nil {
				return err
			}
		}
		if mode != "bound" {
			return nil
		}
		if err := mpi.Barrier(ctx, world); err != nil {
			return err
		}
	}
	return nil
}

// startFlood starts n sends. In mode bound, it starts sends until one is rejected for the expected reason.
func startFlood(world *mpi.Comm, mode string, n, words int, values []int32, requests []mpi.Request) ([]mpi.Request,
	error) {
	start := mpi.Isend[int32]
	if mode == "ssend" {
		start = mpi.Issend[int32]
	}
	most := n
	if mode == "bound" {
		most = 2 * n
	}
	for i := range most {
		r, err := start(world, values[i:i+words], 1, floodTag)
		var full *mpe.PeerFullError
		switch {
		case err == nil:
			requests = append(requests, r)
			continue
		case mode != "bound", mpi.ClassOf(err) != mpi.ErrNoMem, !errors.As(err, &full), full.Local != 0, full.Peer != 1:
			return nil, fmt.Errorf("send %d is refused: %w", i, err)
		}
		break
	}
	if mode == "bound" && (len(requests) < n/2 || len(requests) > n) {
		return nil, fmt.Errorf("%d sends were accepted, of %d that may wait", len(requests), n)
	}
	return requests, nil
}

// drainFlood receives all n messages and checks their order.
func drainFlood(ctx context.Context, world *mpi.Comm, n, words int) error {
	got := make([]int32, words)
	for i := range n {
		if _, err := mpi.Recv(ctx, world, got, 0, floodTag); err != nil {
			return err
		}
		for k, v := range got {
			if v != int32(i+k) {
				return fmt.Errorf("word %d of message %d is %d", k, i, v)
			}
		}
	}
	return nil
}

// resident returns the resident memory of the process in bytes, or 0 if it is unknown.
func resident() float64 {
	text, _ := os.ReadFile("/proc/self/statm")
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize())
}

// TestFlood: a receive in a Go program gets its message even if many other messages from the same sender have no
// matching receive yet. Those messages are then received in order. If their number is limited, the sender's call fails
// with the documented error, all accepted messages are received, and after that sends are accepted again.
func TestFlood(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range []string{"shm", "udp", "tcp"} {
		messages, announced := cmp.Or(*floodMessages, 100_000), cmp.Or(*floodMessages, 20_000)
		switch {
		case race.Enabled:
			messages, announced = 5000, 5000
		case transport == "shm":
			announced = messages
		}
		for _, mode := range []struct {
			name            string
			messages, words int
		}{{"send", messages, 1}, {"send", announced, 16}, {"ssend", announced, 1}, {"bound", 5000, 1}} {
			t.Run(fmt.Sprintf("%s %s %d", transport, mode.name, 4*mode.words), func(t *testing.T) {
				limit := 2 * messages
				if mode.name == "bound" {
					limit = mode.messages
				}
				t.Setenv("ZRLMPI_UNEXPECTED", fmt.Sprint(limit))
				args := []string{"run", "-n", "2"}
				if transport != "shm" {
					file := filepath.Join(t.TempDir(), "flood.yaml")
					network := loopback.Network(t)
					text := fmt.Sprintf("limits: {unexpected: %d}\ndefaults: {profile: extended, transport: "+
						"%s}\nranks:\n"+
						"  - {rank: 0, address: %s1, run: host}\n  - {rank: 1, address: %[3]s2, run: host}\n", limit,
						transport, network)
					if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
					args = []string{"run", "--config", file}
				}
				args = append(args, self, "flood", mode.name, fmt.Sprint(mode.messages), fmt.Sprint(mode.words))
				ctx, cancel := context.WithTimeout(t.Context(),
					9*testTimeout+time.Duration(mode.messages)*time.Millisecond)
				defer cancel()
				var stdout, stderr bytes.Buffer
				if code := run(ctx, args, strings.NewReader(""), &stdout, &stderr); code != 0 {
					t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
				}
				t.Log(strings.ReplaceAll(stdout.String(), "\n", "; "))
				// A message needs 130 to 150 bytes, and the process about 15 MB once. Without sockets, a message needs
				// less.
				most := 500
				if transport == "shm" {
					most = 300
				}
				for line := range strings.Lines(stdout.String()) {
					var rank, bytes int
					if n, _ := fmt.Sscanf(line, "rank %d: %d B", &rank, &bytes); n == 2 && mode.messages >= 100_000 &&
						bytes > most {
						t.Errorf("a message takes %d bytes at rank %d, and not %d at most", bytes, rank, most)
					}
				}
			})
		}
	}
}
