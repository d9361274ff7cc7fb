package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/spool"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/recorder"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// analyzed returns the analysis of a recording, made with default options, and the recording's comments.
func analyzed(t *testing.T, src capture.Source, err error) *capture.Report {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	a := capture.NewAnalysis("record", capture.AnalysisOptions{KeepMessages: 100})
	if err := a.Analyze(src); err != nil {
		t.Fatal(err)
	}
	return a.Report()
}

// TestRecordOfAFailure checks that a timeout, an unacknowledged fragmented message and an unreachable peer each
// leave a record, without the use of a tool. The log and the status name the record, and its analysis shows the
// wait.
func TestRecordOfAFailure(t *testing.T) {
	for _, tt := range []struct {
		name, ranks string
		fail        func(t *testing.T, c cluster, r *running)
		failure     state.Failure // Rank and Peer are the same in all cases
		finding     capture.FindingKind
		text        string
	}{
		{
			"timeout", "peer: cpu, link: {deadlines: {clear: 250ms}}",
			func(t *testing.T, _ cluster, r *running) {
				if _, err := r.findRank(0).Engine.Send(within(t), 1, make([]byte, 4), mpe.Options{}); !errors.Is(err,
					handshake.ErrTimeout) {
					t.Error(err)
				}
			},
			state.Failure{Operation: state.OperationSend, State: "WAIT_CLEAR"}, capture.NeverCleared,
			"for CLEAR_TO_SEND from rank 1: rank 1 has not posted the matching receive, is not running",
		},
		{
			"the caller's timeout", "peer: cpu",
			func(t *testing.T, _ cluster, r *running) {
				_, err := r.client.Send(within(t), control.SendRequest{From: 0, To: 1, Timeout: 150 * time.Millisecond},
					bytes.NewReader(make([]byte, 4)))
				if control.KindOf(err) != control.Timeout {
					t.Error(err)
				}
			},
			state.Failure{Operation: state.OperationSend, State: "WAIT_CLEAR"}, capture.NeverCleared,
			"for CLEAR_TO_SEND from rank 1",
		},
		{
			"not acknowledged", "peer: fpga, link: {deadlines: {ack: 250ms}}",
			func(t *testing.T, c cluster, r *running) {
				fpga := at(t, c.addr(1), c.addr(0))
				sent := make(chan error, 1)
				go func() {
					_, err := r.findRank(0).Engine.Send(within(t), 1, make([]byte, 4000), mpe.Options{})
					sent <- err
				}()
				fpga.awaits(protocol.SendRequest)
				fpga.says(protocol.ClearToSend, protocol.RecvInt, 0, nil)
				if err := <-sent; !errors.Is(err, handshake.ErrPartial) {
					t.Error(err)
				}
			},
			state.Failure{Operation: state.OperationSend, State: "WAIT_ACK"}, capture.StillWaiting, "for ACK from rank 1",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			r := start(t, c.yaml("", "run: host", tt.ranks))
			tt.fail(t, c, r)
			r.log.waitFor(t, "failure record written")
			s, err := r.client.Status(within(t))
			if err != nil || len(s.Failures) == 0 {
				t.Fatalf("%+v, %v", s.Failures, err)
			}
			f := &s.Failures[0]
			if f.Rank != 0 || f.Peer == nil || *f.Peer != 1 || f.Operation != tt.failure.Operation ||
				f.State != tt.failure.State || f.Reason == "" || f.Record == "" {
				t.Fatalf("the failure is %+v", f)
			}
			if line := fmt.Sprintf("%q: %q", "file", f.Record); !strings.Contains(r.log.String(), line) {
				t.Errorf("the log does not say %s:\n%s", line, r.log)
			}
			src, err := capture.Options{}.OpenFile(f.Record)
			report := analyzed(t, src, err)
			if len(report.Findings) != 1 || report.Findings[0].Kind != tt.finding ||
				!strings.Contains(report.Findings[0].Text, tt.text) {
				t.Errorf("findings %+v, want %s with %q", report.Findings, tt.finding, tt.text)
			}
			if !strings.Contains(report.Comment, "written because "+f.Reason) {
				t.Errorf("the record says %q", report.Comment)
			}
		})
	}
}

