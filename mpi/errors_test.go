package mpi

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// nullDevice is rank 0 of size ranks. It completes every operation immediately.
type nullDevice struct {
	mpe.BasicDevice
	size   int
	limits mpe.PeerInfo
	status mpe.Status
	err    error
	peer   error
	start  error
	sends  error // returned by the start of sends
	cancel int   // calls of Cancel
	later  int   // number of tests before an operation completes
}

func (d *nullDevice) Rank() int                      { return 0 }
func (d *nullDevice) Size() int                      { return d.size }
func (d *nullDevice) Peer(int) (mpe.PeerInfo, error) { return d.limits, d.peer }
func (d *nullDevice) Close(context.Context) error    { return nil }
func (d *nullDevice) Cancel()                        { d.cancel++ }
func (d *nullDevice) Free()                          {}

func (d *nullDevice) Notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (d *nullDevice) Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *nullDevice) Test() (mpe.Status, bool, error) {
	if d.later > 0 {
		d.later--
		return mpe.Status{}, false, nil
	}
	return d.status, true, d.err
}

func (d *nullDevice) Start(o mpe.Operation) (mpe.Op, error) {
	if d.start != nil {
		return nil, d.start
	}
	if d.sends != nil && o.Kind != mpe.OpRecv {
		return nil, d.sends
	}
	return nullOp{d}, nil
}

func (d *nullDevice) StartCollective(*collective.Operation) (mpe.Op, error) {
	if d.start != nil {
		return nil, d.start
	}
	return nullOp{d}, nil
}

func (d *nullDevice) Probe(context.Context, mpe.Match, bool) (mpe.Status, bool, error) {
	return d.status, d.err == nil, d.err
}

// nullOp is an operation of a nullDevice.
type nullOp struct{ *nullDevice }

func (o nullOp) Await(context.Context) (*mpe.Status, error) { return &o.status, o.err }
func (nullOp) Result() (*mpe.Status, error)                 { return nil, nil }
func (nullOp) LibraryData() *any                            { return nil }

func newComm(t testing.TB, d *nullDevice) *Comm {
	t.Helper()
	c, err := New(d)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDeviceErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Class
		text string
	}{
		{mpe.ErrRank, ErrRank, "mpi: Send to rank 1, tag 5, on rank 0 of world: MPI_ERR_RANK: x: no such peer"},
		{mpe.ErrLength, ErrCount, "mpi: Send to rank 1, tag 5, on rank 0 of world: MPI_ERR_COUNT: x: the length is " +
			"not a multiple of 4 bytes"},
		{handshake.ErrEmpty, ErrCount, ""},
		{handshake.ErrTooLong, ErrCount, ""},
		{mpe.ErrTag, ErrTag, ""},
		{mpe.ErrWildcard, ErrTag, ""},
		{mpe.ErrComm, ErrComm, ""},
		{mpe.ErrClosed, ErrOther, ""},
		{mpe.ErrFull, ErrNoMem, "mpi: Send to rank 1, tag 5, on rank 0 of world: MPI_ERR_NO_MEM: x: too many " +
			"operations wait"},
		{&mpe.PeerFullError{Local: 0, Peer: 1}, ErrNoMem, ""},
		{&handshake.TruncatedError{Remote: 1, Posted: 1, Sent: 2}, ErrTruncate, ""},
		{&handshake.TimeoutError{}, ErrOther, ""},
		{context.DeadlineExceeded, ErrOther, ""},
		{errors.New("odd"), ErrOther, ""},
	} {
		cause := fmt.Errorf("x: %w", c.err)
		for _, d := range []*nullDevice{{size: 2, err: cause}, {size: 2, start: cause}} {
			comm := newComm(t, d)
			err := Send(t.Context(), comm, []int32{1}, 1, 5)
			if !errors.Is(err, c.want) || ClassOf(err) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%v is of class %v: %v", c.err, ClassOf(err), err)
			}
			if c.text != "" && err.Error() != c.text {
				t.Errorf("%q is not %q", err, c.text)
			}
			_, err = Recv(t.Context(), comm, []int32{1}, 1, 5)
			if ClassOf(err) != c.want {
				t.Errorf("%v of a receive is of class %v", c.err, ClassOf(err))
			}
			_, err = Sendrecv(t.Context(), comm, []int32{1}, 1, 5, []int32{1}, 1, 5)
			if ClassOf(err) != c.want {
				t.Errorf("%v of Sendrecv is of class %v", c.err, ClassOf(err))
			}
		}
	}
}

