package daemon

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// stopInSend starts to stop a daemon while the DATA of a message is waiting for its ACK.
func stopInSend(t *testing.T, extra string) (r *running, fpga *farEnd, sent, stopped chan error) {
	t.Helper()
	c := newCluster(t)
	r = start(t, c.yaml(extra, "run: host", "peer: fpga"))
	fpga = at(t, c.addr(1), c.addr(0))
	sent, stopped = make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := r.findRank(0).Engine.Send(within(t), 1, pattern(3), mpe.Options{})
		sent <- err
	}()
	fpga.awaits(protocol.SendRequest)
	fpga.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
	if b := fpga.awaits(protocol.Data); !bytes.Equal(b[protocol.HeaderLen:], pattern(3)) {
		t.Fatalf("%x arrived", b)
	}
	go func() { stopped <- r.stop() }()
	r.log.waitFor(t, `message pending at stop`)
	r.log.waitFor(t, " for ACK from rank 1")
	if err := r.phase.checkReady(); !errors.Is(err, errStopping) {
		t.Errorf("while messages end, it is said to be ready: %v", err)
	}
	return r, fpga, sent, stopped
}

// TestStopWaits checks that a message in progress can complete.
func TestStopWaits(t *testing.T) {
	r, fpga, sent, stopped := stopInSend(t, "stop_timeout: 20s")
	fpga.says(protocol.Ack, protocol.RecvInt, 0, nil)
	if err := <-sent; err != nil {
		t.Error(err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if log := r.log.String(); strings.Contains(log, "aborted") {
		t.Errorf("a message was aborted:\n%s", log)
	}
}

// TestStopAborts checks that a message that does not complete in time is aborted, which is logged.
func TestStopAborts(t *testing.T) {
	for _, limit := range []string{"50ms", "0s"} {
		r, _, sent, stopped := stopInSend(t, "stop_timeout: "+limit)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if err := <-sent; !errors.Is(err, mpe.ErrClosed) {
			t.Error(err)
		}
		r.log.waitFor(t, "stop_timeout expired, pending messages aborted")
		r.log.waitFor(t, "message aborted")
	}
}

// TestStopLogsWaits checks that messages that have not started are logged but not waited for, and that kernels
// waiting for work are not logged.
func TestStopLogsWaits(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("stop_timeout: 20s", "run: host", "run: standin", "peer: fpga"))
	if _, err := r.findRank(0).Engine.Isend(2, pattern(1), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.findRank(0).Engine.Irecv(1, make([]byte, 4), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	log := r.log.String()
	for _, want := range []string{
		"message pending at stop",
		" for CLEAR_TO_SEND from rank 2",
		" for SEND_REQUEST from rank 1",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
	if strings.Contains(log, "rank 1 waits") || strings.Contains(log, "aborted") {
		t.Errorf("the log says too much:\n%s", log)
	}
}

func TestManyWaits(t *testing.T) {
	for _, tt := range []struct{ waits, lines int }{{0, 0}, {1, 1}, {maxStopLines, maxStopLines},
		{maxStopLines + 7, maxStopLines + 1}} {
		core, logs := observer.New(zapcore.InfoLevel)
		logWaits(zap.New(core), zapcore.InfoLevel, "pending", 3, make([]mpe.Waiting, tt.waits))
		lines := logs.All()
		if len(lines) != tt.lines ||
			tt.waits > maxStopLines && fmt.Sprint(lines[maxStopLines].ContextMap()) != "map[rank:3 suppressed:7]" {
			t.Errorf("%d waits: %+v", tt.waits, lines)
		}
	}
}
