package bench

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"time"
)

// killTime is how long a program may take to end when it is asked to.
const killTime = 5 * time.Second

// saidLimit is how much is kept of what a program says when it fails.
const saidLimit = 8 << 10

// program is a command that is asked to end before it is killed, so that a
// launcher can end its ranks, and then is killed with all that it has started.
type program struct {
	*exec.Cmd
	killGroup func()
	said      tail
}

// installed reports whether there is a program of that name.
func installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

func command(ctx context.Context, name string, args ...string) *program {
	p := &program{Cmd: exec.CommandContext(ctx, name, args...)}
	p.killGroup = inGroup(p.Cmd)
	p.Cancel = func() error { return interrupt(p.Process) }
	p.WaitDelay = killTime
	p.Stderr = &p.said
	return p
}

// run runs it to its end. The error has what it said on its standard error.
func (p *program) run() error {
	if err := p.Start(); err != nil {
		return fmt.Errorf("%v: %w", p.Cmd, err)
	}
	return p.wait()
}

// wait waits for its end.
func (p *program) wait() error {
	err := p.Wait()
	if err == nil {
		return nil
	}
	p.killGroup()
	return fmt.Errorf("%v: %w\n%s", p.Cmd, err, bytes.TrimSpace(p.said.text))
}

// output runs it and returns what it prints.
func (p *program) output() ([]byte, error) {
	var out bytes.Buffer
	p.Stdout = &out
	err := p.run()
	return out.Bytes(), err
}

// tail keeps the end of what is written to it.
type tail struct{ text []byte }

func (t *tail) Write(b []byte) (int, error) {
	t.text = append(t.text, b...)
	if over := len(t.text) - saidLimit; over > 0 {
		t.text = append(t.text[:0], t.text[over:]...)
	}
	return len(b), nil
}
