package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// Environment variables read by Init and Run.
const (
	// EnvSocket is the path of the Unix socket of the daemon to attach to. attach.EnvOwner names the daemon's
	// user, if that is neither root nor the user of this process.
	EnvSocket = "ZRLMPI_SOCKET"
	// EnvConfig is the path of a configuration file. The rank then runs in this process.
	EnvConfig = "ZRLMPI_CONFIG"
	// EnvRank is the rank of the program. With EnvConfig it is required, unless the program was started by a
	// launcher: in that case node.JobRanks provides the rank. With EnvSocket it is optional; by default, the
	// daemon chooses a rank.
	EnvRank = "ZRLMPI_RANK"
)

// anyRank asks a daemon for any of its ranks.
const anyRank = attach.AnyRank

// Functions that open a device. They are variables so that tests can replace them.
var (
	openAttached = func(ctx context.Context, socket string, rank int) (mpe.Device, error) {
		client, err := attach.Dial(ctx, socket, rank)
		if errors.Is(err, attach.ErrControlSocket) {
			err = fmt.Errorf("%w; attach to %s, or to the attach.socket of its configuration", err,
				config.AttachSocketFor(socket))
		}
		if err != nil {
			return nil, err // must not return a Device that holds a nil *attach.Client
		}
		return client, nil
	}
	openLaunched = func(ctx context.Context, config string) (mpe.Device, error) {
		launcher, err := pmi.Connect(ctx, os.Getenv)
		if err != nil {
			return nil, err
		}
		dev, err := node.Join(ctx, launcher, config)
		if err != nil {
			_ = launcher.Abort(exitStart) // otherwise the other ranks would wait for this one
			return nil, err
		}
		return dev, nil
	}
	openInProcess = func(_ context.Context, config string, rank int) (mpe.Device, error) {
		return node.OpenFile(config, rank)
	}
)

// Init opens the rank described by the environment, and returns its world communicator. If ZRLMPI_SOCKET is
// set, the rank belongs to a daemon. If ZRLMPI_CONFIG and ZRLMPI_RANK are set, the rank runs in this process.
// Otherwise the rank belongs to a job whose launcher uses PMI-1, such as zrlctl run or MPICH's mpiexec; if
// ZRLMPI_CONFIG is also set, the job includes FPGAs. Finalize closes the rank. ctx applies only while the rank
// is being opened. Most programs call Main instead.
func Init(ctx context.Context) (*mpi.Comm, error) {
	dev, err := Device(ctx)
	if err != nil {
		return nil, err
	}
	worlds, err := newWorlds(ctx, []mpe.Device{dev})
	if err != nil {
		return nil, err
	}
	return worlds[0], nil
}

// Device returns the device of the rank that the environment describes, which it opens in the same way as Init.
func Device(ctx context.Context) (mpe.Device, error) {
	socket, config := os.Getenv(EnvSocket), os.Getenv(EnvConfig)
	rank, err := rankFromEnv()
	switch {
	case err != nil:
		return nil, err
	case socket == "" && (config == "" || rank == anyRank) && os.Getenv(pmi.EnvFD) != "":
		dev, err := openLaunched(ctx, config)
		if err != nil {
			return nil, errorf(mpi.ErrOther, "Init", "joining the job of a launcher: %w", rlimit.Descriptor(err))
		}
		return dev, nil
	case socket == "" && config == "":
		return nil, errorf(mpi.ErrOther, "Init",
			"neither %s nor %s is set: set %s to a daemon's socket, or %s to a configuration "+
				"file and %s to a rank of it, or start the program with zrlctl run or mpiexec; with none of the "+
				"three set, Main "+
				"runs all ranks in one process", EnvSocket, EnvConfig, EnvSocket, EnvConfig, EnvRank)
	case socket != "" && config != "":
		return nil, errorf(mpi.ErrOther, "Init",
			"both %s and %s are set: unset one, to run the rank in a daemon or in this "+
				"process", EnvSocket, EnvConfig)
	case config != "" && rank == anyRank:
		return nil, errorf(mpi.ErrOther, "Init", "%s is set, but %s is not: set it to this program's rank", EnvConfig,
			EnvRank)
	}
	how, where, from := openAttached, socket, EnvSocket
	if config != "" {
		how, where, from = openInProcess, config, EnvConfig
	}
	dev, err := how(ctx, where, rank)
	if err != nil {
		return nil, errorf(mpi.ErrOther, "Init", "%s=%s: %w", from, where, rlimit.Descriptor(err))
	}
	return dev, nil
}

func rankFromEnv() (int, error) {
	text := os.Getenv(EnvRank)
	if text == "" {
		return anyRank, nil
	}
	rank, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, errorf(mpi.ErrRank, "Init", "%s=%q: a rank is a number, 0 or more: %w", EnvRank, text, err)
	}
	return int(rank), nil
}

// errorf returns the error of a call that has no communicator.
func errorf(class mpi.Class, call, format string, args ...any) error {
	return &mpi.Error{Class: class, Op: call, Peer: mpi.Undefined, Tag: mpi.Undefined, Err: fmt.Errorf(format, args...)}
}
