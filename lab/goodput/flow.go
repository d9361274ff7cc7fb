package goodput

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// FlowCommand is the first argument with which a program starts itself as the sender or the receiver of a flow. It is
// not meant for users.
const FlowCommand = "goodput-flow"

// job is one end of a flow.
type job struct {
	Side string
	// Rank is 0 for the sender, and 1 for the receiver.
	Rank int
	// Config is the configuration of the two ranks. Address is the address at which the receiver of tcp-cubic listens.
	Config, Address string
	// The receiver counts the bytes received between Skip and Time after the sender's start, or until it has
	// received Bytes if that is not 0.
	Skip, Time time.Duration
	Bytes      int64
}

// RunFlow runs one end of a flow in a separate process; args are the arguments after FlowCommand. The receiver prints
// its Flow as JSON. It runs until stdin is closed, and so does a sender without a limit.
func RunFlow(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error {
	if len(args) != 1 {
		return fmt.Errorf("%s: %d arguments instead of one", FlowCommand, len(args))
	}
	var j job
	if err := json.Unmarshal([]byte(args[0]), &j); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // any error ends it as well
		cancel()
	}()
	run := j.messages
	if j.Side == tcpCubic {
		run = j.connection
	}
	c := counter{job: &j, stream: newStream()}
	err := run(ctx, &c)
	switch {
	case j.Rank == 0 && errors.Is(err, context.Canceled):
		return nil // the receiver has enough
	case err != nil:
		return fmt.Errorf("%s, rank %d: %w", j.Side, j.Rank, err)
	case j.Rank == 0:
		return nil
	}
	if err := json.NewEncoder(stdout).Encode(c.flow()); err != nil {
		return err
	}
	<-ctx.Done() // exiting earlier would look like a failure to the sender
	return nil
}

// counter verifies and counts received bytes.
type counter struct {
	*job
	stream stream
	begin  time.Time
	// position is the number of bytes received in order, counted the number received after Skip, and last the time of
	// the last of them.
	position, counted int64
	last              time.Time
	// conn is the connection of a receiver of tcp-cubic. It stays open until the process exits.
	conn io.Closer
}

// start records the time at which the sender starts.
func (c *counter) start(now time.Time) { c.begin, c.last = now, now }

// end returns the time after which no more bytes count.
func (c *counter) end() time.Time { return c.begin.Add(c.Time) }

// complete reports whether a flow with a limit has received all its bytes.
func (c *counter) complete() bool { return c.Bytes > 0 && c.position >= c.Bytes }

// arrived verifies and counts bytes received at the time now.
func (c *counter) arrived(now time.Time, b []byte) error {
	if err := c.stream.verify(c.position, b); err != nil {
		return err
	}
	c.position += int64(len(b))
	if now.Sub(c.begin) >= c.Skip {
		c.counted, c.last = c.counted+int64(len(b)), now
	}
	return nil
}

// flow returns the result. Its time ends with the last bytes received, since a message counts only when it is complete.
func (c *counter) flow() Flow {
	return Flow{Bytes: c.counted, Seconds: c.last.Sub(c.begin.Add(c.Skip)).Seconds()}
}

// late is called when the time is over. A flow with a limit then fails.
func (c *counter) late() error {
	if c.Bytes > 0 {
		return fmt.Errorf("%d bytes of %d have arrived in %v", c.position, c.Bytes, c.Time)
	}
	return nil
}
