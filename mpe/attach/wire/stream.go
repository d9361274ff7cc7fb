package wire

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
)

// Stream is a connection between a program and a daemon, and runs the goroutines that serve it. Serve and Dial make
// theirs of Unix sockets. Tests make others, such as one in simulated time that runs one goroutine at a time.
type Stream interface {
	// Read and Write wait until there is something to read, and until all is written.
	io.ReadWriter
	// TryWrite writes what there is room for, and returns how many bytes that was.
	TryWrite(b []byte) int
	// StopReading lets reads end with what has come, and HangUp writes as well.
	StopReading()
	HangUp()
	// Close is HangUp when nothing reads any longer.
	Close()

	// Go runs f in a goroutine. After does so when d has passed, if stop is not called before.
	Go(f func())
	After(d time.Duration, f func()) (stop func() bool)
	// Await waits for a value on c, or for ctx, whose cause it returns.
	Await(ctx context.Context, c <-chan struct{}) error
}

// Polled is a Stream whose Read may be polled: it returns ErrNothing instead of waiting.
type Polled interface {
	Stream
	// Descriptor becomes readable when there is something to read, after Sleep has returned
	// true. It is valid until Close.
	Descriptor() int
	Sleep() bool
}

// Rings is a Stream through memory.
type Rings interface {
	Polled
	// Ready returns nil if n bytes can be read, and otherwise what Read returns.
	Ready(n int) error
	// Arena is the memory for payload that frames do not carry, until Close.
	Arena() []byte
	// tellProcessor has the other side know on which processor this one polls. otherProcessor
	// returns that of the other side, or -1 if that is not known.
	TellProcessor()
	OtherProcessor() int
	// Waits reports false if there is room for TryWrite. Otherwise the descriptor becomes readable when there is.
	Waits() bool
}

// goroutines are those of the process, for a Stream.
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

// Notify sends a value to n, if it has room.
func Notify(n chan<- struct{}) {
	select {
	case n <- struct{}{}:
	default:
	}
}

// ErrNothing: nothing more has come.
var ErrNothing = errors.New("nothing has come")

// FarewellTime is how long a program has to read why it is disconnected.
const FarewellTime = time.Second

// Credentials identify the process at the other end of a socket, as the kernel reports.
type Credentials struct {
	PID, UID, GID int
	// Groups are the supplementary groups.
	Groups []int
}

// ErrNoCredentials: the system does not report the process at the other end of a Unix
// socket, so that no program may attach.
var ErrNoCredentials = errors.New("this system does not report the process at the other end of a Unix socket: programs can attach on Linux only")
