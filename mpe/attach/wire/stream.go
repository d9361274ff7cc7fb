package wire

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// Stream is a connection between a program and a daemon. It also runs the goroutines that serve the connection. Serve
// and Dial use Unix sockets; tests use other streams, such as one in simulated time that runs one goroutine at a
// time.
type Stream interface {
	// Read waits until there is something to read, Write until all is written.
	io.ReadWriter
	// TryWrite writes as much of b as it can without waiting, and returns the number of bytes.
	TryWrite(b []byte) int
	// StopReading makes reads end after the data received so far. HangUp also ends writes.
	StopReading()
	HangUp()
	// Close releases the stream. It implies HangUp, and must follow the last Read.
	Close()

	// Go runs f in a goroutine. After does so after d, unless stop is called before.
	Go(f func())
	After(d time.Duration, f func()) (stop func() bool)
	// Await waits for a value on c. If ctx ends first, it returns the context's cause.
	Await(ctx context.Context, c <-chan struct{}) error
}

// Polled is a Stream whose Read returns ErrNothing instead of waiting.
type Polled interface {
	Stream
	// Descriptor becomes readable when there is something to read, once Sleep has returned true. It is valid until
	// Close.
	Descriptor() int
	Sleep() bool
}

// Rings is a Stream through shared memory.
type Rings interface {
	Polled
	// Ready returns nil if n bytes can be read, and otherwise the error of Read.
	Ready(n int) error
	// Arena returns the memory for payload outside of frames. It is valid until Close.
	Arena() []byte
	// TellProcessor publishes the processor on which this side polls. OtherProcessor returns the other side's, or -1
	// if it is unknown.
	TellProcessor()
	OtherProcessor() int
	// Waits returns false if TryWrite can write. Otherwise the descriptor becomes readable when it can.
	Waits() bool
}

// goroutines implements the methods of Stream that run goroutines.
type goroutines struct{}

func (goroutines) Go(f func()) { go f() }

func (goroutines) After(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

func (goroutines) Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return ctxerr.Of(ctx)
	}
}

// Notify sends a value to n without blocking.
func Notify(n chan<- struct{}) {
	select {
	case n <- struct{}{}:
	default:
	}
}

// ErrNothing means that there is nothing to read yet.
var ErrNothing = errors.New("no data received")

// FarewellTime is how long a disconnected program has to read the reason.
const FarewellTime = time.Second

// Credentials identify the process at the other end of a socket, as the kernel reports it.
type Credentials struct {
	PID, UID, GID int
	// Groups lists the supplementary groups.
	Groups []int
}

// ErrNoCredentials means that the system does not report the process at the other end of a Unix socket, so no program
// can attach.
var ErrNoCredentials = errors.New("this system does not report the process at the other end of a Unix socket: " +
	"programs can attach on Linux only")
