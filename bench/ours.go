package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// link is a way in which two ranks of zrlmpid talk to each other.
type link struct{ key, name, profile, transport string }

var (
	extendedUDP = link{"zrlmpid-udp", "zrlmpid, extended, UDP", "extended", "udp"}
	extendedTCP = link{"zrlmpid-tcp", "zrlmpid, extended, TCP", "extended", "tcp"}
	cloudFPGA   = link{"zrlmpid-cloudfpga", "zrlmpid, cloudfpga, UDP", "cloudfpga", "udp"}
)

// killTime is how long a program may take to end when it is asked to.
const killTime = 5 * time.Second

// side is how zrlmpid takes part by this link.
func (l link) side(w *workload, dir, profile string) (side, error) {
	self, err := os.Executable()
	if err != nil {
		return side{}, err
	}
	s := side{Key: l.key, Name: l.name, Command: fmt.Sprintf("two processes, node.Open, profile: %s, transport: %s", l.profile, l.transport)}
	s.run = func(ctx context.Context, steps []step) ([]byte, error) {
		config := filepath.Join(dir, l.key+".yaml")
		if err := l.configure(config); err != nil {
			return nil, err
		}
		var out [2]bytes.Buffer
		group, ctx := errgroup.WithContext(ctx)
		for rank := range out {
			args := []string{rankCommand, "-config", config, "-rank", strconv.Itoa(rank), "-workload", w.name}
			if profile != "" {
				args = append(args, "-cpuprofile", fmt.Sprintf("%s.%s.%d.pprof", profile, l.key, rank))
			}
			cmd := command(ctx, self, append(args, texts(steps)...)...)
			cmd.Stdout = &out[rank]
			group.Go(func() error { return runCommand(cmd) })
		}
		err := group.Wait()
		return out[0].Bytes(), err
	}
	return s, nil
}

// configure writes a configuration of two ranks on ports that are free.
func (l link) configure(file string) error {
	text := "ranks:\n"
	for rank, ip := range loopback() {
		port, err := freePort(l.transport, ip)
		if err != nil {
			return err
		}
		text += fmt.Sprintf("  - {rank: %d, address: \"%s:%d\", run: host}\n", rank, ip, port)
	}
	text += fmt.Sprintf("defaults: {profile: %s, transport: %s}\n", l.profile, l.transport)
	return os.WriteFile(file, []byte(text), 0o600)
}

var pairs atomic.Uint32

// loopback returns two addresses of this machine that no other pair of ranks has,
// so that a port that is free there stays so until the rank binds it.
func loopback() [2]string {
	n := uint32(os.Getpid())<<3 + pairs.Add(1)
	at := func(last uint32) string { return fmt.Sprintf("127.%d.%d.%d", 64|n>>15&63, n>>7&255, n&127<<1|last) }
	return [2]string{at(0), at(1)}
}

func freePort(transport, ip string) (int, error) {
	if transport == "tcp" {
		l, err := net.Listen("tcp4", ip+":0")
		if err != nil {
			return 0, err
		}
		defer l.Close()
		return l.Addr().(*net.TCPAddr).Port, nil
	}
	c, err := net.ListenPacket("udp4", ip+":0")
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).Port, nil
}

// command is one that is asked to end before it is killed, so that a launcher can
// end its ranks.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = killTime
	return cmd
}

// runCommand runs a command. The error has what it said on its standard error.
func runCommand(cmd *exec.Cmd) error {
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd, err, bytes.TrimSpace(said.Bytes()))
	}
	return nil
}
