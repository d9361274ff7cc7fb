package jobs

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
	"github.com/zrlmpi/zrlmpid/internal/testkit/starve"
)

// makeJob makes a job's directory, which is removed after the test.
func makeJob(t *testing.T, launcher string) string {
	t.Helper()
	directory, warning, err := Make(launcher)
	if err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	return directory
}

// find returns the only job in the test's directories: others may be running on this host.
func find(t *testing.T) *Job {
	t.Helper()
	found, err := Find()
	found = slices.DeleteFunc(found, func(j Job) bool {
		return !strings.HasPrefix(j.Directory, os.Getenv("XDG_RUNTIME_DIR"))
	})
	if err != nil || len(found) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	return &found[0]
}

// TestServe: ranks are found while they are served, and answer each request.
func TestServe(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory := makeJob(t, "a job")
	long := strings.Repeat("state ", 1<<18)
	var served []io.Closer
	for rank, text := range []string{"", "state", long} {
		c, err := Serve(directory, rank, func(_ context.Context, r query.Request) query.Response {
			switch r.Kind {
			case query.Status, query.Metrics:
				return query.Response{Document: string(r.Kind) + ": " + text}
			case query.Reset:
				return query.Response{Err: fmt.Errorf("no peer %d", r.Peer)}
			case query.Packets:
				return query.Response{Stream: func(ctx context.Context, to io.Writer) {
					_, _ = io.WriteString(to, "packets: "+text)
					<-ctx.Done()
				}}
			}
			return query.Unknown(r)
		})
		if err != nil {
			t.Fatal(err)
		}
		served = append(served, c)
		j := find(t)
		for range 3 {
			for _, kind := range []query.Kind{query.Status, query.Metrics} {
				got, pid, err := j.Ask(t.Context(), query.Request{Kind: kind, Rank: rank}, NewBudget(1<<30))
				if err != nil || string(got) != strconv.Quote(string(kind)+": "+text) || pid != os.Getpid() {
					t.Errorf("%s of rank %d: %d bytes of process %d, %v", kind, rank, len(got), pid, err)
				}
			}
			_, _, err := j.Ask(t.Context(), query.Request{Kind: query.Reset, Rank: rank, Peer: 7})
			if err == nil || err.Error() != "no peer 7" {
				t.Errorf("rank %d: %v", rank, err)
			}
			_, err = j.Stream(t.Context(), query.Request{Kind: query.Reports, Rank: rank})
			if err == nil || !strings.Contains(err.Error(), query.ErrUnknown.Error()) {
				t.Errorf("rank %d: %v", rank, err)
			}
			p, err := j.Stream(t.Context(), query.Request{Kind: query.Packets, Rank: rank})
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len("packets: "+text))
			if _, err := io.ReadFull(p, b); err != nil || string(b) != "packets: "+text {
				t.Errorf("rank %d has %d bytes of packets, %v", rank, len(b), err)
			}
			p.Close()
		}
		var taken *rendezvous.TakenError
		if _, err := Serve(directory, rank, nil); !errors.As(err, &taken) || taken.PID != os.Getpid() {
			t.Errorf("two processes serve one rank: %v", err)
		}
	}
	j := find(t)
	if j.Name != "a_job" || !j.Matches("a_job") || !j.Matches(j.ID()) || j.Matches("a") ||
		!slices.Equal(j.Ranks, []int{0, 1, 2}) || j.UID != os.Geteuid() {
		t.Errorf("%+v", j)
	}
	if got := Ranks(directory); !slices.Equal(got, []int{0, 1, 2}) {
		t.Error(got)
	}
	for _, c := range served {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := j.Ask(t.Context(), query.Request{Rank: 1}); !errors.Is(err, rendezvous.ErrNoProcess) {
		t.Errorf("a rank that is gone: %v", err)
	}
	RemoveEmpty(directory)
	if _, err := os.Stat(directory); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is left: %v", err)
	}
}

