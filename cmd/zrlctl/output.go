package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

// output wraps standard output and remembers the first write error. cobra does not return that error, although a
// command with incomplete output must fail.
type output struct {
	io.Writer
	mu  sync.Mutex
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
}

// joinError returns err, the error of a command, joined with the error of its output.
func (o *output) joinError(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.err == nil:
		return err
	case err == nil || isPrinted(err) || errors.Is(err, o.err):
		return &operationError{o.err}
	}
	return errors.Join(err, o.err)
}

// createFile creates a file and calls write to fill it. The error includes any error from Close.
func createFile(name string, write func(io.Writer) error) error {
	file, err := privatedir.Output(name, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// writeFile is like createFile but buffers the output of write.
func writeFile(name string, write func(io.Writer) error) error {
	return createFile(name, func(file io.Writer) error {
		out := bufio.NewWriterSize(file, 1<<16)
		return flushAndJoin(write(out), out)
	})
}

// print prints v if the user asked for JSON, and the formatted text otherwise.
func (a *app) print(out io.Writer, v any, format string, args ...any) error {
	if a.json {
		return writeJSON(out, v)
	}
	_, err := fmt.Fprintf(out, format, args...)
	return err
}

// flushAndJoin flushes out and joins the resulting error with err, unless err already contains it.
func flushAndJoin(err error, out interface{ Flush() error }) error {
	failed := out.Flush()
	if failed == nil || errors.Is(err, failed) {
		return err
	}
	return errors.Join(err, failed)
}
