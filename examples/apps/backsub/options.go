package backsub

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// Root is the rank that has the equations.
const Root = exchange.Root

// MaxSize is the maximum number of unknowns. A float32 matrix of this size takes 1 GiB.
const MaxSize = 1 << 14

// wordLen is the length of a word in bytes.
const wordLen = 4

// Options are the options of a rank.
type Options struct {
	// Pace slows ranks down, as if each division, and each multiplication with its subtraction, took this time. Host
	// sends it to the workers.
	Pace time.Duration
	// Words is the length, in 32-bit words, of the longest message that Work accepts. The rows of a rank, from the
	// diagonal on, are one message.
	Words int
	// Unrolled makes Work use Send and Recv in place of collective calls, like the code of upstream's compiler, if
	// messages to some rank match by their order alone. Otherwise Work uses the collective calls of package mpi.
	Unrolled bool
	// FPGAs lists the FPGA ranks in the order of upstream's cluster file if upstream's compiler arranges them in a tree
	// (com_opt 1 and higher). An unrolled worker then does its part in the tree. With fewer than two, there is no tree
	// (com_opt 0).
	FPGAs []int
}

// ErrOptions is matched by errors for invalid equations and options.
var ErrOptions = errors.New("backsub: wrong options")

// ErrMessage is matched by errors for invalid messages.
var ErrMessage = errors.New("backsub: unexpected message")

// Check returns an error if the options are invalid for a worker.
func (o Options) Check() error {
	if o.Words < 1 {
		return fmt.Errorf("%w: messages of at most %d words: a worker needs room for one", ErrOptions, o.Words)
	}
	return nil
}

// check returns an error if the options are invalid for Host or Serial.
func (o Options) check() error {
	if o.Pace < 0 || o.Pace > pace.Longest {
		return fmt.Errorf("%w: a pace of %v: 0 to %v are possible", ErrOptions, o.Pace, pace.Longest)
	}
	return nil
}

// shape is the first message: the number of unknowns, the size of a number in bytes, and Options.Pace, all as int32.
type shape struct {
	unknowns, size int
	pace           time.Duration
}

// words encodes the message.
func (s shape) words() []int32 { return []int32{int32(s.unknowns), int32(s.size), int32(s.pace)} }

// shapeWords is the length of the message.
const shapeWords = 3

// shapeOf decodes the message at a worker with numbers of type T.
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