func TestErrorTexts(t *testing.T) {
	c := newComm(t, &nullDevice{size: 2,
		limits: mpe.PeerInfo{Profile: "cloudfpga", Words: true, NoComms: true, NoEmpty: true}})
	b := []int16{1}
	failing := func(_ any, err error) error { return err }
	named := newComm(t, &nullDevice{size: 2, err: errors.New("broken")})
	named.SetName("grid")
	request, err := Irecv(named, b, AnySource, AnyTag)
	if err != nil {
		t.Fatal(err)
	}
	failed, err := Issend(named, b, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		err  error
		want string
	}{
		{Send(t.Context(), c, b, 2, 0),
			"mpi: Send to rank 2, tag 0, on rank 0 of world: MPI_ERR_RANK: there is no rank 2: world has ranks 0 to 1"},
		{Ssend(t.Context(), c, b, 1, 3),
			"mpi: Ssend to rank 1, tag 3, on rank 0 of world: MPI_ERR_COUNT: 2 bytes: the peer's wire (profile " +
				"cloudfpga) carries whole 32-bit words; use a count that gives a multiple of 4 bytes"},
		{Rsend(t.Context(), c, b[:0], 1, 3),
			"mpi: Rsend to rank 1, tag 3, on rank 0 of world: MPI_ERR_COUNT: the peer's wire (profile cloudfpga) " +
				"carries no empty messages: send a word, whatever its value"},
		{Bsend(c, []int32{1}, 1, 3),
			"mpi: Bsend to rank 1, tag 3, on rank 0 of world: MPI_ERR_BUFFER: no buffer is attached: call " +
				"AttachBuffer first"},
		{failing(c.Dup(t.Context())),
			"mpi: Dup, on rank 0 of world: MPI_ERR_COMM: the wire to rank 1 of world (profile cloudfpga) carries no " +
				"communicators, only the world: make a communicator of the other ranks with MPI_Comm_create_group " +
				"(Create), and exchange messages with it over the world; see \"FPGA ranks\" in docs/c.md"},
		{failing(Recv(t.Context(), nil, b, 1, 3)),
			"mpi: Recv from rank 1, tag 3: MPI_ERR_COMM: the communicator is nil: the calling rank is not a " +
				"member of it"},
		{Send(t.Context(), c, b, AnySource, AnyTag),
			"mpi: Send to rank MPI_ANY_SOURCE, tag MPI_ANY_TAG, on rank 0 of world: MPI_ERR_RANK: there is no rank " +
				"MPI_ANY_SOURCE: world has ranks 0 to 1"},
		{Waitall(t.Context(), []Request{{}, failed, {}}, nil),
			"mpi: Waitall: MPI_ERR_IN_STATUS: 1 of 3 requests failed; the first of them, number 1, says: mpi: Issend " +
				"to rank 1, tag 2, on rank 0 of grid: MPI_ERR_OTHER: broken"},
		{failing(request.Wait(t.Context())),
			"mpi: Irecv from any source, any tag, on rank 0 of grid: MPI_ERR_OTHER: broken"},
		{failing(c.Group().Incl(7)),
			"mpi: Group.Incl: MPI_ERR_RANK: there is no rank 7: the group has ranks 0 to 1"},
		{Waitall(t.Context(), make([]Request, 2), make([]Status, 1)),
			"mpi: Waitall: MPI_ERR_ARG: there are 1 statuses for 2 requests: give as many, or nil"},
	} {
		if e.err == nil || e.err.Error() != e.want {
			t.Errorf("the error is\n%v\nnot\n%s", e.err, e.want)
		}
	}
}

// TestBufferedErrors checks that DetachBuffer returns the errors of buffered sends, and keeps a limited number of them.
func TestBufferedErrors(t *testing.T) {
	d := &nullDevice{size: 2, err: mpe.ErrFull}
	c := newComm(t, d)
	if err := c.AttachBuffer(8); err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for range n {
		if err := Bsend(c, []int64{1}, 1, 0); err != nil {
			t.Fatal(err)
		}
	}
	size, err := c.DetachBuffer(t.Context())
	if size != 8 || !errors.Is(err, mpe.ErrFull) || ClassOf(err) != ErrInStatus {
		t.Errorf("DetachBuffer gives %d and %v", size, err)
	}
	var failed *requestsError
	if !errors.As(err, &failed) || failed.failed != n || failed.total != n || len(failed.errs) != maxBufferErrors {
		t.Errorf("of %d errors, these are returned: %+v", n, failed)
	}
}

