package path

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// realtimePriority is the priority of the emulator, which must run as soon as a packet is due, even while ranks poll on
// every processor.
const realtimePriority = 1

// Path is an emulated path. Its two ends are network namespaces.
type Path struct {
	ends        [2]*namespace
	emulator    *exec.Cmd
	stdin       io.Closer
	stdout      *bufio.Reader
	errorOutput bytes.Buffer
}

// Open creates a path. It requires root and the program ip from iproute2. The running program must pass the arguments
// after EmulatorCommand to RunEmulator.
func Open(config Config) (*Path, error) {
	if err := config.Check(); err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	var path Path
	for i := range path.ends {
		n, err := newNamespace(endAddrs[i], &config)
		if err != nil {
			path.closeEnds()
			return nil, fmt.Errorf("path: %w", err)
		}
		path.ends[i] = n
	}
	if err := path.startEmulator(config); err != nil {
		path.closeEnds()
		return nil, fmt.Errorf("path: %w", err)
	}
	return &path, nil
}

// startEmulator starts the emulator and waits until it is ready.
func (p *Path) startEmulator(c Config) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	p.emulator = exec.Command(self, EmulatorCommand, string(text))
	p.emulator.ExtraFiles = []*os.File{p.ends[0].tun, p.ends[1].tun}
	p.emulator.Stderr = &p.errorOutput
	if p.stdin, err = p.emulator.StdinPipe(); err != nil {
		return err
	}
	stdout, err := p.emulator.StdoutPipe()
	if err != nil {
		return err
	}
	p.stdout = bufio.NewReader(stdout)
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the process inherits the thread's priority, and the thread then exits
		err := unix.SchedSetAttr(0,
			&unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: realtimePriority}, 0)
		if err != nil {
			started <- fmt.Errorf("cannot get a real-time priority: %w; run as root, with CAP_SYS_NICE", err)
			return
		}
		started <- p.emulator.Start()
	}()
	if err := <-started; err != nil {
		return err
	}
	if line, err := p.stdout.ReadString('\n'); line != readyLine {
		p.stdin.Close()
		return fmt.Errorf("the emulator does not start: %w: %s", errors.Join(err, p.emulator.Wait()),
			bytes.TrimSpace(p.errorOutput.Bytes()))
	}
	return nil
}

// Do runs f on a thread in the network namespace of an end, and waits until f returns. Sockets and processes created by
// f belong to that namespace; goroutines started by f do not run in it.
func (p *Path) Do(end int, f func()) { p.ends[end].Do(f) }

// Close removes the path and returns its Use. It returns an error if the emulator failed, or if it lost packets that it
// should have delivered.
func (p *Path) Close() (Use, error) {
	var use Use
	p.stdin.Close()
	err := json.NewDecoder(p.stdout).Decode(&use)
	if failed := p.emulator.Wait(); failed != nil || err != nil {
		err = fmt.Errorf("path: the emulator has failed: %w: %s", errors.Join(failed, err),
			bytes.TrimSpace(p.errorOutput.Bytes()))
	}
	errs := []error{err}
	if use.Refused > 0 {
		errs = append(errs, fmt.Errorf("path: TUN devices have refused %d packets", use.Refused))
	}
	for _, n := range p.ends {
		dropped, err := n.droppedPackets()
		if dropped > 0 {
			err = fmt.Errorf("path: %d packets were dropped before the emulator has read them: the machine is too "+
				"slow or too busy", dropped)
		}
		errs = append(errs, err)
	}
	p.closeEnds()
	return use, errors.Join(errs...)
}

func (p *Path) closeEnds() {
	for _, n := range p.ends {
		if n != nil {
			n.close()
		}
	}
}
