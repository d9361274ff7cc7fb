package wire

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// Stream is a connection between a program and a daemon. It also runs the goroutines that serve the connection.
// Serve and Dial use Unix sockets. Tests use other streams, for example one that runs in simulated time and
// executes one goroutine at a time.
type Stream interface {
	// Read waits until there is something to read. Write waits until everything has been written.
	io.ReadWriter
	// TryWrite writes as much of b as it can without waiting. It returns the number of bytes written.
	TryWrite(b []byte) int
	// StopReading makes reads end after the data that has been received so far. HangUp does the same and also makes
	// writes fail.
	StopReading()
	HangUp()
	// Close calls HangUp and releases the stream. It must not be called before the last Read has returned.
	Close()

	// Go calls f in a new goroutine. After does the same once the duration d has passed, unless the returned function
	// stop is called before.
	Go(f func())
	After(d time.Duration, f func()) (stop func() bool)
	// Await waits for a value on the channel c. If ctx ends first, it returns the cause of ctx.
	Await(ctx context.Context, c <-chan struct{}) error
}

// Polled is a Stream whose Read returns ErrNoData instead of waiting.
type Polled interface {
	Stream
	// Descriptor returns a descriptor that becomes readable when there is something to read, if Sleep has
	// returned true before. It is valid until Close.
	Descriptor() int
	Sleep() bool
}

// Rings is a Stream that uses shared memory.
type Rings interface {
	Polled
	// Ready returns nil if n bytes can be read, and otherwise the error that Read would return.
	Ready(n int) error
	// Arena returns the memory that holds payload outside of frames. It is valid until Close.
	Arena() []byte
	// PublishProcessor publishes the number of the processor on which this side polls. PeerProcessor returns the
	// number published by the other side, or -1 if it is unknown.
	PublishProcessor()
	PeerProcessor() int
	// Awaited returns the list of the operations that the program awaits. It is valid until Close.
	Awaited() *Awaited
	// RequestSpace returns false if TryWrite can write. Otherwise, the descriptor becomes readable when TryWrite can
	// write.
	RequestSpace() bool
}

// goroutines implements those methods of Stream that start or wait for goroutines.
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
		return ctxerr.Cause(ctx)
	}
}

// Notify sends a value to the channel n without blocking.
func Notify(n chan<- struct{}) {
	select {
	case n <- struct{}{}:
	default:
	}
}

// ErrNoData is returned when there is nothing to read yet.
var ErrNoData = errors.New("no data received")

// LingerTimeout is the time for which the connection of a disconnected program stays open, so that the program can read
// the reason.
const LingerTimeout = time.Second

// Credentials identify the process at the other end of a socket, as reported by the kernel.
type Credentials struct {
	PID, UID, GID int
	// Groups contains the supplementary groups.
	Groups []int
}

// ErrNoCredentials means that the system does not report which process is at the other end of a Unix socket.
// Programs cannot attach on such a system.
var ErrNoCredentials = errors.New("this system does not report the process at the other end of a Unix socket: " +
	"programs can attach on Linux only")
