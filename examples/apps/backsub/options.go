package backsub

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// Root is the rank that has the system of equations.
const Root = exchange.Root

// MaxSize is how many unknowns there are at most. The matrix takes up to 1 GiB then, of
// float32.
const MaxSize = 1 << 14

// wordLen is the length of a word in bytes.
const wordLen = 4

// Options of a rank.
type Options struct {
	// Pace has ranks wait, as if a multiplication with its subtraction took so long,
	// or a division. Host sends it to the workers.
	Pace time.Duration
	// Words is the longest message that Work takes, in 32-bit words: a rank's rows,
	// from the diagonal on, are one.
	Words int
	// Unrolled is how Work makes the collective calls where messages to some rank match by
	// their order alone: with Send and Recv, as upstream's compiler puts them in their place,
	// and not by those of package mpi.
	Unrolled bool
	// FPGAs are the ranks of FPGAs in the order of upstream's cluster file, if its
	// compiler makes a tree of them (com_opt 1 and more), of which an unrolled worker has
	// its part. With fewer than two all is flat (com_opt 0).
	FPGAs []int
}

// ErrOptions matches the errors of invalid equations and options.
var ErrOptions = errors.New("backsub: wrong options")

// ErrMessage matches the errors of invalid messages.
var ErrMessage = errors.New("backsub: unexpected message")

// Check returns an error if the options are not valid for a worker.
func (o Options) Check() error {
	if o.Words < 1 {
		return fmt.Errorf("%w: messages of at most %d words: a worker needs room for one", ErrOptions, o.Words)
	}
	return nil
}

// check returns an error if the options are not valid for Host or Serial.
func (o Options) check() error {
	if o.Pace < 0 || o.Pace > pace.Longest {
		return fmt.Errorf("%w: a pace of %v: 0 to %v are possible", ErrOptions, o.Pace, pace.Longest)
	}
	return nil
}

// shape is the first message: how many unknowns there are, how many bytes a number has,
// and Options.Pace. All are int32.
type shape struct {
	unknowns, size int
	pace           time.Duration
}

// words are those of the message.
func (s shape) words() []int32 { return []int32{int32(s.unknowns), int32(s.size), int32(s.pace)} }

// shapeWords is the length of the message.
const shapeWords = 3

// shapeOf reads the message at a worker of numbers T.
func shapeOf[T Number](words []int32) (s shape, err error) {
	s = shape{int(words[0]), int(words[1]), time.Duration(words[2])}
	var zero T
	switch size := int(unsafe.Sizeof(zero)); {
	case s.unknowns < 1 || s.unknowns > MaxSize:
		err = fmt.Errorf("%w: %d unknowns: 1 to %d are possible", ErrMessage, s.unknowns, MaxSize)
	case s.size != size:
		err = fmt.Errorf("%w: numbers of %d bytes, where this rank has such of %d bytes", ErrMessage, s.size, size)
	case s.pace < 0 || s.pace > pace.Longest:
		err = fmt.Errorf("%w: a pace of %v: 0 to %v are possible", ErrMessage, s.pace, pace.Longest)
	}
	return s, err
}
