package main

import (
	"cmp"
	"flag"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var floodMessages = flag.Int("flood", 0,
	"messages of TestFlood that wait for receives; 0: 100,000, or 10,000 if each takes a round trip")

// TestFlood checks that a receive gets its message while 100,000 others from the same sender are waiting for receives,
// which then get theirs in order. If the limit is lower, the sender's call fails with MPI_ERR_NO_MEM, and all accepted
// messages and a later one are received. This holds for every kind of send and receive.
func TestFlood(t *testing.T) {
	dir := builtLibrary(t)
	defer func(before time.Duration) { jobTime = before }(jobTime)
	jobTime += time.Duration(*floodMessages) * time.Millisecond
	for _, abi := range []string{"standard", "mpich"} {
		program := compile(t, dir, abi, "flood.c")
		for _, transport := range []string{"shm", "udp", "tcp"} {
			announced := 10_000
			if transport == "shm" {
				announced = 100_000
			}
			for _, mode := range []struct {
				args  []any
				bound int    // 0: the default
				abi   string // run only with this one, unless ""
			}{
				{[]any{"flood", cmp.Or(*floodMessages, 100_000), "send", 4, "measure"}, 0, ""},
				{[]any{"flood", cmp.Or(*floodMessages, announced), "send", 64, "measure"}, 0, "standard"},
				{[]any{"flood", cmp.Or(*floodMessages, 10_000), "ssend", 4, "measure"}, 0, "standard"},
				{[]any{"bound", 20_000}, 20_000, ""},
				{[]any{"beyond", 1000}, 1000, ""},
			} {
				if mode.abi != "" && mode.abi != abi {
					continue
				}
				job, limit, env := []string{"run", "-n", "2"}, "", []string(nil)
				if mode.bound > 0 {
					limit, env = fmt.Sprintf("limits: {unexpected: %d}\n", mode.bound),
						[]string{fmt.Sprintf("ZRLMPI_UNEXPECTED=%d", mode.bound)}
				}
				if transport != "shm" {
					job = []string{"run", "--config", hostsOver(t, transport, 2, limit)}
				}
				job = append(job, program)
				for _, arg := range mode.args {
					job = append(job, fmt.Sprint(arg))
				}
				out, err := runWithLibrary(t, dir, env, filepath.Join(dir, "zrlctl"), job...)
				if err != nil || strings.Count(out, " of 2: ok\n") != 2 {
					t.Errorf("%v, %s, %s: %v\n%s", mode.args, transport, abi, err, out)
				}
				t.Logf("%v, %s, %s\n%s", mode.args, transport, abi, out)
			}
		}
	}
}