// TestWithoutDescriptors: a rank that had no descriptor for a tool answers once it has one.
func TestWithoutDescriptors(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory := makeJob(t, "a job")
	c, err := Serve(directory, 0, answering("state"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	tool, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(tool)
	restore, err := starve.AllDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	defer restore()
	if err := unix.Connect(tool, &unix.SockaddrUnix{Name: filepath.Join(directory, "0")}); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(tool, []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	// The rank fails to accept, unless accept has already reserved a descriptor.
	fds := []unix.PollFd{{Fd: int32(tool), Events: unix.POLLIN}}
	if _, err := unix.Poll(fds, int(2*acceptPause.Milliseconds())); err != nil && err != unix.EINTR {
		t.Fatal(err)
	}
	restore()
	limit := unix.NsecToTimeval(int64(10 * time.Second))
	b := make([]byte, 100)
	if err := unix.SetsockoptTimeval(tool, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		t.Fatal(err)
	}
	got := ""
	for n := 1; n > 0; {
		if n, err = unix.Read(tool, b); err == nil {
			got += string(b[:n])
		}
	}
	if got != "{\"version\":1}\n\"state\"" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestBounds: answers are not read beyond the budgets, an endless answer ends with its context, and a stuck rank blocks
// neither tools nor its own end.
func TestBounds(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory := makeJob(t, "bounds")
	stuck := make(chan struct{})
	defer close(stuck)
	long := answering(strings.Repeat("x", 1<<20-2)) // plus two quotes
	waits := func(context.Context, query.Request) query.Response { <-stuck; return query.Response{} }
	for rank, h := range []query.Handler{long, waits} {
		c, err := Serve(directory, rank, h)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	j := find(t)
	shared := NewBudget(5 << 19)
	for i, want := range []error{nil, nil, ErrTooLong} {
		if _, _, err := j.Ask(t.Context(), query.Request{}, NewBudget(1<<20), shared); !errors.Is(err, want) {
			t.Errorf("answer %d: %v", i, err)
		}
	}
	if _, _, err := j.Ask(t.Context(), query.Request{}, NewBudget(1<<20-1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("an answer that is a byte too long: %v", err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, pid, err := j.Ask(ctx, query.Request{Rank: 1}); !errors.Is(err, context.DeadlineExceeded) ||
		pid != os.Getpid() {
		t.Errorf("a rank that is stuck, process %d: %v", pid, err)
	}
}

// answering answers every request with a text.
func answering(text string) query.Handler {
	return func(context.Context, query.Request) query.Response { return query.Response{Document: text} }
}

// TestRequests: an invalid request is answered with an error.
func TestRequests(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory := makeJob(t, "requests")
	c, err := Serve(directory, 0, answering("state"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const state, no = `{"version":1}` + "\n" + `"state"`, `{"version":1,"error":"no request"}` + "\n"
	for request, want := range map[string]string{
		`{"version":1,"kind":"status"}` + "\n": state, "{}\nmore": state, "{}": no, "\n": no, "report\n": no,
		strings.Repeat("x", 1000) + "\n": no, `{"rank":1e9999}` + "\n": no,
	} {
		conn, err := net.Dial("unix", filepath.Join(directory, "0"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, request)
		err = errors.Join(err, conn.(*net.UnixConn).CloseWrite())
		got, readErr := io.ReadAll(conn)
		if string(got) != want || err != nil || readErr != nil && !errors.Is(readErr, unix.ECONNRESET) {
			t.Errorf("%.20q: %q, %v, %v", request, got, err, readErr)
		}
		conn.Close()
	}
}

// TestAnswers: an invalid answer is an error, and an older version is reported if the answer names it.
func TestAnswers(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory := makeJob(t, "answers")
	j := &Job{Directory: directory, UID: os.Geteuid()}
	for rank, tt := range []struct{ answer, want string }{
		{"", ErrNoAnswer.Error()},
		{"{}", "unexpected EOF"},
		{"state\n", "no answer of a rank"},
		{strings.Repeat("x", 2*maxHead), ErrTooLong.Error()},
		{`{"version":1,"error":"busy"}` + "\n", "busy"},
		{`{"version":0,"error":"what?","unknown":true}` + "\n",
			`the process runs an older version of zrlmpid, which does not know the request "status"`},
		{`{"version":1,"error":"what?","unknown":true}` + "\n", "what?"},
	} {
		d, fd, err := rendezvous.Listen(directory, strconv.Itoa(rank), unix.SOCK_STREAM)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		go func() {
			defer unix.Close(fd)
			to, _, err := unix.Accept(fd)
			for err == unix.EINTR {
				to, _, err = unix.Accept(fd)
			}
			if err != nil {
				return
			}
			readRequest(to)
			_, _ = connection(to).Write([]byte(tt.answer))
			_ = unix.Close(to)
		}()
		_, _, err = j.Ask(t.Context(), query.Request{Kind: query.Status, Rank: rank})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %q", tt.answer, err, tt.want)
		}
	}
}

// TestCancelled: a request may be canceled at any time, even while it fails.
func TestCancelled(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	directory := makeJob(t, "cancelled")
	j := &Job{Directory: directory, UID: os.Geteuid()}
	d, fd, err := rendezvous.Listen(directory, "0", unix.SOCK_STREAM)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	go func() { // ends when the listener is shut down
		for {
			c, _, err := unix.Accept(fd)
			switch {
			case err == nil:
				_ = unix.Close(c)
			case err != unix.EINTR:
				return
			}
		}
	}()
	defer unix.Close(fd)
	defer unix.Shutdown(fd, unix.SHUT_RDWR)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 1000 {
		if _, _, err := j.Ask(ctx, query.Request{Kind: query.Status}); err == nil {
			t.Fatal("a process that closes each connection has answered")
		}
	}
}

// TestSweep: the sockets of killed processes are removed after a minute, and nothing else.
func TestSweep(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	old := time.Now().Add(-2 * time.Minute)
	kill := func(directory, socket string, when time.Time) {
		d, fd, err := rendezvous.Listen(directory, socket, unix.SOCK_SEQPACKET)
		if err == nil {
			err = errors.Join(d.Close(), unix.Close(fd), os.Chtimes(filepath.Join(directory, socket), when, when))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	killed, young, alive, empty := makeJob(t, "killed"), makeJob(t, "young"), makeJob(t, "alive"), makeJob(t, "empty")
	kill(killed, "0", old)
	kill(killed, "0.memory", old)
	if err := os.Chtimes(killed, old, old); err != nil {
		t.Fatal(err)
	}
	kill(young, "0", time.Now())
	kill(alive, "1", old)
	c, err := Serve(alive, 0, answering(""))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := os.Chtimes(filepath.Join(alive, "0"), old, old); err != nil {
		t.Fatal(err)
	}
	if j := find(t); j.Directory != alive || !slices.Equal(j.Ranks, []int{0}) {
		t.Errorf("%+v", j)
	}
	for path, want := range map[string]bool{
		killed: false, empty: true, young: true, filepath.Join(young, "0"): true, filepath.Join(alive, "0"): true,
		filepath.Join(alive, "1"): false,
	} {
		if _, err := os.Lstat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Remove(young); err != nil {
		t.Error(err)
	}
}

func TestName(t *testing.T) {
	for launcher, want := range map[string]string{
		"kvs_2183_0_871052682_vm": "kvs_2183_0_871052682_vm", "12.0/x y": "12.0_x_y", "": "_",
		strings.Repeat("é", 100): strings.Repeat("_", maxJob),
	} {
		if got := Name(launcher); got != want {
			t.Errorf("%q: %q", launcher, got)
		}
		if got, ok := NameOf("/run/zrlmpi/jobs/" + newID(launcher)); !ok || got != want {
			t.Errorf("the directory of %q is of %q", launcher, got)
		}
	}
	random := rand.Text()
	for _, id := range []string{"", "x", random, "." + random, "x." + random[1:], "x/y", "a b." + random,
		strings.Repeat("x", maxJob+1) + "." + random} {
		if name, ok := NameOf(id); ok {
			t.Errorf("%q is of %q", id, name)
		}
	}
}

// TestInheritedDirectory: a job ignores a directory that was passed to another job.
func TestInheritedDirectory(t *testing.T) {
	id := newID("job_1")
	for dir, want := range map[string]string{
		"/run/zrlmpi/jobs/" + id: "/run/zrlmpi/jobs/" + id, "/run/" + newID("job_2"): "", id: "", "": "",
		"/run/job_1": "",
	} {
		if got := InheritedDirectory("job_1", func(string) string { return dir }); got != want {
			t.Errorf("%q: %q", dir, got)
		}
	}
}
