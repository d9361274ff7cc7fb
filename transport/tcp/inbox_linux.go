package tcp

import (
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// run is the part of Conn.runLink after admission, for a Conn without reading goroutines. It makes conn the connection
// to p, and returns when the connection is closed.
func (in *inbox) run(p *peer, conn *net.TCPConn) (worked bool) {
	from := remoteAddr(conn)
	fd, err := progress.TakeDescriptor(conn)
	if err != nil {
		p.admissionMu.Unlock()
		in.c.recordFailure(p, err)
		conn.Close()
		return false
	}
	w := &wire{fd: fd}
	w.out.limit = in.c.cfg.SendQueue
	l := &link{peer: p, from: from, wire: w, closing: make(chan struct{}), done: make(chan struct{})}
	added := in.add(l)
	p.admissionMu.Unlock()
	if !added {
		unix.Close(w.fd)
		return false
	}
	<-l.done
	return w.hasReceived.Load()
}

// add queues a new link. Poll reports the link only after it has read all data from the previous link. add returns
// false if the inbox is closed.
func (in *inbox) add(l *link) bool {
	in.newLinksMu.Lock()
	defer in.newLinksMu.Unlock()
	if in.closed.Load() {
		return false
	}
	if old := l.peer.replace(l); old != nil {
		old.close(errReplaced)
		// Nothing was ever read from the old link, so it is not reported.
		if i := slices.Index(in.newLinks, old); i >= 0 {
			in.newLinks = slices.Delete(in.newLinks, i, i+1)
			in.free(old)
		}
	}
	in.c.closeIfMoved(l)
	in.newLinks = append(in.newLinks, l)
	in.ring()
	return true
}

// notifyPoll makes the next Poll check for events that do not arrive on a connection.
func (in *inbox) notifyPoll() {
	in.newLinksMu.Lock()
	defer in.newLinksMu.Unlock()
	if !in.closed.Load() {
		in.ring()
	}
}

// ringValue is the value written to the eventfd to ring the bell.
var ringValue = []byte{1, 0, 0, 0, 0, 0, 0, 0}

// ring wakes the waiting goroutine. The caller holds newLinksMu, so that the bell becomes readable only after a
// change.
func (in *inbox) ring() {
	in.linksChanged.Store(true)
	_, _ = unix.Write(in.bell, ringValue) // it fails only if the counter is full
}

// reportChanges reports queued events and new links.
func (in *inbox) reportChanges(batch []mpe.RxPacket) (n int) {
	in.newLinksMu.Lock()
	defer in.newLinksMu.Unlock()
	if in.closed.Load() {
		return 0
	}
	var rung [8]byte
	in.linksChanged.Store(false)
	_, _ = unix.Read(in.bell, rung[:])
	taken := &in.c.returnedEvents
	for n < len(batch) {
		got := in.c.queue.pop(taken[:min(len(batch)-n, len(taken))])
		if got == 0 {
			break
		}
		for _, ev := range taken[:got] {
			batch[n] = mpe.RxPacket{Kind: ev.kind, Peer: ev.peer.rank, SourceAddr: ev.from, Bytes: ev.bytes()}
			n++
		}
	}
	left := in.newLinks[:0]
	for _, l := range in.newLinks {
		switch {
		case in.byRank[l.peer.rank] != nil || n == len(batch):
			left = append(left, l)
		case in.register(l):
			batch[n] = mpe.RxPacket{Kind: mpe.RxConnected, Peer: l.peer.rank, SourceAddr: l.from}
			n++
		}
	}
	clear(in.newLinks[len(left):])
	in.newLinks = left
	if n == len(batch) {
		in.ring()
	}
	return n
}

// register starts to read from a link, and reports whether the link is still open.
func (in *inbox) register(l *link) bool {
	select {
	case <-l.closing:
		in.free(l)
		return false
	default:
	}
	l.wire.mu.Lock()
	ev := l.epollEvents()
	err := unix.EpollCtl(in.epfd, unix.EPOLL_CTL_ADD, l.wire.fd, &ev)
	l.wire.out.registered = err == nil
	l.wire.mu.Unlock()
	if err != nil { // out of memory
		l.close(os.NewSyscallError("epoll_ctl", err))
		in.free(l)
		return false
	}
	in.links = append(in.links, l)
	in.byRank[l.peer.rank] = l
	return true
}

// endLink marks a link as ended: the link delivers no more data.
func (in *inbox) endLink(l *link, reason error) {
	l.close(reason)
	l.wire.ended = true
	in.endedLinks = append(in.endedLinks, l)
}

// removeEnded removes finished links.
func (in *inbox) removeEnded() {
	if len(in.endedLinks) == 0 {
		return
	}
	for i, l := range in.endedLinks {
		in.endedLinks[i] = nil
		in.removeLink(l)
	}
	in.endedLinks = in.endedLinks[:0]
	in.notifyPoll() // a new link may have replaced one of them
}

func (in *inbox) removeLink(l *link) {
	if i := slices.Index(in.links, l); i >= 0 {
		in.links = slices.Delete(in.links, i, i+1)
	}
	in.byRank[l.peer.rank] = nil
	if in.nearLink == l {
		in.nearLink = nil
	}
	if in.backlogged == l {
		in.backlogged = nil
	}
	in.free(l)
}

// free releases the resources of a link. The link's reader must not be in use.
func (in *inbox) free(l *link) {
	w := l.wire
	w.mu.Lock()
	if w.out.registered {
		_ = unix.EpollCtl(in.epfd, unix.EPOLL_CTL_DEL, w.fd, nil) // cannot fail: it was added
		w.out.registered = false
	}
	in.setWriteInterest(l, false)
	w.close()
	w.mu.Unlock()
	l.peer.remove(l)
	close(l.done)
}

// close closes all links, after waiting for the peers to read pending data.
func (in *inbox) close() {
	in.closeOnce.Do(func() {
		in.newLinksMu.Lock()
		in.closed.Store(true)
		in.ring()
		in.newLinksMu.Unlock()
		in.mu.Lock()
		defer in.mu.Unlock()
		all := append(slices.Clone(in.links), in.newLinks...)
		in.drain(all)
		for _, l := range all {
			l.close(net.ErrClosed)
			in.removeLink(l)
		}
		in.newLinks, in.backlogged, in.endedLinks = nil, nil, nil
		in.waitMu.Lock() // wait until the waiting goroutine has seen the bell
		defer in.waitMu.Unlock()
		unix.Close(in.bell)
		unix.Close(in.epfd)
	})
}

// drain waits for the peers to read pending data: CLOSE packets, and acknowledgements that they need for a clean
// shutdown. It returns when all peers have closed their connections, or after drainTime.
func (in *inbox) drain(all []*link) {
	deadline := time.Now().Add(drainTime)
	scrap := make([]byte, readLen)
	left := slices.Clone(all)
	for {
		left = slices.DeleteFunc(left, func(l *link) bool { return in.drainLink(l, scrap) })
		ms := time.Until(deadline).Milliseconds()
		if len(left) == 0 || ms <= 0 {
			return
		}
		fds := make([]unix.PollFd, len(left))
		for i, l := range left {
			fds[i] = unix.PollFd{Fd: int32(l.wire.fd), Events: unix.POLLIN}
			if l.wire.out.queuedBytes > 0 {
				fds[i].Events |= unix.POLLOUT
			}
		}
		if _, err := unix.Poll(fds, int(ms)); err != nil && err != unix.EINTR {
			return
		}
	}
}

// drainLink writes pending data, and then shuts down the sending side. It reports whether the peer has closed
// the connection.
func (in *inbox) drainLink(l *link, scrap []byte) (over bool) {
	w := l.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.out.shutdown {
		w.out.closed = true // send rejects packets from now on
		if in.flush(l) != nil {
			return true
		}
		if w.out.queuedBytes == 0 {
			w.out.shutdown = true
			_ = unix.Shutdown(w.fd, unix.SHUT_WR) // it fails if the peer has closed the connection
		}
	}
	// Closing a connection with unread data would reset it, and data already written would be lost.
	n, err := unix.Read(w.fd, scrap)
	return n == 0 && err == nil || err != nil && err != unix.EAGAIN && err != unix.EINTR
}
