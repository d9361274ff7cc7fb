package tcp

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	// maxBurst is the maximum number of packets written by one system call.
	maxBurst = 64
	// flushWrites is the maximum number of system calls in one flush.
	flushWrites = 4
)

// send writes packets to l, and returns the number accepted. It queues packets that the kernel cannot accept yet, up to
// Config.SendQueue bytes.
func (in *inbox) send(l *link, packets []mpe.Packet) int {
	w := l.wire
	w.mu.Lock()
	n, err := in.sendLocked(l, packets)
	w.mu.Unlock()
	if err != nil {
		// The peer may have received a part of a packet, so no other packet can follow on this connection.
		l.close(err)
	}
	return n
}

// sendLocked implements send with the wire's lock held. It writes packets without copying them while the kernel accepts
// all data, and queues copies of the rest.
func (in *inbox) sendLocked(l *link, packets []mpe.Packet) (taken int, err error) {
	w := l.wire
	if w.out.closed {
		return 0, nil
	}
	if w.out.queuedBytes > 0 {
		if err = in.flush(l); err != nil {
			return 0, err
		}
	}
	full := w.out.queuedBytes > 0
	for taken < len(packets) && !full {
		var n int
		n, full, err = w.writePackets(packets[taken:])
		taken += n
		if err != nil {
			return taken, err
		}
	}
	if full {
		taken += w.out.queue(packets[taken:])
		in.awaitWritable(l)
	}
	return taken, nil
}

// writePackets writes as many packets as it can in one system call. It returns the number of packets accepted, and
// whether the kernel can accept no more data. It queues the rest of a partly written packet.
func (w *wire) writePackets(packets []mpe.Packet) (taken int, full bool, err error) {
	o := &w.out
	parts, asked := 0, 0
	for i := range packets {
		p := &packets[i]
		if i == maxBurst {
			packets = packets[:i]
			break
		}
		o.iovs[parts].Base = &p.Header[0]
		o.iovs[parts].SetLen(protocol.ExtHeaderLen)
		parts++
		if len(p.Payload) > 0 {
			o.iovs[parts].Base = &p.Payload[0]
			o.iovs[parts].SetLen(len(p.Payload))
			parts++
		}
		asked += protocol.ExtHeaderLen + len(p.Payload)
	}
	sent, err := w.sendmsg(parts)
	if err != nil || sent == asked {
		return len(packets), false, err
	}
	for i := range packets {
		length := protocol.ExtHeaderLen + len(packets[i].Payload)
		if sent < length {
			if sent > 0 {
				o.queueRest(&packets[i], sent)
				i++
			}
			return i, true, nil
		}
		sent -= length
	}
	return len(packets), true, nil // not reached: fewer bytes were sent than requested
}

// sendmsg writes the first parts elements of iovs, and returns the number of bytes that the kernel accepted. It makes a
// raw system call: a call with 2 MiB takes about 0.2 ms, during which Go's scheduler cannot reuse this thread, but
// entering the scheduler, as a blocking call does, would add a twentieth to the time of the message.
func (w *wire) sendmsg(parts int) (int, error) {
	o := &w.out
	o.msg.Iov = &o.iovs[0]
	o.msg.SetIovlen(parts)
	defer clear(o.iovs[:parts]) // the caller owns the memory: drop the references
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(w.fd), uintptr(unsafe.Pointer(&o.msg)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EAGAIN:
			return 0, nil
		case unix.EINTR:
		default:
			return 0, os.NewSyscallError("sendmsg", errno)
		}
	}
}

// queueRest queues the rest of a packet whose first sent bytes have been written. It ignores the queue limit, because
// without the rest the stream would be corrupt.
func (o *outflow) queueRest(p *mpe.Packet, sent int) {
	o.queuedBytes += protocol.ExtHeaderLen + len(p.Payload) - sent
	if sent < protocol.ExtHeaderLen {
		o.append(p.Header[sent:])
		sent = protocol.ExtHeaderLen
	}
	o.append(p.Payload[sent-protocol.ExtHeaderLen:])
}

