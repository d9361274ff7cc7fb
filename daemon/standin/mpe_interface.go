package standin

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// These constants define the MPE interface of the protocol page v0.9 in the form of a byte stream.
// docs/mpe_interface.md specifies it.
const (
	// callLen is the total length in bytes of mpi_call, count and rank.
	callLen = 1 + 4 + 4
	// feedbackLen is the total length in bytes of status and count.
	feedbackLen = 1 + 4
	// feedbackOK and feedbackFail are the values of MPI_Feedback used by upstream.
	feedbackOK   = 1
	feedbackFail = 2
	// maxText is the maximum length in bytes of the text in a FAIL feedback. It is a whole number of words.
	maxText = 1024
)

// ErrMalformedCall is returned for a call after which the rest of the program's byte stream cannot be parsed.
var ErrMalformedCall = errors.New("malformed call on the MPE interface")

// errExited is the error of an operation that was still pending when the program exited.
var errExited = errors.New("the program exited before it read the feedback")

// rankCalls contains the methods of Rank used on behalf of a program.
type rankCalls interface {
	Rank() int
	Size() int
	Send(ctx context.Context, dst int, data []byte, opts mpe.Options) (mpe.Status, error)
	Recv(ctx context.Context, src int, buf []byte, opts mpe.Options) (mpe.Status, error)
}

// mpeInterface executes the calls made by a program during one run.
type mpeInterface struct {
	rank     rankCalls
	in       io.Reader // calls and their data, from the program
	out      io.Writer // feedback, to the program
	buf      []byte    // feedbackLen bytes followed by the data
	words    uint32    // maximum count
	log      *zap.Logger
	counters *counters
	state    *programState
	pause    backoff
}

// interfaceBufLen returns the length that mpeInterface.buf must have for messages of at most the given number of words.
func interfaceBufLen(words uint32) int {
	return feedbackLen + max(int(words)*protocol.WordLen, maxText)
}

// call is a call made by the program.
type call struct {
	protocol.Call
	count, rank uint32
}

// printable returns the bytes of the call as text if they are printable, and "" otherwise.
func (c call) printable() string {
	b := binary.LittleEndian.AppendUint32([]byte{byte(c.Call)}, c.count)
	b = binary.LittleEndian.AppendUint32(b, c.rank)
	for _, char := range b {
		if (char < ' ' || char > '~') && char != '\n' && char != '\t' && char != '\r' {
			return ""
		}
	}
	return string(b)
}

func (c call) String() string {
	return fmt.Sprintf("%v with count %d and rank %d", c.Call, c.count, c.rank)
}

// serve executes calls until the program closes its output. It returns nil if the program closed its output between two
// calls.
func (m *mpeInterface) serve(ctx context.Context) error {
	for {
		c, err := m.readCall()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = m.execute(ctx, c)
		}
		if err != nil {
			return err
		}
	}
}

// readCall reads the next call. It returns io.EOF if the program makes no more calls.
func (m *mpeInterface) readCall() (call, error) {
	m.state.noteAwaiting(nil)
	var b [callLen]byte
	if n, err := io.ReadFull(m.in, b[:]); n == 0 && (err == io.EOF || errors.Is(err, os.ErrClosed)) {
		return call{}, io.EOF // closed by the program, or by us after the program exited
	} else if err != nil {
		return call{}, fmt.Errorf("incomplete call: the program wrote %[2]d of %[1]d bytes: %[3]w", callLen, n, err)
	}
	return call{protocol.Call(b[0]), binary.LittleEndian.Uint32(b[1:]), binary.LittleEndian.Uint32(b[5:])}, nil
}

// execute executes a call and sends its feedback. After an error, no further call can be executed.
func (m *mpeInterface) execute(ctx context.Context, c call) error {
	switch {
	case c.Call == protocol.Barrier:
		return m.sendFailure(ctx, c, errors.New("barrier not supported, as on deployed nodes: use sends and receives"))
	case !c.IsSend() && !c.IsRecv():
		if text := c.printable(); text != "" {
			return fmt.Errorf("%w: the program has written the text %q to its standard output, which carries calls: "+
				"write text to standard error", ErrMalformedCall, text)
		}
		return fmt.Errorf("%w: %v: calls are 0 to %d", ErrMalformedCall, c, protocol.RecvFloat)
	case c.count > m.words:
		if other := c.byteSwapped(); other.count <= m.words && int64(other.rank) < int64(m.rank.Size()) {
			return fmt.Errorf("%w: %v%s", ErrMalformedCall, c, other.byteOrderHint())
		}
		return fmt.Errorf("%w: %v: messages have at most %d words: raise kernel_options.words", ErrMalformedCall, c,
			m.words)
	}
	data := m.buf[feedbackLen:][:int64(c.count)*protocol.WordLen]
	if c.IsSend() {
		m.state.noteAwaiting(&c)
		if n, err := io.ReadFull(m.in, data); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("%[1]v: incomplete data: the program wrote %[3]d of %[2]d bytes: %[4]w", c, len(data), n,
				err)
		}
	}
	m.state.noteCall()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if int64(c.rank) == int64(m.rank.Rank()) {
		return m.sendFailure(ctx, c, fmt.Errorf("rank %d: %w: a rank cannot send to itself", c.rank, mpe.ErrRank))
	}
	opts := mpe.Options{Datatype: c.Datatype()}
	var st mpe.Status
	var err error
	if c.IsSend() {
		_, err = m.rank.Send(ctx, int(c.rank), data, opts)
	} else {
		opts.AnyTag = true
		st, err = m.rank.Recv(ctx, int(c.rank), data, opts)
	}
	switch {
	case err == nil:
		m.pause.reset()
		m.counters.succeeded.Add(1)
		return m.sendFeedback(feedbackOK, st.Words)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, mpe.ErrClosed):
		return err
	case errors.Is(err, mpe.ErrRank):
		if other := c.byteSwapped(); int64(other.rank) < int64(m.rank.Size()) && other.count <= m.words {
			err = fmt.Errorf("%w%s", err, other.byteOrderHint())
		}
	}
	return m.sendFailure(ctx, c, err)
}

// sendFailure answers a call with a FAIL feedback. After consecutive failures, it delays the answer, so that a program
// that retries at once does not spin.
func (m *mpeInterface) sendFailure(ctx context.Context, c call, err error) error {
	m.counters.errors.Add(1)
	m.state.noteFailure(fmt.Errorf("its call %v: %w", c, err))
	d := m.pause.next()
	m.log.Warn("program call failed", zap.Stringer("call", c), zap.Error(err), zap.Duration("feedback_after", d))
	if err := sleep(ctx, d); err != nil {
		return err
	}
	return m.sendFailText(err)
}

// sendFailText sends a FAIL feedback with the text of err, padded to whole words.
func (m *mpeInterface) sendFailText(err error) error {
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	room := m.buf[feedbackLen:][:maxText]
	clear(room[copy(room, text):])
	return m.sendFeedback(feedbackFail, uint32((len(text)+protocol.WordLen-1)/protocol.WordLen))
}

// sendFeedback sends a feedback, followed by the given number of words from the buffer.
func (m *mpeInterface) sendFeedback(status byte, words uint32) error {
	m.buf[0] = status
	binary.LittleEndian.PutUint32(m.buf[1:], words)
	if _, err := m.out.Write(m.buf[:feedbackLen+int64(words)*protocol.WordLen]); err != nil {
		return fmt.Errorf("feedback not written to the program: %w", err)
	}
	return nil
}
