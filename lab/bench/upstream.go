package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// EnvUpstream is the environment variable that names a program: internal/integration/testdata/pingpong.cpp, built with
// upstream's CPU library.
const EnvUpstream = "ZRLMPI_UPSTREAM_PINGPONG"

// Upstream's library is measured as two sides: with both ranks on one processor, and on two. Its ranks wait in the
// kernel, which is fast if both run on one processor.
const (
	upstreamKey    = "upstream"
	upstreamOneKey = "upstream-one"
)

// upstreamTime limits how long upstream's library may take for a round. A limit is needed because the library blocks
// forever if a packet is lost at the wrong time.
const upstreamTime = 90 * time.Second

// upstreamBytes is the approximate number of bytes sent for each size. For long messages, the library takes 40 ns per
// byte.
const upstreamBytes = 40 << 20

// upstreamIPs are addresses that nothing else uses. They must be, because upstream's library uses port 2718, which it
// increments only if ranks share an address.
var upstreamIPs = []string{"127.0.76.1", "127.0.76.2"}

func upstreamFamily() family {
	return family{keys: []string{upstreamKey, upstreamOneKey}, find: findUpstream}
}

func findUpstream(_ context.Context, _ string, _ func(string) bool) (found []side, missing []string, err error) {
	path := os.Getenv(EnvUpstream)
	if path == "" {
		return nil, []string{fmt.Sprintf("upstream's CPU library is not measured: %s is not set", EnvUpstream)}, nil
	}
	one := side{Side: Side{Key: upstreamOneKey, Name: "upstream's CPU library, 1 processor"}}
	two := side{Side: Side{Key: upstreamKey, Name: "upstream's CPU library, 2 processors"}}
	for _, s := range []*side{&two, &one} {
		s.Kind, s.Group, s.Version, s.Command = Upstream, Network, "ZRLMPI", "pingpong udp IP 2 RANK IP STEPS"
		s.optional = true
		s.steps = upstreamSteps
		processors := [2]int{0, 1}
		if s == &one {
			processors = [2]int{0, 0}
		}
		s.run = func(ctx context.Context, j job, out io.Writer) error {
			return runUpstream(ctx, path, processors, j, out)
		}
		found = append(found, *s)
	}
	if runtime.NumCPU() < 2 {
		found = found[1:]
	}
	return found, nil, nil
}

// upstreamSteps returns the given steps with fewer iterations for long messages.
func upstreamSteps(w *workload, steps []step) []step {
	if w.name != "pingpong" {
		return nil
	}
	some := slices.Clone(steps)
	for i, s := range some {
		some[i].iterations = min(s.iterations, max(upstreamBytes/max(s.n, 1), 1))
	}
	return some
}

// runUpstream runs both ranks, each bound to a processor. It starts rank 1 first, as rank 0 sends immediately.
func runUpstream(ctx context.Context, path string, processors [2]int, j job, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, upstreamTime)
	defer cancel()
	var said tail
	group, ctx := errgroup.WithContext(ctx)
	for _, rank := range []int{1, 0} {
		cmd := command(ctx, path, "udp", upstreamIPs[rank], "2", strconv.Itoa(rank), upstreamIPs[1-rank],
			strings.Join(stepArgs(j.steps), ","))
		if rank == 0 {
			cmd.Stdout = io.MultiWriter(out, &said)
		}
		if err := startOn(processors[rank], cmd); err != nil {
			cancel()
			// The other rank may have failed first, and may thereby have caused this failure.
			return errors.Join(group.Wait(), err)
		}
		group.Go(cmd.wait)
	}
	err := group.Wait()
	if err != nil && len(said.text) > 0 {
		err = fmt.Errorf("%w\n%s", err, bytes.TrimSpace(said.text))
	}
	return err
}
