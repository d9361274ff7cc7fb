package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
)

// serve connects clients to a server until all connections are closed.
func serve(t *testing.T, size int) ([]Conn, *sync.WaitGroup) {
	t.Helper()
	s := NewServer(size, "kvs_1")
	var mu sync.Mutex
	var all sync.WaitGroup
	ours, theirs := make([]net.Conn, size), make([]Conn, size)
	for rank := range size {
		a, b := net.Pipe()
		ours[rank], theirs[rank] = a, b
	}
	for rank, conn := range ours {
		all.Go(func() {
			defer conn.Close()
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				mu.Lock()
				replies, err := s.Handle(rank, lines.Text(), nil)
				mu.Unlock()
				if err != nil {
					return
				}
				for _, r := range replies {
					if _, err := fmt.Fprint(ours[r.Rank], r.Line); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	return theirs, &all
}

// TestJob: every process gets the values put by all processes.
func TestJob(t *testing.T) {
	const size = 5
	conns, served := serve(t, size)
	var all sync.WaitGroup
	for rank := range size {
		all.Go(func() {
			ctx := t.Context()
			c, err := NewClient(ctx, conns[rank], rank, size)
			if err != nil {
				t.Error(err)
				return
			}
			for round := range 3 {
				err = errors.Join(err, c.Put(ctx, fmt.Sprintf("k-%d-%d", round, rank),
					fmt.Sprintf("127.0.0.1:%d;x=y", rank)), c.Barrier(ctx))
				for other := range size {
					value, failed := c.Get(ctx, fmt.Sprintf("k-%d-%d", round, other))
					if err = errors.Join(err, failed); value != fmt.Sprintf("127.0.0.1:%d;x=y", other) {
						t.Errorf("rank %d gets %q of %d", rank, value, other)
					}
				}
			}
			if mapping, failed := c.Get(ctx, mappingKey); mapping != "(vector,(0,1,5))" {
				t.Errorf("the mapping is %q, %v", mapping, failed)
			}
			if err = errors.Join(err, c.Finalize(ctx)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	served.Wait()
}

// TestRefused: a rejected request is an error of the client, and the connection remains usable.
func TestRefused(t *testing.T) {
	conns, _ := serve(t, 1)
	ctx := t.Context()
	c, err := NewClient(ctx, conns[0], 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer conns[0].Close()
	wants := func(err error, want string) {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	_, err = c.Get(ctx, "none")
	wants(err, "(PMI-1, get): it has refused the request: key_not_found")
	wants(c.Put(ctx, "a b", "v"), "without spaces")
	wants(c.Put(ctx, "k", strings.Repeat("v", maxValue+1)), "1 to 1024")
	if err := c.Put(ctx, "k", "v"); err != nil {
		t.Error(err)
	}
	wants(c.Put(ctx, "k", "w"), "duplicate_key")
	if v, err := c.Get(ctx, "k"); v != "v" || err != nil {
		t.Errorf("%q, %v", v, err)
	}
}

// TestBarrierCancelled: a pending barrier can be canceled.
func TestBarrierCancelled(t *testing.T) {
	conns, _ := serve(t, 2)
	c, err := NewClient(t.Context(), conns[0], 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer conns[0].Close()
	defer conns[1].Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user has had enough")
	cancel(cause)
	if err := c.Barrier(ctx); !errors.Is(err, cause) {
		t.Error(err)
	}
}

// TestAnswers: invalid answers are errors.
func TestAnswers(t *testing.T) {
	for _, tt := range []struct{ answer, want string }{
		{"", "it has closed the connection"},
		{"\n", "it is empty"},
		{"cmd=bar rc=0\n", "it answers with bar, not with response_to_init"},
		{"rc=0 cmd=bar\n", `it begins with "rc=0"`},
		{"cmd=response_to_init rc=x\n", `rc="x" of response_to_init is not a number`},
		{"cmd=response_to_init rc=-1 msg=no\n", "it has refused the request: no"},
		{"cmd=response_to_init rc=-1\n", "it has refused the request"},
		{"cmd=response_to_init x\n", `"x" has no key`},
		{"cmd=" + strings.Repeat("x", maxLine) + "\n", "longer than 4096 bytes"},
		{"cmd=response_to_init rc=0\ncmd=my_kvsname\n", `the space of keys is ""`},
	} {
		a, b := net.Pipe()
		go func() {
			defer a.Close()
			lines, answers := bufio.NewReader(a), strings.SplitAfter(tt.answer, "\n")
			for _, answer := range answers {
				if _, err := lines.ReadString('\n'); err != nil {
					return
				}
				if _, err := a.Write([]byte(answer)); err != nil {
					return
				}
			}
		}()
		_, err := NewClient(t.Context(), b, 0, 1)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%.40q: %v, want %q", tt.answer, err, tt.want)
		}
		b.Close()
	}
}

// TestServerStates: the order of requests is checked and determines the state of a process.
func TestServerStates(t *testing.T) {
	s := NewServer(2, "kvs")
	for _, step := range []struct {
		rank         int
		line         string
		replies, err string
		state        State
	}{
		{0, "cmd=get kvsname=kvs key=x", "", "not a line of PMI-1: get before init", Started},
		{0, "cmd=init pmi_version=2", "0 cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1\n", "", Started},
		{0, "cmd=init pmi_version=1 pmi_subversion=1", "0 cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
			"", Connected},
		{0, "cmd=init pmi_version=1", "", "a second init", Connected},
		{0, "cmd=get_maxes", "0 cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n", "", Connected},
		{0, "cmd=get_appnum", "0 cmd=appnum appnum=0\n", "", Connected},
		{0, "cmd=get_universe_size", "0 cmd=universe_size size=2\n", "", Connected},
		{0, "cmd=put kvsname=no key=a value=b", "0 cmd=put_result rc=-1 msg=no_such_kvsname\n", "", Connected},
		{0, "cmd=put kvsname=kvs key=" + strings.Repeat("a", 65) + " value=b",
			"0 cmd=put_result rc=-1 msg=key_or_value_too_long\n", "", Connected},
		{0, "cmd=spawn", "0 cmd=spawn_result rc=-1 msg=not_supported\n", "", Connected},
		{0, "cmd=barrier_in", "", "", Waiting},
		{0, "cmd=barrier_in", "", "in a barrier", Waiting},
		{1, "cmd=init pmi_version=1", "1 cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n", "", Connected},
		{1, "cmd=barrier_in", "0 cmd=barrier_out rc=0\n1 cmd=barrier_out rc=0\n", "", Connected},
		{1, "cmd=finalize", "1 cmd=finalize_ack rc=0\n", "", Finalized},
		{1, "cmd=abort exitcode=3", "", "the job is aborted with code 3", Finalized},
		{0, "nonsense", "", "not a line", Connected},
	} {
		replies, err := s.Handle(step.rank, step.line, nil)
		var text strings.Builder
		for _, r := range replies {
			fmt.Fprint(&text, r.Rank, " ", r.Line)
		}
		if text.String() != step.replies || (err == nil) != (step.err == "") ||
			err != nil && !strings.Contains(err.Error(), step.err) {
			t.Errorf("%s: %q, %v, want %q, %q", step.line, text.String(), err, step.replies, step.err)
		}
		if state := s.State(step.rank); state != step.state {
			t.Errorf("%s: state %d, want %d", step.line, state, step.state)
		}
	}
	for i := range 3 * maxKeys {
		if _, err := s.Handle(0, fmt.Sprintf("cmd=put kvsname=kvs key=%d value=x", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(s.keys) != 2*maxKeys {
		t.Errorf("the server has taken %d keys", len(s.keys))
	}
}

func TestConnect(t *testing.T) {
	for _, tt := range []struct{ fd, rank, size, want string }{
		{"x", "0", "1", `PMI_FD="x", which a launcher sets`},
		{"1000000", "", "1", `PMI_RANK="", which a launcher sets`},
		{"1000000", "0", "-1", `PMI_SIZE="-1", which a launcher sets`},
		{"1000000", "0", "1", "PMI_FD=1000000, the connection to the launcher: bad file descriptor: a program that " +
			"another program of the job has started"},
		{"2", "0", "1", "PMI_FD=2, the connection"},
		{"file", "0", "1", "socket operation on non-socket"},
	} {
		env := map[string]string{EnvFD: tt.fd, EnvRank: tt.rank, EnvSize: tt.size}
		if tt.fd == "file" {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			env[EnvFD] = fmt.Sprint(f.Fd())
		}
		if _, err := Connect(t.Context(), func(name string) string { return env[name] }); err == nil ||
			!strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt, err, tt.want)
		}
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := NewClient(t.Context(), a, 2, 2); err == nil {
		t.Error("there is no rank 2 of 2")
	}
}

// FuzzHandle: no line makes the server panic, and its replies are valid lines.
func FuzzHandle(f *testing.F) {
	for _, text := range []string{
		"cmd=init pmi_version=1 pmi_subversion=1", "cmd=get_maxes", "cmd=put kvsname=kvs key=a value=b",
		"cmd=get kvsname=kvs key=a",
		"cmd=barrier_in", "cmd=finalize", "cmd=abort exitcode=9", "cmd=", "a=b", "=", "cmd=x y",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := NewServer(2, "kvs")
		if _, err := s.Handle(0, "cmd=init pmi_version=1", nil); err != nil {
			t.Fatal(err)
		}
		replies, _ := s.Handle(0, text, nil)
		for _, r := range replies {
			if m, err := parse(strings.TrimSuffix(r.Line, "\n")); err != nil || m.command == "" {
				t.Errorf("%q is answered with %q", text, r.Line)
			}
		}
	})
}
