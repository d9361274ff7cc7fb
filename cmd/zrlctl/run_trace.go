package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

// forceUDP replaces shared memory with UDP, so that all messages of the job's ranks can be recorded.
func (c *jobCluster) forceUDP() {
	if c.cfg.Defaults.Transport != nil {
		return
	}
	c.file = "" // the processes need this configuration, not the user's
	c.cfg.Ranks = c.cfg.RanksWithLinks(c.ranks, func(l *config.LinkOptions) {
		if l.Transport == nil {
			l.Transport = new(config.TransportUDP)
		}
	})
}

// drainDelay is the time to wait for the last packets after the end of a job.
const drainDelay = 200 * time.Millisecond

// traceRecorder records the packets between the ranks of a job.
type traceRecorder struct {
	file    *os.File
	ranks   map[netip.AddrPort]int
	stop    context.CancelFunc
	sources []capture.Source
	readers sync.WaitGroup
	// standIns is the daemon that runs the job's stand-ins. The recorder reads the current simulation cycles from it.
	standIns atomic.Pointer[daemon.Daemon]

	mu     sync.Mutex
	writer *pcapng.Writer
	err    error
}

// startTrace starts to record packets on all interfaces of this host.
func (c *jobCluster) startTrace(ctx context.Context, path string) (*traceRecorder, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	recorder := &traceRecorder{stop: stop, ranks: map[netip.AddrPort]int{}}
	var options capture.Options
	for i := range c.cfg.Ranks {
		addr := c.cfg.Ranks[i].Address.AddrPort
		recorder.ranks[addr] = c.cfg.Ranks[i].Rank
		if !slices.Contains(options.Ports, addr.Port()) {
			options.Ports = append(options.Ports, addr.Port())
		}
	}
	interfaces, err := net.Interfaces()
	for _, i := range interfaces {
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		var source capture.Source
		if source, err = options.OpenLive(ctx, i.Name); err == nil {
			recorder.sources = append(recorder.sources, source)
		}
	}
	if err == nil {
		recorder.file, err = privatedir.Output(path, 0o666)
	}
	if err == nil {
		recorder.writer = pcapng.NewWriter(recorder.file, pcapng.WriterOptions{})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--trace: %w", err), recorder.close())
	}
	for _, source := range recorder.sources {
		recorder.readers.Go(func() { recorder.readSource(source) })
	}
	return recorder, nil
}

func (t *traceRecorder) readSource(source capture.Source) {
	var unit pcapng.Unit
	for {
		err := source.Next(&unit)
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			src, fromRank := t.ranks[unit.Src]
			dst, toRank := t.ranks[unit.Dst]
			if !fromRank || !toRank {
				continue // not a packet of the job
			}
			unit.Comments = t.appendCycles(unit.Comments[:0], unit.Time, src, dst)
		}
		t.mu.Lock()
		if err == nil {
			err = t.writer.WriteUnit(&unit)
		}
		if t.err == nil {
			t.err = err
		}
		t.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// appendCycles appends a comment for each given rank whose role is simulated. The comment contains the current
// simulation cycle.
func (t *traceRecorder) appendCycles(comments []string, at time.Time, ranks ...int) []string {
	d := t.standIns.Load()
	if d == nil {
		return comments
	}
	for _, rank := range ranks {
		if c, ok := d.CycleAt(rank, at); ok {
			comments = append(comments, c.String())
		}
	}
	return comments
}

// finish completes the recording after the job ended.
func (t *traceRecorder) finish() error {
	time.Sleep(drainDelay)
	t.stop()
	t.readers.Wait()
	lost := int64(0)
	for _, source := range t.sources {
		lost += source.Stats().Skipped[capture.SkipKernelDrops]
	}
	errs := []error{t.err, t.writer.Flush()}
	if lost > 0 {
		errs = append(errs, fmt.Errorf("%d packets are missing because they arrived faster than they could be written",
			lost))
	}
	if err := errors.Join(append(errs, t.close())...); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}

// close releases all resources.
func (t *traceRecorder) close() error {
	t.stop()
	for _, source := range t.sources {
		source.Close()
	}
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
