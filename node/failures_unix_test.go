//go:build unix

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/node/recorder"
)

// lines collects messages about records.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// jobPair returns two ranks of a job over UDP, and rank 0's messages about its records. more is YAML.
func jobPair(t *testing.T, profile, more string) (devices []device, said *lines) {
	t.Helper()
	addrs, err := freeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	cfg := mustParse(t, fmt.Sprintf(`
defaults: {profile: %s, transport: udp, deadlines: {clear: 100ms}}
ranks:
- {rank: 0, address: %q, run: host}
- {rank: 1, address: %q, run: host}
%s`, profile, addrs[0], addrs[1], more))
	for rank := range 2 {
		d, err := open(cfg, rank, nil, &jobProcess{name: "kvs 7"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close(context.Background()) })
		devices = append(devices, d)
	}
	said = &lines{}
	if f := devices[0].rank.failures; f != nil {
		f.output = said
	}
	return devices, said
}

// recordsIn returns the records in a directory, which may not exist.
func recordsIn(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestFailuresOfOneEvent checks that failures in one event of the engine, such as the messages to a lost peer, share a
// record.
func TestFailuresOfOneEvent(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	devices, said := jobPair(t, "cloudfpga", "")
	rank := devices[0].rank
	lost := &mpe.PeerLostError{Rank: 1, Event: state.EventUnreachable}
	rank.Engine.Counters(func(*state.RankCounters) { // the engine's lock is held
		rank.failures.startRecord(1, "connection to", lost)
		for range 100_000 { // enough time to write the record
			runtime.Gosched()
		}
		rank.failures.startRecord(1, "send to", lost)
	}, func(*state.PeerCounters) {})
	rank.failures.waitWritten()
	if list := recordsIn(t, filepath.Join(temp, fmt.Sprintf("zrlmpi-records-%d", os.Geteuid()))); len(list) != 1 ||
		strings.Count(said.String(), "\n") != 1 {
		t.Errorf("%q; %s", list, said)
	}
}

// TestFailureOfJob checks that the record, with packets and call, exists by the time the caller gets the error of a
// timed-out operation.
func TestFailureOfJob(t *testing.T) {
	for profile, flag := range map[string]string{"cloudfpga": "", "v0.9": "--profile v0.9 "} {
		t.Run(profile, func(t *testing.T) {
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			dir := filepath.Join(temp, fmt.Sprintf("zrlmpi-records-%d", os.Geteuid()))
			devices, said := jobPair(t, profile, "")
			go devices[1].Recv(t.Context(), 0, make([]byte, 8), mpe.Options{})
			if _, err := devices[0].Send(t.Context(), 1, make([]byte, 8), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			if list := recordsIn(t, temp); len(list) > 0 {
				t.Errorf("without a failure there is %q", list)
			}
			if _, err := devices[0].Send(t.Context(), 1, make([]byte, 16), mpe.Options{Tag: 3}); err == nil {
				t.Fatal("nobody has received")
			}
			list := recordsIn(t, dir)
			if len(list) != 1 {
				t.Fatalf("%q; %s", list, said)
			}
			if want := "zrlmpi: rank 0: packets before its send to rank 1 failed: zrlctl analyze " + flag + list[0] +
				"\n"; said.String() != want {
				t.Errorf("%q, want %q", said, want)
			}
			a := capture.NewAnalysis("record",
				capture.AnalysisOptions{Profile: devices[0].rank.profile(), KeepTrace: 100, KeepMessages: 100})
			src, err := capture.Options{OnNote: a.AddNote}.OpenFile(list[0])
			if err == nil {
				defer src.Close()
				err = a.Analyze(src)
			}
			if err != nil {
				t.Fatal(err)
			}
			r := a.Report()
			last := r.Calls[len(r.Calls)-1]
			if len(r.Messages) != 2 ||
				!slices.ContainsFunc(r.Findings,
					func(f capture.Finding) bool { return f.Kind == capture.NeverCleared }) ||
				last.String() != "Send to rank 1, 16 bytes, communicator 0" || last.State != pcapng.CallFailed ||
				last.Duration < 100*time.Millisecond {
				t.Errorf("%+v\n%+v\n%+v", r.Messages, r.Findings, r.Calls)
			}
			if !strings.Contains(r.Comment,
				"last packets of rank 0 of job kvs 7, written because its send to rank 1 has failed: ") {
				t.Error(r.Comment)
			}
		})
	}
}

// TestFailureOfCaller checks that the record exists when a receive returns because its caller's context is done.
func TestFailureOfCaller(t *testing.T) {
	dir := t.TempDir()
	devices, said := jobPair(t, "cloudfpga", fmt.Sprintf("record: {spool: {directory: %q}}\n", dir))
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := devices[0].Recv(ctx, 1, make([]byte, 8), mpe.Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	list := recordsIn(t, dir)
	if len(list) != 1 || !strings.Contains(said.String(),
		"packets before its receive from rank 1 failed: zrlctl analyze "+list[0]) {
		t.Errorf("%q; %s", list, said)
	}
}

// TestNoRecordsOfJob checks that no records are written to a directory that others may write to, and the reason in the
// error. If records are disabled, the directory is not made.
func TestNoRecordsOfJob(t *testing.T) {
	open := t.TempDir()
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for more, says := range map[string]string{
		fmt.Sprintf("record: {spool: {directory: %q}}\n", open): "are not recorded: " + open +
			" may be written to by other users (mode 0777): run \"chmod go-w ",
		"record: {spool: {size: 0}}\n":         "",
		"record: {spool: {directory: \"\"}}\n": "",
	} {
		temp := t.TempDir()
		t.Setenv("TMPDIR", temp)
		devices, said := jobPair(t, "cloudfpga", more)
		if _, err := devices[0].Send(t.Context(), 1, make([]byte, 8), mpe.Options{}); err == nil {
			t.Fatal("nobody has received")
		}
		if got := said.String(); !strings.Contains(got, says) || (got != "") != (says != "") ||
			len(recordsIn(t, open))+len(recordsIn(t, temp)) > 0 {
			t.Errorf("%s: %q", more, got)
		}
	}
}

// TestSharedSpool checks that several processes that write records simultaneously do not exceed the size of the spool,
// and that the newest records are kept.
func TestSharedSpool(t *testing.T) {
	dir := t.TempDir()
	var writers sync.WaitGroup
	for i := range 8 {
		writers.Go(func() {
			for j := range 20 {
				name := recorder.RecordName(time.Unix(int64(j), 0), fmt.Sprint(i), 0, 1)
				path, err := writeShared([]string{dir}, 1000, name, make([]byte, 100))
				if err != nil || filepath.Dir(path) != dir {
					t.Error(path, err)
				}
			}
		})
	}
	writers.Wait()
	list := recordsIn(t, dir)
	if len(list) != 10 {
		t.Errorf("%d records of 100 bytes: %q", len(list), list)
	}
	if got := recordsDirectories(&config.Spool{Size: 1, Directory: &dir}); !slices.Equal(got, []string{dir}) {
		t.Error(got)
	}
}

// TestRecordsOfASquattedName checks that records are written to the state directory if another user has taken the name
// in a shared directory.
func TestRecordsOfASquattedName(t *testing.T) {
	temp, state := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("XDG_STATE_HOME", state)
	directories := recordsDirectories(&config.Spool{Size: 1000})
	if err := os.Symlink(state, directories[0]); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{temp, filepath.Dir(temp)} { // like /tmp
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
	}
	path, err := writeShared(directories, 1000, recorder.RecordName(time.Now(), "", 0, 1), nil)
	if err != nil || filepath.Dir(path) != filepath.Join(state, "zrlmpi", "records") {
		t.Errorf("%q, %v", path, err)
	}
}
