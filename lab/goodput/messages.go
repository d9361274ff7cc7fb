package goodput

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/zrlmpi/zrlmpid/lab/path"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/node"
)

// closeTime limits how long a rank waits for its last messages to be acknowledged.
const closeTime = 10 * time.Second

// configure writes the configuration of the two ranks of a flow. flow is a number that no other flow uses.
func configure(file, side string, flow int) error {
	transport := "udp"
	if side == extendedTCP {
		transport = "tcp"
	}
	text := fmt.Sprintf(`control: {socket: ""}
http: {listen: ""}
ranks:
  - {rank: 0, address: "%[1]v:%[3]d", run: host}
  - {rank: 1, address: "%[2]v:%[3]d", run: host}
defaults: {profile: extended, transport: %[4]s}
`, path.Addr(0), path.Addr(1), port(flow), transport)
	return os.WriteFile(file, []byte(text), 0o600)
}

// port returns the port of a flow.
func port(flow int) int { return 2718 + flow }

// runMessages runs one end of a flow of zrlmpid.
func (j *job) runMessages(ctx context.Context, c *counter) error {
	dev, err := node.OpenFile(j.Config, j.Rank)
	if err != nil {
		return err
	}
	world, err := mpi.New(dev)
	if err != nil {
		return err
	}
	if j.Rank == 0 {
		err = sendMessages(ctx, world, c)
	} else {
		err = receiveMessages(ctx, world, c)
	}
	if err != nil || j.Bytes == 0 {
		return err // the process's exit would lose pending messages
	}
	end, cancel := context.WithTimeout(ctx, closeTime)
	defer cancel()
	return world.Finalize(end)
}

// sendMessages waits until the receiver is ready, and then announces the start. The time before the announcement does
// not count.
func sendMessages(ctx context.Context, world *mpi.Comm, c *counter) error {
	one := make([]byte, 1)
	if _, err := mpi.Recv(ctx, world, one, 1, 0); err != nil {
		return err
	}
	if err := mpi.Send(ctx, world, one, 1, 0); err != nil {
		return err
	}
	var under [messageWindow]mpi.Request
	for i := 0; !c.isComplete(); i++ {
		request := &under[i%messageWindow]
		if i >= messageWindow {
			if _, err := (*request).Wait(ctx); err != nil {
				return err
			}
		}
		var err error
		if *request, err = mpi.Isend(world, c.stream.bytesAt(c.position, messageLen), 1, 0); err != nil {
			return err
		}
		c.position += messageLen
	}
	return mpi.Waitall(ctx, under[:], nil)
}

func receiveMessages(ctx context.Context, world *mpi.Comm, c *counter) error {
	var under [messageWindow]mpi.Request
	var buffers [messageWindow][]byte
	one := make([]byte, 1)
	begun, err := mpi.Irecv(world, one, 0, 0)
	if err != nil {
		return err
	}
	for i := range under {
		buffers[i] = make([]byte, messageLen)
		if under[i], err = mpi.Irecv(world, buffers[i], 0, 0); err != nil {
			return err
		}
	}
	if err := mpi.Send(ctx, world, make([]byte, 1), 0, 0); err != nil {
		return err
	}
	if _, err := begun.Wait(ctx); err != nil {
		return err
	}
	c.start(time.Now())
	limited, cancel := context.WithDeadline(ctx, c.deadline())
	defer cancel()
	for i := 0; !c.isComplete(); i = (i + 1) % messageWindow {
		_, err := under[i].Wait(limited)
		switch {
		case err != nil && errors.Is(limited.Err(), context.DeadlineExceeded):
			return c.timeoutError()
		case err != nil:
			return err
		}
		if err := c.addReceived(time.Now(), buffers[i]); err != nil {
			return err
		}
		if c.Bytes > 0 && c.position+(messageWindow-1)*messageLen >= c.Bytes {
			continue // the remaining receives have been posted
		}
		if under[i], err = mpi.Irecv(world, buffers[i], 0, 0); err != nil {
			return err
		}
	}
	return nil
}
