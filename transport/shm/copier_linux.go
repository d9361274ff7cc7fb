package shm

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// copyTimeout limits how long a copy waits for memory to become resident. It is long enough for the system to read the
// owner's page from slow storage.
const copyTimeout = 5 * time.Second

var (
	errCopyTimeout = fmt.Errorf("not received within %v", copyTimeout)
	errStalled     = errors.New("its memory is no longer read, because an earlier copy did not complete")
)

// copier reads memory of a peer's process that is not resident.
//
// Reading such memory blocks until the pages are resident, possibly forever, depending on the other process and on the
// backing of its memory (userfaultfd, FUSE, storage). Meanwhile, only SIGKILL interrupts the system call, and its
// destination must not be used. The copier therefore makes the call in a separate goroutine, into private memory, and
// without a lock. If the call never returns, only this goroutine is lost, and nothing more is read from the peer's
// memory.
type copier struct {
	mu      sync.Mutex
	jobs    chan *job
	lastJob *job
	// stopReason is the reason why the copier accepts no more jobs, nil while it runs.
	stopReason error
	exited     chan struct{}
	reader     remoteReader
}

// job is an operation that blocks until another process's memory is resident.
type job struct {
	do func(*remoteReader) error
	// onDone is called when the job completes. If the job misses its deadline, onDone is also called then.
	onDone   func()
	deadline time.Time
	timer    *time.Timer
	// done is closed when the job completes, after err has been set.
	done chan struct{}
	err  error
}

// start starts a job.
func (c *copier) start(do func(*remoteReader) error, then func()) (*job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopReason != nil {
		return nil, c.stopReason
	}
	if c.jobs == nil {
		c.jobs, c.exited = make(chan *job, 1), make(chan struct{})
		go c.run()
	}
	j := &job{do: do, onDone: then, deadline: time.Now().Add(copyTimeout), done: make(chan struct{})}
	j.timer = time.AfterFunc(copyTimeout, then)
	select {
	case c.jobs <- j:
		c.lastJob = j
		return j, nil
	default: // two jobs from earlier links are pending
		j.timer.Stop()
		return nil, errStalled
	}
}

// run executes the jobs one by one. It stays in a job for as long as the system call blocks.
func (c *copier) run() {
	defer close(c.exited)
	for j := range c.jobs {
		j.err = j.do(&c.reader)
		j.timer.Stop()
		close(j.done)
		j.onDone()
	}
}

// result reports whether a job is complete or has missed its deadline. A missed deadline also stops the copier.
func (c *copier) result(j *job) (over bool, err error) {
	select {
	case <-j.done:
		return true, j.err
	default:
	}
	if time.Now().Before(j.deadline) {
		return false, nil
	}
	c.stop(errStalled)
	return true, errCopyTimeout
}

// stop makes the copier accept no more jobs. It waits for the copier's goroutine, unless the goroutine may be stuck.
func (c *copier) stop(reason error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopReason != nil {
		return
	}
	c.stopReason = reason
	if c.jobs == nil {
		return
	}
	close(c.jobs)
	select {
	case <-c.lastJob.done:
		<-c.exited
	default:
	}
}

// probe tests whether the system allows this process to read the memory of r, and opens the pagemap of r.
func (c *copier) probe(r remote) (*pagemap, error) {
	if r.addr == 0 {
		return nil, errOtherMemory
	}
	met := make(chan struct{}, 2)
	var pages *pagemap
	j, err := c.start(func(rr *remoteReader) (err error) {
		if err = rr.read(&r, nil, 0); err != nil {
			return err
		}
		if pages, err = openPagemap(r.pid); err == nil && !rr.resident(pages, r.memoryID.addr, nonceLen) {
			pages.close()
			err = errors.New("the system does not report which memory is mapped")
		}
		return err
	}, func() { met <- struct{}{} })
	if err != nil {
		return nil, err
	}
	for {
		<-met
		if over, err := c.result(j); over {
			if err != nil {
				return nil, err
			}
			return pages, nil
		}
	}
}

// postponed is a packet whose payload was not resident when Fetch tried to copy it.
type postponed struct {
	packet []byte
	remotePayload
}

// postpone queues a packet until its payload is resident.
func (l *link) postpone(w *pendingGet) {
	l.postponed = append(l.postponed, postponed{packet: w.packet, remotePayload: w.remotePayload})
}

// resumePostponed returns the first postponed packet if its payload is available. While packets are postponed, the
// inbox reads nothing else from the link.
func (in *inbox) resumePostponed(l *link, batch []mpe.RxPacket) (n int) {
	w := &l.postponed[0]
	c := &l.peer.copier
	if l.job == nil {
		buf, from, addr := make([]byte, w.payloadLen), l.remote, w.addr
		var err error
		l.job, err = c.start(func(rr *remoteReader) error { return rr.read(&from, buf, addr) }, in.wake)
		if err != nil {
			in.disableSingleCopy(l, err)
		}
		l.jobBuf = buf
		return 0
	}
	over, err := c.result(l.job)
	switch {
	case !over:
		return 0
	case err != nil && w.isValid():
		in.disableSingleCopy(l, err)
	case err == nil && w.confirmCopy():
		batch[0] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: l.peer.rank, SourceAddr: l.peer.addr, Bytes: w.packet,
			Tail: l.jobBuf}
		n = 1
	}
	l.job, l.jobBuf = nil, nil
	l.postponed = append(l.postponed[:0], l.postponed[1:]...)
	in.unreleased = append(in.unreleased, l)
	return n
}

// wake makes a waiting goroutine call Poll soon. It is not needed while a call is in progress.
func (in *inbox) wake() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.freed {
		in.doorbell.wake()
	}
}

// ready reports whether Poll may find a packet on the link.
func (l *link) ready() bool {
	if len(l.postponed) == 0 {
		return l.in.ready()
	}
	if l.job == nil {
		return true
	}
	over, _ := l.peer.copier.result(l.job)
	return over
}
