package pmi

import (
	"context"
	"fmt"
	"strconv"
)

// The environment variables in which a launcher says how to reach it, and which process this
// one is.
const (
	// EnvFD is the number of a descriptor that is connected to the launcher.
	EnvFD = "PMI_FD"
	// EnvRank and EnvSize are the rank of the process, and how many the job has.
	EnvRank = "PMI_RANK"
	EnvSize = "PMI_SIZE"
)

// Connect returns a client of the launcher that the environment names.
func Connect(ctx context.Context, getenv func(string) string) (*Client, error) {
	var fd, rank, size int
	for _, v := range []struct {
		to   *int
		name string
	}{{&fd, EnvFD}, {&rank, EnvRank}, {&size, EnvSize}} {
		n, err := strconv.ParseUint(getenv(v.name), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%s=%q, which a launcher sets: it is to be a number, 0 or more", v.name, getenv(v.name))
		}
		*v.to = int(n)
	}
	conn, err := open(fd)
	if err != nil {
		return nil, fmt.Errorf("%s=%d, the connection to the launcher: %w: a program that another program of the job has started cannot join the job; unset %s there", EnvFD, fd, err, EnvFD)
	}
	c, err := NewClient(ctx, conn, rank, size)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}
