package kmeans

import (
	"errors"
	"fmt"
	"math"

	"github.com/zrlmpi/zrlmpid/examples/apps/internal/exchange"
)

// Root is the rank that initially holds the vectors.
const Root = exchange.Root

// Default values of the options, as in upstream's example.
const (
	DefaultDimensions = 3
	DefaultIterations = 128
	DefaultNormLimit  = 10
)

// MaxDimensions is the maximum length of a vector.
const MaxDimensions = 1 << 10

// Options configures a rank. It must be the same on all ranks, because upstream compiles the options into the
// programs of hosts and FPGAs.
type Options struct {
	// Dimensions is the length of a vector; 0 means DefaultDimensions.
	Dimensions int
	// Iterations is the maximum number of iterations; 0 means DefaultIterations.
	Iterations int
	// NormLimit ends the computation once the centroids hardly move: their squared movements, summed over all
	// coordinates, are at most NormLimit. 0 means DefaultNormLimit.
	NormLimit int
	// Words is the length in words of the longest message that Work accepts.
	Words int
	// FPGAs lists the FPGA ranks, in the order of upstream's cluster file, if upstream's compiler arranges them in a
	// tree (com_opt 1 and higher). Work then does its part in the tree. With fewer than two FPGAs, or if no messages
	// match by their order alone, there is no tree (com_opt 0).
	FPGAs []int
}

// ErrOptions matches errors about invalid options.
var ErrOptions = errors.New("kmeans: wrong options")

// ErrMessage is wrapped by the errors that report a message that contradicts the options.
var ErrMessage = errors.New("kmeans: unexpected message")

// Check returns an error if the options are invalid for a worker.
func (o Options) Check() error {
	if o.Words < 1 {
		return fmt.Errorf("%w: messages of at most %d words: a worker needs at least 1", ErrOptions, o.Words)
	}
	_, err := o.withDefaults()
	return err
}

// withDefaults returns the options with defaults filled in.
func (o Options) withDefaults() (Options, error) {
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
			return o, fmt.Errorf("%w: %s %d: must be 1 to %d, or 0 for the default, %d", ErrOptions, v.name, *v.value, v.end,
				v.fallback)
		}
	}
	return o, nil
}

// shouldContinue reports whether another iteration follows after the given number of iterations. norm is the movement
// of the centroids in the last one.
func (o *Options) shouldContinue(iterations int, norm int32) bool {
	return int(norm) > o.NormLimit && iterations < o.Iterations
}
