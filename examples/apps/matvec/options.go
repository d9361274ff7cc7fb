package matvec

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
	"github.com/zrlmpi/zrlmpid/examples/apps/internal/pace"
)

// Root is the rank that has the matrix and the vector.
const Root = exchange.Root

// MaxSize is the maximum number of rows and columns. A float32 matrix of this size takes 1 GiB.
const MaxSize = 1 << 14

// wordLen is the length of a word in bytes.
const wordLen = 4

// Options are the options of a rank.
type Options struct {
	// Rows is the number of rows that a rank gets at a time, at most an even share of all rows. 0 means 1, as in the
	// paper. Host sends it to the workers.
	Rows int
	// Pace slows ranks down, as if each multiplication with its addition took this time. Host sends it to the workers.
	Pace time.Duration
	// Words is the length, in 32-bit words, of the longest message that Work accepts.
	Words int
	// Unrolled makes Work use Send and Recv in place of collective calls, like the code of upstream's compiler, if
	// messages to some rank match by their order alone. Otherwise Work uses the collective calls of package mpi.
	Unrolled bool
	// FPGAs lists the FPGA ranks in the order of upstream's cluster file if upstream's compiler arranges them in a tree
	// (com_opt 1 and higher). An unrolled worker then does its part in the tree. With fewer than two, there is no tree
	// (com_opt 0).
	FPGAs []int
}

// ErrOptions is matched by errors for invalid matrices and options.
var ErrOptions = errors.New("matvec: wrong options")

// ErrMessage is matched by errors for invalid messages.
var ErrMessage = errors.New("matvec: unexpected message")

// Check returns an error if the options are invalid for a worker.
func (o Options) Check() error {
	if o.Words < 1 {
		return fmt.Errorf("%w: messages of at most %d words: a worker needs room for one", ErrOptions, o.Words)
	}
	return nil
}

// check returns an error if the options are invalid for Host or Serial.
func (o Options) check() error {
	switch {
	case o.Rows < 0:
		return fmt.Errorf("%w: %d rows at a time: give 1 or more, or 0 for 1", ErrOptions, o.Rows)
	case o.Pace < 0 || o.Pace > pace.Longest:
		return fmt.Errorf("%w: a pace of %v: 0 to %v are possible", ErrOptions, o.Pace, pace.Longest)
	}
	return nil
}

// shape is the first message, which describes the computation. All fields are sent as int32.
type shape struct {
	// rows and columns are the size of the matrix; each is Options.Rows.
	rows, columns, each int
	// size is the size of a number in bytes.
	size int
	// pace is Options.Pace.
	pace time.Duration
}

// words encodes the message.
func (s shape) words() []int32 {
	return []int32{int32(s.rows), int32(s.columns), int32(s.each), int32(s.size), int32(s.pace)}
}

// shapeWords is the length of the message.
const shapeWords = 5

// shapeOf decodes the message at a worker with numbers of type T, which gets the rows of blocks ranks in one message.
func shapeOf[T Number](words []int32, ranks, blocks int, o Options) (s shape, err error) {
	s = shape{int(words[0]), int(words[1]), int(words[2]), int(words[3]), time.Duration(words[4])}
	var zero T
	switch size := int(unsafe.Sizeof(zero)); {
	case s.rows < 1 || s.rows > MaxSize || s.columns < 1 || s.columns > MaxSize || s.each < 1 ||
		s.each > (s.rows+ranks-1)/ranks:
		err = fmt.Errorf("%w: %d x %d numbers, %d rows at a time: 1 to %d rows and columns are possible, and 1 row "+
			"to the share of a rank at a time",
			ErrMessage, s.rows, s.columns, s.each, MaxSize)
	case s.size != size:
		err = fmt.Errorf("%w: numbers of %d bytes, where this rank has such of %d bytes", ErrMessage, s.size, size)
	case s.pace < 0 || s.pace > pace.Longest:
		err = fmt.Errorf("%w: a pace of %v: 0 to %v are possible", ErrMessage, s.pace, pace.Longest)
	case blocks*s.each*s.columns*(size/wordLen) > o.Words:
		err = fmt.Errorf("%w: %d rows of %d columns are %d words, where this rank takes %d (its option words)",
			ErrMessage, blocks*s.each, s.columns,
			blocks*s.each*s.columns*(size/wordLen), o.Words)
	}
	return s, err
}
