package main

import (
	"errors"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Control sequences for the alternate screen. The cursor is hidden.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leaveScreen = "\x1b[0m\x1b[?25h\x1b[?1049l"
	drawScreen  = "\x1b[H"
	clearBelow  = "\x1b[J"
)

// tty is a terminal.
type tty struct {
	in, out    *os.File
	state      *term.State // the original state; nil before Enter
	keys       chan []byte
	readOnce   sync.Once
	resized    chan struct{}
	stopResize func() // stops resize notifications
}

// newTTY returns the terminal on which a command runs. It returns nil if the input or output is not a terminal, or the
// terminal does not support control sequences.
func newTTY(stdin io.Reader, stdout io.Writer) terminal {
	if o, wraps := stdout.(*output); wraps {
		stdout = o.Writer
	}
	in, isIn := stdin.(*os.File)
	out, isOut := stdout.(*os.File)
	if !isIn || !isOut || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) ||
		os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &tty{in: in, out: out, keys: make(chan []byte), resized: make(chan struct{}, 1)}
}

// Enter implements terminal.
func (t *tty) Enter() error {
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return err
	}
	t.state, t.stopResize = state, notifyResize(t.resized)
	t.readOnce.Do(func() { go t.readKeys() })
	_, err = io.WriteString(t.out, enterScreen)
	return err
}

// Restore implements terminal.
func (t *tty) Restore() error {
	if t.state == nil {
		return nil
	}
	t.stopResize()
	_, err := io.WriteString(t.out, leaveScreen)
	err = errors.Join(err, term.Restore(int(t.in.Fd()), t.state))
	t.state = nil
	return err
}

// Suspend implements terminal.
func (t *tty) Suspend() error {
	if !canSuspend {
		return nil
	}
	if err := t.Restore(); err != nil {
		return err
	}
	if err := suspend(); err != nil {
		return err
	}
	return t.Enter()
}

// readKeys reads input until the terminal is closed or the program exits. A pending read cannot be canceled.
func (t *tty) readKeys() {
	defer close(t.keys)
	buf := make([]byte, 256)
	for {
		n, err := t.in.Read(buf)
		if n > 0 {
			t.keys <- append([]byte(nil), buf[:n]...)
		}
		if err != nil {
			return
		}
	}
}

// Keys implements terminal.
func (t *tty) Keys() <-chan []byte { return t.keys }

// Resized implements terminal.
func (t *tty) Resized() <-chan struct{} { return t.resized }

// Size implements terminal. It returns 80 by 24 if the size is unknown.
func (t *tty) Size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// Draw implements terminal.
func (t *tty) Draw(frame string) error {
	_, err := io.WriteString(t.out, drawScreen+frame+clearBelow)
	return err
}

// Colours implements terminal.
func (t *tty) Colours() bool { return os.Getenv("NO_COLOR") == "" }
