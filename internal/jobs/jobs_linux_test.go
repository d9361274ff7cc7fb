package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestServe: ranks are found as long as they are served, and answer.
func TestServe(t *testing.T) {
	job := fmt.Sprintf("test_%d_%s", os.Getpid(), t.Name())
	ranks := func() (ranks []int) {
		found, err := Find()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range found {
			if s.Job == job && s.UID == os.Geteuid() {
				ranks = append(ranks, s.Rank)
			}
		}
		return ranks
	}
	long := strings.Repeat("state ", 1<<18)
	for rank, text := range []string{"", "state", long} {
		c, err := Serve(job, rank, func() []byte { return []byte(text) }, func() []byte { return []byte("others: " + text) })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		for range 3 {
			got, err := (Socket{os.Geteuid(), job, rank}).Ask(t.Context())
			if err != nil || string(got) != text {
				t.Errorf("rank %d: %d bytes, %v", rank, len(got), err)
			}
			got, err = (Socket{os.Geteuid(), job, rank}).AskOthers(t.Context())
			if err != nil || string(got) != "others: "+text {
				t.Errorf("rank %d asks others: %d bytes, %v", rank, len(got), err)
			}
		}
		if _, err := Serve(job, rank, nil, nil); err == nil {
			t.Error("two processes serve one rank")
		}
	}
	if got := ranks(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Error(got)
	}
	stuck := make(chan struct{}) // it does not keep Close waiting
	defer close(stuck)
	c, err := Serve(job, 7, func() []byte { <-stuck; return nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer stop()
	if _, err := (Socket{os.Geteuid(), job, 7}).Ask(ctx); err == nil {
		t.Error("a rank that is stuck has answered")
	}
	c.Close()
	if _, err := (Socket{os.Geteuid(), job, 7}).Ask(t.Context()); err == nil {
		t.Error("a rank that is gone has answered")
	}
	if got := ranks(); !slices.Equal(got, []int{0, 1, 2}) {
		t.Error(got)
	}
}

// TestForeign: a socket in the name of another user is not believed.
func TestForeign(t *testing.T) {
	s := Socket{UID: os.Geteuid() + 1, Job: "foreign", Rank: 0}
	l, err := serve(s.String(), func(fd int, _ string) { answer(fd, func() []byte { return nil }) })
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := s.Ask(t.Context()); !errors.Is(err, ErrForeign) {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	const head = "Num       RefCount Protocol Flags    Type St Inode Path\n"
	line := func(flags, path string) string {
		return "0000000000000000: 00000002 00000000 " + flags + " 0001 01 1234 " + path + "\n"
	}
	text := head + line("00010000", "@zrlmpi/1000/kvs_7/2") + line("00000000", "@zrlmpi/1000/kvs_7/3") + line("00010000", "@zrlmpi/1000/kvs_7/1") +
		line("00010000", "@zrlmpi/1000/kvs_7/1") + line("00010000", "/run/x.sock") + line("00010000", "") + line("00010000", "@zrlmpi/x/kvs/1") +
		line("00010000", "@zrlmpi/1/a b/1") + line("00010000", "@zrlmpi/1//1") + line("00010000", "@zrlmpi/1/a/-1") + line("00010000", "@zrlmpi/0/a/99999999999")
	got, err := list(strings.NewReader(text))
	if want := []Socket{{1000, "kvs_7", 1}, {1000, "kvs_7", 2}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestName(t *testing.T) {
	for launcher, want := range map[string]string{
		"kvs_2183_0_871052682_vm": "kvs_2183_0_871052682_vm", "12.0/x y": "12.0_x_y", "": "_", strings.Repeat("é", 100): strings.Repeat("_", maxJob),
	} {
		if got := Name(launcher); got != want {
			t.Errorf("%q: %q", launcher, got)
		}
	}
}
