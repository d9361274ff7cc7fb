package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// killTime limits how long a program may take to exit after it was interrupted. A program that takes longer is killed.
const killTime = 5 * time.Second

// saidLimit is the maximum number of bytes kept of a program's error output. The last bytes are kept.
const saidLimit = 8 << 10

// program is a command that is interrupted first, so that a launcher has time to end its ranks. If it does not exit, it
// is killed together with all processes that it started.
type program struct {
	*exec.Cmd
	// do calls the function that starts the program, such as on a thread in another network namespace. If it is nil, the
	// program starts in the namespace of this process.
	do          func(func())
	killGroup   func()
	errorOutput tail
}

// installed reports whether a program with the given name is installed.
func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

func command(ctx context.Context, name string, args ...string) *program {
	p := &program{Cmd: exec.CommandContext(ctx, name, args...)}
	p.killGroup = inGroup(p.Cmd)
	p.Cancel = func() error { return interrupt(p.Process) }
	p.WaitDelay = killTime
	p.Stderr = &p.errorOutput
	return p
}

// run runs the program until it exits. An error includes the program's error output.
func (p *program) run() error {
	var err error
	start := func() { err = p.Start() }
	if p.do != nil {
		p.do(start)
	} else {
		start()
	}
	if err != nil {
		return fmt.Errorf("%v: %w", p.Cmd, err)
	}
	return p.wait()
}

// wait waits for the program to exit.
func (p *program) wait() error {
	err := p.Wait()
	if err == nil {
		return nil
	}
	p.killGroup()
	return fmt.Errorf("%v: %w\n%s", p.Cmd, err, bytes.TrimSpace(p.errorOutput.text))
}

// output runs the program and returns its output.
func (p *program) output() ([]byte, error) {
	var out bytes.Buffer
	p.Stdout = &out
	err := p.run()
	return out.Bytes(), err
}

// tail is a writer that keeps only the last bytes written to it.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if over := len(t.text) - saidLimit; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}
