package jobs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
)

// Budget is the number of bytes that may still be read of answers, by any number of goroutines.
type Budget struct{ left atomic.Int64 }

// NewBudget returns a budget of the given number of bytes.
func NewBudget(bytes int64) *Budget {
	b := new(Budget)
	b.left.Store(bytes)
	return b
}

// Ask returns the report of a rank, and the process that has answered. The error is ErrTooLong if one of the budgets is
// used up. Without an answer, the process is the one that should have answered, or 0.
func (j *Job) Ask(ctx context.Context, rank int, budgets ...*Budget) (text []byte, pid int, err error) {
	return j.ask(ctx, rank, report, budgets)
}

// AskMetrics is Ask for the report with counters and histograms.
func (j *Job) AskMetrics(ctx context.Context, rank int, budgets ...*Budget) (text []byte, pid int, err error) {
	return j.ask(ctx, rank, metrics, budgets)
}

// AskOthers returns the answers that a rank has had from other ranks.
func (j *Job) AskOthers(ctx context.Context, rank int, budgets ...*Budget) ([]byte, error) {
	text, _, err := j.ask(ctx, rank, others, budgets)
	return text, err
}

// Reset has a rank end the dead end of a peer, which was restarted.
func (j *Job) Reset(ctx context.Context, rank, peer int) error {
	text, _, err := j.ask(ctx, rank, reset+strconv.Itoa(peer), []*Budget{NewBudget(maxText)})
	switch {
	case err != nil:
		return err
	case string(text) == done:
		return nil
	case len(text) == 0:
		return errors.New("the process does not know the request: its version is an earlier one")
	}
	return fmt.Errorf("the process answers %q", text)
}

// maxText bounds the answer of a rank to a request that it rejects, in bytes.
const maxText = 4096

func (j *Job) ask(ctx context.Context, rank int, request string, budgets []*Budget) (text []byte, pid int, err error) {
	conn, pid, err := j.request(ctx, rank, request)
	if err != nil {
		return nil, pid, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	part := make([]byte, 32<<10)
	for {
		n, err := conn.Read(part)
		for _, b := range budgets {
			if b.left.Add(-int64(n)) < 0 {
				return nil, pid, ErrTooLong
			}
		}
		text = append(text, part[:n]...)
		if errors.Is(err, io.EOF) {
			return text, pid, nil
		}
		if err != nil {
			return nil, pid, errors.Join(context.Cause(ctx), err)
		}
	}
}

// Packets returns the packets of a rank as they come. The caller closes it. The error is ErrNoPackets if the rank has
// none.
func (j *Job) Packets(ctx context.Context, rank int) (io.ReadCloser, error) {
	conn, _, err := j.request(ctx, rank, packets)
	if err != nil {
		return nil, err
	}
	var begin [len(following)]byte
	err = conn.SetReadDeadline(time.Now().Add(requestTime))
	if err == nil {
		if _, err = io.ReadFull(conn, begin[:]); errors.Is(err, io.EOF) || err == nil && string(begin[:]) != following {
			err = ErrNoPackets
		}
	}
	if err = errors.Join(err, conn.SetReadDeadline(time.Time{})); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// request sends a request to a rank. It does not wait for a process that accepts no connections.
func (j *Job) request(ctx context.Context, rank int, request string) (*net.UnixConn, int, error) {
	d, err := j.open()
	if err != nil {
		return nil, 0, err
	}
	defer d.Close()
	conn, peer, err := d.Connect(strconv.Itoa(rank), unix.SOCK_STREAM)
	if err != nil {
		return nil, 0, err
	}
	until, bounded := ctx.Deadline()
	if !bounded {
		until = time.Now().Add(requestTime)
	}
	if err = conn.SetWriteDeadline(until); err == nil {
		_, err = io.WriteString(conn, request+"\n")
	}
	if err != nil {
		conn.Close()
		return nil, peer.PID, err
	}
	return conn, peer.PID, nil
}

func (j *Job) open() (*rendezvous.Dir, error) {
	if j.UID == os.Geteuid() {
		return rendezvous.Open(j.Directory)
	}
	return rendezvous.OpenOf(j.Directory, j.UID)
}