// flush writes as much queued data as the kernel accepts. The caller holds the wire's lock.
func (in *inbox) flush(l *link) error {
	o := &l.wire.out
	for range flushWrites {
		if o.queuedBytes == 0 {
			break
		}
		parts, asked := 0, 0
		for _, block := range o.list[:min(len(o.list), writeBlocks)] {
			if parts == 0 {
				block = block[o.firstWritten:]
			}
			o.iovs[parts].Base = &block[0]
			o.iovs[parts].SetLen(len(block))
			parts++
			asked += len(block)
		}
		sent, err := l.wire.sendmsg(parts)
		if err != nil {
			return err
		}
		o.consume(sent)
		if sent < asked {
			break
		}
	}
	if o.queuedBytes == 0 {
		in.setWriteInterest(l, false)
	}
	return nil
}

// consume removes the first sent bytes of the queue, which have been written.
func (o *outflow) consume(sent int) {
	if sent == 0 {
		return
	}
	o.lastProgress = time.Now()
	o.queuedBytes -= sent
	done := 0
	for _, block := range o.list {
		left := len(block) - o.firstWritten
		if sent < left {
			break
		}
		sent -= left
		o.firstWritten = 0
		o.recycle(block)
		done++
	}
	o.firstWritten += sent
	o.remove(done)
}

// awaitWritable arranges for queued data to be written when the kernel can accept it. If the kernel accepts no data
// within the write timeout, the link is closed.
func (in *inbox) awaitWritable(l *link) {
	o := &l.wire.out
	if o.queuedBytes == 0 {
		return
	}
	if !o.wantsWrite {
		o.lastProgress = time.Now()
	}
	in.setWriteInterest(l, true)
	if o.timerRunning {
		return
	}
	o.timerRunning = true
	if o.timer == nil {
		o.timer = time.AfterFunc(in.writeTimeout, func() { in.checkProgress(l) })
	} else {
		o.timer.Reset(in.writeTimeout)
	}
}

// setWriteInterest enables or disables the epoll notification that the kernel can accept more data.
func (in *inbox) setWriteInterest(l *link, yes bool) {
	o := &l.wire.out
	if o.wantsWrite == yes {
		return
	}
	o.wantsWrite = yes
	if yes {
		in.writersWaiting.Add(1)
	} else {
		in.writersWaiting.Add(-1)
	}
	if o.registered {
		// This cannot fail: the wire is open and registered.
		ev := l.epollEvents()
		_ = unix.EpollCtl(in.epfd, unix.EPOLL_CTL_MOD, l.wire.fd, &ev)
	}
}

// epollEvents returns the events that the epoll instance should report for l.
func (l *link) epollEvents() unix.EpollEvent {
	events := uint32(unix.EPOLLIN)
	if l.wire.out.wantsWrite {
		events |= unix.EPOLLOUT
	}
	return unix.EpollEvent{Events: events, Fd: int32(l.peer.rank)}
}

// checkProgress closes a link whose peer has accepted no data within the write timeout.
func (in *inbox) checkProgress(l *link) {
	w := l.wire
	w.mu.Lock()
	err := in.progressError(l)
	w.mu.Unlock()
	if err != nil {
		l.close(err)
	}
}

// progressError handles the expiry of a wire's timer, with the wire's lock held. It returns os.ErrDeadlineExceeded if
// the kernel has accepted nothing for the write timeout, and otherwise rearms the timer while data is queued.
func (in *inbox) progressError(l *link) error {
	o := &l.wire.out
	o.timerRunning = false
	if o.closed || o.queuedBytes == 0 {
		return nil
	}
	if err := in.flush(l); err != nil { // perhaps no goroutine has polled
		return err
	}
	if o.queuedBytes == 0 {
		return nil
	}
	left := in.writeTimeout - time.Since(o.lastProgress)
	if left <= 0 {
		return os.ErrDeadlineExceeded
	}
	o.timerRunning = true
	o.timer.Reset(left)
	return nil
}
