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
// for internal use.
const FlowCommand = "goodput-flow"

// job describes one end of a flow.
type job struct {
	Side string
	// Rank is 0 for the sender, and 1 for the receiver.
	Rank int
	// Config names the configuration of the two ranks. Address is the address at which the receiver of tcp-cubic
	// listens.
	Config, Address string
	// The receiver counts bytes that arrive between Skip and Time after the sender's start. If Bytes is greater than 0,
	// it stops when it has received that number of bytes.
	Skip, Time time.Duration
	Bytes      int64
}

// RunFlow runs one end of a flow in a separate process. args are the arguments after FlowCommand. The receiver prints
// its Flow as JSON, and then waits until stdin is closed. A sender without a limit also runs until then.
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
		_, _ = io.Copy(io.Discard, stdin) // any error ends the flow, too
		cancel()
	}()
	run := j.runMessages
	if j.Side == tcpCubic {
		run = j.connection
	}
	c := counter{job: &j, stream: newStream()}
	err := run(ctx, &c)
	switch {
	case j.Rank == 0 && errors.Is(err, context.Canceled):
		return nil // the receiver has received enough
	case err != nil:
		return fmt.Errorf("%s, rank %d: %w", j.Side, j.Rank, err)
	case j.Rank == 0:
		return nil
	}
	if err := json.NewEncoder(stdout).Encode(c.result()); err != nil {
		return err
	}
	<-ctx.Done() // if it exited earlier, the sender would report a failure
	return nil
}

// counter verifies and counts the bytes received.
type counter struct {
	*job
	stream    stream
	startTime time.Time
	// position is the number of bytes received in order. countedBytes is the number of bytes received after Skip, and
	// last the time at which the last of these arrived.
	position, countedBytes int64
	last                   time.Time
	// conn is the connection of the receiver of tcp-cubic. It stays open until the process exits.
	conn io.Closer
}

// start records the time at which the sender starts.
func (c *counter) start(now time.Time) { c.startTime, c.last = now, now }

// deadline returns the time after which bytes no longer count.
func (c *counter) deadline() time.Time { return c.startTime.Add(c.Time) }

// isComplete reports whether the flow is limited and all its bytes have been received.
func (c *counter) isComplete() bool { return c.Bytes > 0 && c.position >= c.Bytes }

// addReceived verifies and counts bytes that were received at time now.
func (c *counter) addReceived(now time.Time, b []byte) error {
	if err := c.stream.verify(c.position, b); err != nil {
		return err
	}
	c.position += int64(len(b))
	if now.Sub(c.startTime) >= c.Skip {
		c.countedBytes, c.last = c.countedBytes+int64(len(b)), now
	}
	return nil
}

// result returns the result of the flow. Its time ends with the last received bytes, because a message counts only when
// it is complete.
func (c *counter) result() Flow {
	return Flow{Bytes: c.countedBytes, Seconds: c.last.Sub(c.startTime.Add(c.Skip)).Seconds()}
}

// timeoutError is called at the deadline. It returns an error if the flow was to transfer a fixed number of bytes.
func (c *counter) timeoutError() error {
	if c.Bytes > 0 {
		return fmt.Errorf("%d bytes of %d arrived in %v", c.position, c.Bytes, c.Time)
	}
	return nil
}