func TestClasses(t *testing.T) {
	// The numbers in Open MPI's mpi.h.
	for class, want := range map[Class]struct {
		number int
		name   string
	}{
		Success: {0, "MPI_SUCCESS"}, ErrBuffer: {1, "MPI_ERR_BUFFER"}, ErrTag: {4, "MPI_ERR_TAG"},
		ErrRequest: {7, "MPI_ERR_REQUEST"}, ErrDims: {12, "MPI_ERR_DIMS"}, ErrTruncate: {15, "MPI_ERR_TRUNCATE"},
		ErrInStatus: {18, "MPI_ERR_IN_STATUS"}, ErrPending: {19, "MPI_ERR_PENDING"},
		ErrNoMem: {34, "MPI_ERR_NO_MEM"}, ErrKeyval: {36, "MPI_ERR_KEYVAL"}, 20: {20, "class(20)"},
		-1: {-1, "class(-1)"},
	} {
		if int(class) != want.number || class.String() != want.name {
			t.Errorf("%v is number %d, not %s, number %d", class, int(class), want.name, want.number)
		}
	}
	for c := range Class(len(classNames)) {
		if named := c <= ErrPending || c == ErrNoMem || c == ErrKeyval; (classNames[c][0] != "") != named ||
			(classNames[c][1] != "") != named || ClassOf(c) != c {
			t.Errorf("class %d: %v is %v", c, c, ClassOf(c))
		}
	}
	if got := ClassOf(errors.New("x")); got != ErrUnknown {
		t.Errorf("another error is %v", got)
	}
	if got := ErrTruncate.Error(); got != "MPI_ERR_TRUNCATE: the message is longer than the buffer" {
		t.Errorf("ErrTruncate says %q", got)
	}
	if Congruent.String() != "MPI_CONGRUENT" || Comparison(9).String() != "MPI_UNDEFINED" {
		t.Errorf("comparisons are called %v and %v", Congruent, Comparison(9))
	}
	if got := ClassOf(nil); got != Success {
		t.Errorf("no error is %v", got)
	}
}

// TestNewMistakes checks that an inconsistent device is rejected.
func TestNewMistakes(t *testing.T) {
	for _, d := range []*nullDevice{{size: 0}, {size: 1, peer: mpe.ErrRank}} {
		if _, err := New(d); !errors.Is(err, ErrIntern) {
			t.Errorf("New(%+v): %v", d, err)
		}
	}
	d := &nullDevice{size: 2, status: mpe.Status{Peer: 2}}
	if _, err := Recv(t.Context(), newComm(t, d), []int32{0}, AnySource, 0); !errors.Is(err, ErrIntern) {
		t.Errorf("a message of a rank that does not exist: %v", err)
	}
}

// TestHalfStarted checks that a call that fails cancels the operations it has already posted.
func TestHalfStarted(t *testing.T) {
	d := &nullDevice{size: 2, sends: mpe.ErrFull}
	c := newComm(t, d)
	_, err := Sendrecv(t.Context(), c, []int32{1}, 1, 5, []int32{1}, 1, 6)
	var e *Error
	if !errors.As(err, &e) || !e.Send || e.Tag != 5 || d.cancel != 1 {
		t.Errorf("Sendrecv says %v, and cancelled %d operations", err, d.cancel)
	}
	d.cancel, d.status.Bytes = 0, 20
	if _, err := c.Dup(t.Context()); !errors.Is(err, mpe.ErrFull) {
		t.Errorf("Dup says %v", err)
	}
	// Ballots of another size mean that the other ranks made a different call.
	d.sends, d.status.Bytes = nil, 4
	c = newComm(t, d)
	if _, err := c.Dup(t.Context()); !errors.Is(err, ErrIntern) {
		t.Errorf("Dup says %v", err)
	}
	request, err := SendInit(c, []int32{1}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	d.sends = mpe.ErrFull
	if err := Startall([]Request{request}); !errors.Is(err, mpe.ErrFull) || !errors.Is(err, ErrNoMem) {
		t.Errorf("Startall says %v", err)
	}
	d.sends = nil
	if err := request.Start(); err != nil {
		t.Errorf("after it failed, Start says %v", err)
	}
}
