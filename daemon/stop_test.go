package daemon

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// stopInSend begins to stop a daemon while DATA of a message waits for its ACK.
func stopInSend(t *testing.T, extra string) (r *running, fpga *farEnd, sent, stopped chan error) {
	t.Helper()
	c := newCluster(t)
	r = start(t, c.yaml(extra, "run: host", "peer: fpga"))
	fpga = at(t, c.addr(1), c.addr(0))
	sent, stopped = make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.local(0).Engine.Send(within(t), 1, pattern(3), mpe.Options{})
		sent <- err
	}()
	fpga.awaits(protocol.SendRequest)
	fpga.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	if b := fpga.awaits(protocol.Data); !bytes.Equal(b[protocol.HeaderLen:], pattern(3)) {
		t.Fatalf("%x arrived", b)
	}
	go func() { stopped <- r.stop() }()
	r.log.waitFor(t, "when it was told to stop, rank 0 waits for ACK from rank 1 since")
	if err := r.phase.ready(); !errors.Is(err, errStopping) {
		t.Errorf("while messages end, it is said to be ready: %v", err)
	}
	return r, fpga, sent, stopped
}

// TestStopWaits: a message that is under way ends well.
func TestStopWaits(t *testing.T) {
	r, fpga, sent, stopped := stopInSend(t, "stop_timeout: 20s")
	fpga.says(protocol.Ack, protocol.RecvInt, 0, nil)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if log := r.log.String(); strings.Contains(log, "cut off") {
		t.Errorf("something was cut off:\n%s", log)
	}
}

// TestStopCutsOff: what does not end in time is cut off, and the log says who waited
// for what from whom.
func TestStopCutsOff(t *testing.T) {
	for _, limit := range []string{"50ms", "0s"} {
		r, _, sent, stopped := stopInSend(t, "stop_timeout: "+limit)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if err := <-sent; !errors.Is(err, mpe.ErrClosed) {
			t.Error(err)
		}
		r.log.waitFor(t, "rank 0 had messages under way when stop_timeout was over, and they were cut off")
		r.log.waitFor(t, "cut off: rank 0 waits for ACK from rank 1 since")
	}
}

// TestStopTellsWhatWaits: what has not begun to move is not waited for, and the log
// says what it was, but not that kernels wait for work.
func TestStopTellsWhatWaits(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("stop_timeout: 20s", "run: host", "run: standin", "peer: fpga"))
	if _, err := r.local(0).Engine.Isend(2, pattern(1), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.local(0).Engine.Irecv(1, make([]byte, 4), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	log := r.log.String()
	for _, want := range []string{
		"when it was told to stop, rank 0 waits for CLEAR_TO_SEND from rank 2 since",
		"when it was told to stop, rank 0 waits for SEND_REQUEST from rank 1 since",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "rank 1 waits") || strings.Contains(log, "cut off") {
		t.Errorf("the log says too much:\n%s", log)
	}
}

func TestManyWaits(t *testing.T) {
	for _, tt := range []struct{ waits, lines int }{{0, 0}, {1, 1}, {maxStopLines, maxStopLines}, {maxStopLines + 7, maxStopLines + 1}} {
		var lines []string
		logWaits(make([]mpe.Waiting, tt.waits), func(text string, _ ...zap.Field) { lines = append(lines, text) }, 3)
		if len(lines) != tt.lines || tt.waits > maxStopLines && lines[maxStopLines] != "7 more messages of rank 3 waited" {
			t.Errorf("%d waits: %q", tt.waits, lines)
		}
	}
}