// TestRecordOfAnUnreachablePeer checks that an unreachable peer causes a record even if no operation fails.
func TestRecordOfAnUnreachablePeer(t *testing.T) {
	c, other := newCluster(t), newCluster(t)
	other.network = c.network
	const links = "defaults: {profile: extended, transport: udp, deadlines: {ack: 300ms}}"
	near := start(t, c.yaml(links, "run: host", "peer: software"))
	far := start(t, other.yaml(links, "peer: software", "run: host"))
	go near.findRank(0).Engine.Send(within(t), 1, make([]byte, 4), mpe.Options{})
	if _, err := far.findRank(1).Engine.Recv(within(t), 0, make([]byte, 4), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	near.observer.Noted(0, 1, mpe.Note{Event: state.EventUnreachable}) // as the engine does, but without the wait
	near.log.waitFor(t, "failure record written")
	f := near.recentFailures()[0]
	if f.Operation != state.OperationConnection || f.Record == "" ||
		!strings.Contains(f.Reason, "rank 1 does not answer") {
		t.Fatalf("%+v", f)
	}
	src, err := capture.Options{}.OpenFile(f.Record)
	if report := analyzed(t, src, err); len(report.Summary.Extended) != 2 ||
		report.Summary.Extended[0].Complete+report.Summary.Extended[1].Complete != 1 {
		t.Errorf("%+v", report.Summary)
	}
}

// TestFailuresOfOneEvent checks that failures caused by the same event in an engine, such as the failures of all
// messages to a lost peer, share a record.
func TestFailuresOfOneEvent(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "peer: cpu"))
	r.findRank(0).Engine.Counters(func(*state.RankCounters) { // while the engine's lock is held
		r.observer.Noted(0, 1, mpe.Note{Event: state.EventUnreachable})
		for range 100_000 { // gives the record enough time to be written
			runtime.Gosched()
		}
		r.observer.Done(0, mpe.Status{Send: true, Peer: 1}, &mpe.PeerLostError{Rank: 1, Event: state.EventUnreachable})
	}, func(*state.PeerCounters) {})
	r.log.waitFor(t, "failure record written")
	if f := r.recentFailures(); len(f) != 2 || f[0].Record == "" || f[0].Record != f[1].Record {
		t.Errorf("%+v", f)
	}
}

// TestRecordsAreBounded checks that the spool never exceeds its size, even if a record of all packets would not
// fit in it.
func TestRecordsAreBounded(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("record: {memory: 8MiB, spool: {size: 1MiB}}", echoes(1, "")...))
	random := rand.NewChaCha8([32]byte{}) // gzip cannot compress it
	dir := r.cfg.SpoolDirectory()
	units := make([]pcapng.Unit, 1<<16)
	for i := range units {
		units[i] = pcapng.Unit{
			Packet: int64(i + 1), Time: time.Unix(0, int64(i)*7919*7919), Proto: pcapng.UDP,
			Src: r.cfg.Ranks[0].Address.AddrPort, Dst: r.cfg.Ranks[1].Address.AddrPort,
			Data:      protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Type: protocol.Data, Size: uint32(i)}),
			Truncated: 1000,
		}
		payload := make([]byte, 64)
		random.Read(payload)
		units[i].Data = append(units[i].Data, payload...)
	}
	for i := range 3 {
		data, err := recorder.Encode(recorder.Recording{Units: units}, r.recording.spool.Size(), time.Now(), "test")
		if len(data) < 1<<17 {
			t.Errorf("of all packets, %d bytes are left", len(data))
		}
		if err == nil {
			err = r.recording.spool.Write(fmt.Sprint("2026", i), data)
		}
		if err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) == 0 {
			t.Fatal(err)
		}
		total := int64(0)
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		if total > 1<<20 {
			t.Errorf("after %d records the spool has %d bytes", i+1, total)
		}
	}
}

// TestNoSpool checks that a daemon that cannot create its spool logs this and keeps running, and that it logs
// nothing if the spool is disabled.
func TestNoSpool(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for extra, says := range map[string]bool{
		fmt.Sprintf("record: {spool: {directory: %q}}", filepath.Join(file, "records")): true,
		"record: {spool: {size: 0}}": false,
		"record: {memory: 0}":        false,
	} {
		c := newCluster(t)
		r := start(t, c.yaml(extra, "run: host", "peer: cpu, link: {deadlines: {clear: 50ms}}"))
		if _, err := r.findRank(0).Engine.Send(within(t), 1, make([]byte, 4), mpe.Options{}); !errors.Is(err,
			handshake.ErrTimeout) {
			t.Error(err)
		}
		if got := strings.Contains(r.log.String(), "failure records are disabled"); got != says {
			t.Errorf("%s: the log has the line: %v", extra, got)
		}
		if f := r.recentFailures(); len(f) != 1 || f[0].Record != "" {
			t.Errorf("%s: %+v", extra, f)
		}
	}
}

// TestNoPlaceForRecords checks that there are no records if neither a control socket nor a directory is
// configured, and that this is logged.
func TestNoPlaceForRecords(t *testing.T) {
	for extra, says := range map[string]int{"": 1, "record: {spool: {size: 0}}\n": 0,
		"record: {spool: {directory: \"\"}}\n": 0} {
		core, logs := observer.New(zapcore.InfoLevel)
		text := "control: {socket: \"\"}\n" + extra + "ranks: [{rank: 0, address: 127.0.0.1, run: host}]\n"
		d, err := New(mustParse(t, text), Options{Log: zap.New(core)})
		if err != nil {
			t.Fatal(err)
		}
		d.recording.openSpool()
		if got := logs.FilterMessage(noRecords).Len(); got != says {
			t.Errorf("%q: logged %d times, want %d", extra, got, says)
		}
	}
}

