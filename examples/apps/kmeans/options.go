package kmeans

import (
	"errors"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
)

// Root is the rank that has the vectors.
const Root = exchange.Root

// The values of upstream's example.
const (
	DefaultDimensions = 3
	DefaultIterations = 128
	DefaultNormLimit  = 10
)

// MaxDimensions is the longest vector.
const MaxDimensions = 1 << 10

// Options are what all ranks must agree on: upstream compiles them into the
// programs of hosts and FPGAs.
type Options struct {
	// Dimensions is the length of a vector; 0 is DefaultDimensions.
	Dimensions int
	// Iterations is how often the centroids move at most; 0 is
	// DefaultIterations.
	Iterations int
	// NormLimit ends the iterations when the squares of what the coordinates
	// of all centroids moved by sum up to no more; 0 is DefaultNormLimit.
	NormLimit int
	// Words is the longest message that Work takes, in words.
	Words int
	// FPGAs are the ranks of FPGAs in the order of upstream's cluster file, if its
	// compiler makes a tree of them (com_opt 1 and more), of which Work has its part.
	// With fewer than two, and where no messages match by their order alone, all is flat
	// (com_opt 0).
	FPGAs []int
}

// ErrOptions matches the errors of invalid options.
var ErrOptions = errors.New("kmeans: wrong options")

// ErrMessage matches the errors of messages that the options do not allow.
var ErrMessage = errors.New("kmeans: unexpected message")

// Check returns an error if the options are not valid for a worker.
func (o Options) Check() error {
	if o.Words < 1 {
		return fmt.Errorf("%w: messages of at most %d words: a worker needs room for one", ErrOptions, o.Words)
	}
	_, err := o.complete()
	return err
}

// complete returns the options with nothing left open.
func (o Options) complete() (Options, error) {
	for _, v := range []struct {
		name          string
		value         *int
		fallback, end int
	}{
		{"dimensions", &o.Dimensions, DefaultDimensions, MaxDimensions},
		{"iterations", &o.Iterations, DefaultIterations, math.MaxInt32},
		{"norm limit", &o.NormLimit, DefaultNormLimit, math.MaxInt32},
	} {
		if *v.value == 0 {
			*v.value = v.fallback
		}
		if *v.value < 1 || *v.value > v.end {
			return o, fmt.Errorf("%w: %s %d: 1 to %d are possible, and 0 is %d", ErrOptions, v.name, *v.value, v.end, v.fallback)
		}
	}
	return o, nil
}

// goesOn says whether there is another iteration after so many, of which the last
// moved the centroids by norm.
func (o *Options) goesOn(iterations int, norm int32) bool {
	return int(norm) > o.NormLimit && iterations < o.Iterations
}
