package jobs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
)

// Budget limits how many bytes of answers may still be read. Several goroutines may share a budget.
type Budget struct{ remaining atomic.Int64 }

// NewBudget returns a budget that allows the given number of bytes.
func NewBudget(bytes int64) *Budget {
	b := new(Budget)
	b.remaining.Store(bytes)
	return b
}

// Ask sends a request to Request.Rank. It returns the document of the answer, and the process that answered or, on
// failure, should have answered; 0 means unknown. The error is ErrTooLong if a budget is exhausted, and an *OlderError
// if the process does not know the request.
func (j *Job) Ask(ctx context.Context, r query.Request, budgets ...*Budget) (text []byte, pid int, err error) {
	conn, in, pid, err := j.request(ctx, r)
	if err != nil {
		return nil, pid, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetReadDeadline(time.Time{}); err != nil { // ctx bounds the remaining time
		return nil, pid, err
	}
	part := make([]byte, 32<<10)
	for {
		n, err := in.Read(part)
		for _, b := range budgets {
			if b.remaining.Add(-int64(n)) < 0 {
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

// Stream sends a request whose answer is a stream, which the caller must close.
func (j *Job) Stream(ctx context.Context, r query.Request) (io.ReadCloser, error) {
	conn, in, _, err := j.request(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{in, conn}, nil
}

// maxHead limits the length of the first line of an answer, in bytes.
const maxHead = 4096

// request sends a request to a rank and reads the head of the answer. The returned reader reads the rest. If the
// process does not accept the connection, request fails without waiting.
func (j *Job) request(ctx context.Context, req query.Request) (_ *net.UnixConn, _ *bufio.Reader, pid int, err error) {
	d, err := j.open()
	if err != nil {
		return nil, nil, 0, err
	}
	defer d.Close()
	conn, peer, err := d.Connect(strconv.Itoa(req.Rank), unix.SOCK_STREAM)
	if err != nil {
		return nil, nil, 0, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	in, err := exchange(ctx, conn, req)
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		conn.Close()
		return nil, nil, peer.PID, err
	}
	return conn, in, peer.PID, nil
}

// exchange sends a request and reads the head of the answer. The result reads what follows. A rank that hangs costs at
// most answerTime, unless ctx has its own deadline.
func exchange(ctx context.Context, conn *net.UnixConn, request query.Request) (*bufio.Reader, error) {
	if _, bounded := ctx.Deadline(); !bounded { // otherwise ctx closes the connection
		if err := conn.SetDeadline(time.Now().Add(answerTime)); err != nil {
			return nil, err
		}
	}
	request.Version = query.Version
	line, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(conn, maxHead)
	answer, err := in.ReadSlice('\n')
	var head answerHead
	switch {
	case errors.Is(err, io.EOF) && len(answer) == 0:
		return nil, ErrNoAnswer
	case errors.Is(err, io.EOF):
		return nil, io.ErrUnexpectedEOF
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, ErrTooLong
	case err != nil:
		return nil, err
	}
	switch err := json.Unmarshal(answer, &head); {
	case err != nil:
		return nil, fmt.Errorf("no answer of a rank: %w", err)
	case head.Unknown && head.Version < query.Version:
		return nil, &OlderError{request.Kind}
	case head.Error != "":
		return nil, errors.New(head.Error)
	}
	return in, nil
}

// open opens the job's directory. Its owner must be the user whose job was found.
func (j *Job) open() (*rendezvous.Dir, error) {
	if j.UID == os.Geteuid() {
		return rendezvous.Open(j.Directory)
	}
	return rendezvous.OpenOf(j.Directory, j.UID)
}
