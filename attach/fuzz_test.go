package attach

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// FuzzServer: whatever a program sends, it is disconnected in the end, and
// nothing of it is left.
func FuzzServer(f *testing.F) {
	join := func(frames ...[]byte) []byte { return bytes.Join(frames, nil) }
	f.Add(join(startFrame(recvStart(1, 4), nil), startFrame(sendStart(2, 4), []byte("abcd")), cancelFrame(1)))
	f.Add(join(startFrame(sendStart(2, 8), []byte("abcd")), dataFrame(2, []byte("efgh")), appendHeader(nil, frameBye, 0)))
	f.Add(join(appendProbe(nil, &probe{id: 3, source: 1, wait: true}), withdrawFrame(3, io.EOF)))
	f.Add(join(startFrame(sendStart(2, 8), nil), withdrawFrame(2, context.Canceled), dataFrame(2, []byte("x"))))
	h := serve(f, newWorld(2, 0), Options{Share: true, Limits: Limits{Operations: 16, Bytes: 1 << 20}})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := h.attach(t, 0)
		go func() {
			_, _ = c.conn.Write(b) // the daemon may hang up
			c.conn.CloseWrite()
		}()
		for {
			err := c.in.next()
			if err == nil {
				err = c.in.skip()
			}
			if _, broken := errors.AsType[*protocolError](err); broken {
				t.Fatalf("the daemon's answer cannot be read: %v", err)
			}
			if err != nil {
				break
			}
		}
		until(t, "the program has left", func() bool { return len(h.server.Attached()) == 0 })
		if n := h.w.openOps(0); n > 0 {
			t.Errorf("%d operations are left", n)
		}
		h.w.mu.Lock()
		h.w.ranks[0].sent, h.w.ranks[1].sent = nil, nil
		h.w.mu.Unlock()
	})
}

// FuzzClient: whatever a daemon sends, operations end and buffers stay whole.
func FuzzClient(f *testing.F) {
	const id = 1 << 32
	f.Add(doneFrame(done{id: id, stored: 8}, "12345678"))
	f.Add(append(dataFrame(id, []byte("1234")), doneFrame(done{id: id, stored: 8, err: &handshake.TimeoutError{}}, "5678")...))
	f.Add(doneFrame(done{id: id, err: &mpe.WaitError{}}, ""))
	f.Add(refusedFrame(refused(Closing, "x")))
	f.Add(appendHeader(nil, frameBye, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, daemon := fakeDaemon(t)
		guarded := bytes.Repeat([]byte{0xee}, 24)
		op := recv(t, c, 1, 0, guarded[8:16])
		probed := make(chan struct{})
		go func() {
			defer close(probed)
			c.Probe(context.Background(), mpe.Match{}, false)
		}()
		go io.Copy(io.Discard, daemon.conn)
		daemon.conn.Write(b)
		daemon.conn.Close()
		op.Wait(within(t))
		<-probed
		if !bytes.Equal(guarded[:8], bytes.Repeat([]byte{0xee}, 8)) || !bytes.Equal(guarded[16:], guarded[:8]) {
			t.Errorf("bytes beside the buffer were written: %x", guarded)
		}
		c.Close(within(t))
	})
}

// FuzzHello: the first frame of a program, and of what is none.
func FuzzHello(f *testing.F) {
	f.Add(helloFrame(hello{version: Version, rank: AnyRank}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := newFrameReader(bytes.NewReader(b)).readHello()
		if err == nil && !bytes.HasPrefix(b[frameHeaderLen:], []byte(magic)) {
			t.Errorf("%x is %+v", b, h)
		}
	})
}