// TestRecordsCannotBeWritten checks that the error is logged only once, and that no record is named that does
// not exist.
func TestRecordsCannotBeWritten(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", "run: host", "peer: cpu"))
	rec := r.recording
	write := func(name string) {
		rec.mu.Lock()
		rec.pending = &pendingRecord{name, "test", r.findRank(0).Rank, 1}
		rec.mu.Unlock()
		rec.writePending()
	}
	dir := r.cfg.SpoolDirectory()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		write(recorder.RecordName(time.Unix(int64(i), 0), "", 0, 1))
	}
	const unwritten, written = "failure record not written", "failure record written"
	if log := r.log.String(); strings.Count(log, unwritten) != 1 || strings.Contains(log, written) {
		t.Errorf("the log:\n%s", log)
	}
	s, err := spool.Open(dir, spool.Kind{Suffix: recorder.Suffix, IsName: recorder.IsName}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	rec.spool = s
	write(recorder.RecordName(time.Unix(9, 0), "", 0, 1))
	if !strings.Contains(r.log.String(), written) {
		t.Errorf("the log:\n%s", r.log)
	}
}

// TestFailures checks that the last hundred failures are kept, and that equal consecutive failures count as
// one.
func TestFailures(t *testing.T) {
	var f failureLog
	now := time.Unix(0, 0)
	for i := range 3 * state.MaxFailures {
		f.addFailure(newFailure(now.Add(time.Duration(i)), 0, i/2%state.MaxFailures*2, state.OperationSend,
			errors.New("refused")))
	}
	f.addFailure(newFailure(now, 1, -1, state.OperationCollective, &mpe.PeerLostError{Rank: 3}))
	list := f.recent()
	if len(list) != state.MaxFailures || list[0].Peer != nil || list[0].Count != 1 || list[1].Count != 2 ||
		list[1].Time != now.Add(3*state.MaxFailures-1) {
		t.Errorf("%d failures, %+v, %+v", len(list), list[0], list[1])
	}
}

// TestCapture requests recorded packets over the control socket: all of them, the most recent ones, and future
// ones as they arrive.
func TestCapture(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("", echoes(1, "")...))
	r.ping(t, 1, 3, 2)
	packets := func(last time.Duration) int64 {
		t.Helper()
		body, profile, err := r.client.Capture(within(t), control.CaptureRequest{MaxAge: last})
		if err != nil || profile != protocol.CloudFPGA {
			t.Fatal(profile, err)
		}
		defer body.Close()
		src, err := capture.Options{}.NewReader(body, "answer")
		report := analyzed(t, src, err)
		if len(report.Findings) > 0 || report.Summary.All.Complete != report.Summary.All.Messages {
			t.Errorf("%+v", report)
		}
		return report.Summary.Packets
	}
	if all, none := packets(0), packets(time.Nanosecond); all != 16 || none != 0 {
		t.Errorf("%d packets of two round trips, %d of the last nanosecond", all, none)
	}
	ctx, cancel := context.WithCancel(within(t))
	defer cancel()
	body, _, err := r.client.Capture(ctx, control.CaptureRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	src, err := capture.Options{}.NewReader(body, "answer")
	if err != nil {
		t.Fatal(err)
	}
	r.ping(t, 1, 3, 1)
	var u pcapng.Unit
	for range 8 {
		if err := src.Next(&u); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if err := src.Next(&u); err != io.EOF || src.Stats().End.IsZero() {
		t.Errorf("after the end of the daemon: %v, %+v", err, src.Stats())
	}
}

// TestCaptureRefused checks the error of a daemon that records no packets.
func TestCaptureRefused(t *testing.T) {
	c := newCluster(t)
	r := start(t, c.yaml("record: {memory: 0}", "run: host", "peer: cpu"))
	if _, _, err := r.client.Capture(within(t), control.CaptureRequest{}); err == nil ||
		!strings.Contains(err.Error(), "record.memory") {
		t.Error(err)
	}
}

// TestRecordOfSharedMemory checks that messages sent through shared memory are recorded if requested, as if
// their packets had full headers.
func TestRecordOfSharedMemory(t *testing.T) {
	for extra, packets := range map[string]bool{"record: {shared_memory: true}": true, "": false} {
		c := newCluster(t)
		r := start(t, c.yaml(extra+"\ndefaults: {profile: extended, transport: shm}", "run: host", "run: host"))
		for _, n := range []int{4, 8, 1000} {
			sent := make(chan error, 1)
			go func() {
				_, err := r.findRank(0).Engine.Send(within(t), 1, make([]byte, n), mpe.Options{})
				sent <- err
			}()
			if _, err := r.findRank(1).Engine.Recv(within(t), 0, make([]byte, n), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
		}
		body, _, err := r.client.Capture(within(t), control.CaptureRequest{})
		if err != nil {
			t.Fatal(err)
		}
		src, err := capture.Options{}.NewReader(body, "answer")
		report := analyzed(t, src, err)
		body.Close()
		if got := report.Summary.Extended; packets != (len(got) > 0) ||
			packets && (got[0].Complete != 3 || got[0].Corrupt > 0 || got[0].Bad > 0) {
			t.Errorf("%q: %+v", extra, got)
		}
	}
}
