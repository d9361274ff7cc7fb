package pmi

import (
	"context"
	"fmt"
	"strconv"
)

// Environment variables that a launcher sets so that a process knows its rank and its connection to the launcher.
const (
	// EnvFD holds the number of the file descriptor that connects the process to the launcher.
	EnvFD = "PMI_FD"
	// EnvRank holds the rank of the process, and EnvSize the number of processes of the job.
	EnvRank = "PMI_RANK"
	EnvSize = "PMI_SIZE"
)

// Connect returns a client of the launcher named by the environment.
func Connect(ctx context.Context, getenv func(string) string) (*Client, error) {
	var fd, rank, size int
	for _, v := range []struct {
		to   *int
		name string
	}{{&fd, EnvFD}, {&rank, EnvRank}, {&size, EnvSize}} {
		n, err := strconv.ParseUint(getenv(v.name), 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%s=%q, which a launcher sets: it is to be a number, 0 or more", v.name,
				getenv(v.name))
		}
		*v.to = int(n)
	}
	conn, err := open(fd)
	if err != nil {
		return nil, fmt.Errorf("%s=%d, the connection to the launcher: %w: a program that another program of the job "+
			"has started cannot join the job; unset %s there", EnvFD, fd, err, EnvFD)
	}
	c, err := NewClient(ctx, conn, rank, size)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}
