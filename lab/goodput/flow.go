package goodput

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// FlowCommand is the first argument of the running program when it is started as the sender
// or the receiver of a flow. Users do not type it.
const FlowCommand = "goodput-flow"

// job is one end of a flow.
type job struct {
	Side string
	// Rank is 0 for the sender, and 1 for the receiver.
	Rank int
	// Config is the configuration of the two ranks; Address is where the receiver of
	// tcp-cubic listens.
	Config, Address string
	// The receiver counts what arrives after Skip until Time, both since the sender has
	// begun; or until Bytes have arrived, if that is not 0.
	Skip, Time time.Duration
	Bytes      int64
}

// RunFlow is one end of a flow, in a process of its own: args are those after FlowCommand.
// The receiver prints what has arrived, as JSON. It ends with stdin, and so does a sender
// that has no end.
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
		_, _ = io.Copy(io.Discard, stdin) // however it ends
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
		return nil // enough has arrived
	case err != nil:
		return fmt.Errorf("%s, rank %d: %w", j.Side, j.Rank, err)
	case j.Rank == 0:
		return nil
	}
	if err := json.NewEncoder(stdout).Encode(c.flow()); err != nil {
		return err
	}
	<-ctx.Done() // to end earlier would be a failure for the sender
	return nil
}

// counter verifies and counts what arrives.
type counter struct {
	*job
	stream stream
	begin  time.Time
	// position is how much has arrived in order, counted how much of it after Skip, and
	// last when.
	position, counted int64
	last              time.Time
	// conn is the connection that a receiver of tcp-cubic keeps open until it ends.
	conn io.Closer
}

// start is called when the sender begins.
func (c *counter) start(now time.Time) { c.begin, c.last = now, now }

// end is when no more counts.
func (c *counter) end() time.Time { return c.begin.Add(c.Time) }

// complete reports whether all has arrived of a flow that has an end.
func (c *counter) complete() bool { return c.Bytes > 0 && c.position >= c.Bytes }

// arrived verifies what has arrived at now.
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

// flow returns what has arrived: until the last bytes, since a message counts when it is
// complete.
func (c *counter) flow() Flow {
	return Flow{Bytes: c.counted, Seconds: c.last.Sub(c.begin.Add(c.Skip)).Seconds()}
}

// late is called when the time is over: that is an error of a flow that has an end.
func (c *counter) late() error {
	if c.Bytes > 0 {
		return fmt.Errorf("%d bytes of %d have arrived in %v", c.position, c.Bytes, c.Time)
	}
	return nil
}
