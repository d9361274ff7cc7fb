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
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/config"
)

// overUDP has all messages of the ranks of a job in packets that can be recorded: those that would go through shared
// memory go over UDP.
func (c *jobCluster) overUDP() {
	if c.cfg.Defaults.Transport != nil {
		return
	}
	c.file = "" // the processes need this configuration, and not that of the user
	c.cfg.Ranks = c.cfg.WithLinks(c.ranks, func(l *config.LinkOptions) {
		if l.Transport == nil {
			l.Transport = new(config.TransportUDP)
		}
	})
}

// drainTime is how long packets of a job may take from the kernel to its trace after its end.
const drainTime = 200 * time.Millisecond

// trace records the packets between the ranks of a job.
type trace struct {
	file    *os.File
	stop    context.CancelFunc
	sources []capture.Source
	readers sync.WaitGroup

	mu     sync.Mutex
	writer *capture.Writer
	err    error
}

// startTrace begins a recording of all interfaces of this host.
func (c *jobCluster) startTrace(ctx context.Context, path string) (*trace, error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	t := &trace{stop: stop}
	addrs := map[netip.AddrPort]bool{}
	var o capture.Options
	for i := range c.cfg.Ranks {
		addr := c.cfg.Ranks[i].Address.AddrPort
		addrs[addr] = true
		if !slices.Contains(o.Ports, addr.Port()) {
			o.Ports = append(o.Ports, addr.Port())
		}
	}
	interfaces, err := net.Interfaces()
	for _, i := range interfaces {
		if err != nil || i.Flags&net.FlagUp == 0 {
			continue
		}
		var source capture.Source
		if source, err = o.OpenLive(ctx, i.Name); err == nil {
			t.sources = append(t.sources, source)
		}
	}
	if err == nil {
		t.file, err = os.Create(path)
	}
	if err == nil {
		t.writer = capture.NewWriter(t.file, capture.WriterOptions{})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--trace: %w", err), t.close())
	}
	for _, source := range t.sources {
		t.readers.Go(func() { t.read(source, addrs) })
	}
	return t, nil
}

func (t *trace) read(source capture.Source, addrs map[netip.AddrPort]bool) {
	var u capture.Unit
	for {
		err := source.Next(&u)
		switch {
		case errors.Is(err, io.EOF):
			return
		case err == nil && (!addrs[u.Src] || !addrs[u.Dst]):
			continue // it is of something else
		}
		t.mu.Lock()
		if err == nil {
			err = t.writer.Unit(&u)
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

// end completes the recording after the end of the job.
func (t *trace) end() error {
	time.Sleep(drainTime)
	t.stop()
	t.readers.Wait()
	lost := int64(0)
	for _, source := range t.sources {
		lost += source.Stats().Skipped[capture.SkipKernelDrops]
	}
	errs := []error{t.err, t.writer.Flush()}
	if lost > 0 {
		errs = append(errs, fmt.Errorf("%d packets are not in it, as they came faster than they could be written", lost))
	}
	if err := errors.Join(append(errs, t.close())...); err != nil {
		return fmt.Errorf("--trace: %w", err)
	}
	return nil
}

// close releases what is open.
func (t *trace) close() error {
	t.stop()
	for _, source := range t.sources {
		source.Close()
	}
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
