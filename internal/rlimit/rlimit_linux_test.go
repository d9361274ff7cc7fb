package rlimit

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestDescriptor: an error about descriptors names the limit once, and other errors are returned unchanged.
func TestDescriptor(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("socket: %w", syscall.EMFILE), "file descriptors is reached: raise it (ulimit -n)"},
		{syscall.ENFILE, "sysctl fs.file-max"},
		{syscall.ECONNREFUSED, "connection refused"},
	} {
		err := Descriptor(Descriptor(tt.err))
		if !errors.Is(err, tt.err) || strings.Count(err.Error(), tt.want) != 1 {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
	if Descriptor(nil) != nil || CheckDescriptor() != nil {
		t.Error("there are descriptors")
	}
}

// TestWatch: a limit is reported if it lasts; other errors are never reported.
func TestWatch(t *testing.T) {
	var w Watch
	begin := time.Unix(1, 0)
	for _, tt := range []struct {
		err  error
		at   time.Duration
		want bool
	}{
		{syscall.ECONNREFUSED, 0, false},
		{Descriptor(syscall.EMFILE), time.Second, false},
		{Descriptor(syscall.EMFILE), time.Second + ReportAfter - 1, false},
		{Descriptor(syscall.EMFILE), time.Second + ReportAfter, true},
		{syscall.ECONNREFUSED, time.Second + ReportAfter, false},
	} {
		if got := w.HasLasted(tt.err, begin.Add(tt.at)); got != tt.want {
			t.Errorf("%v after %v: %v", tt.err, tt.at, got)
		}
	}
}

// TestMapping: the limit of the address space is named only if it is reached.
func TestMapping(t *testing.T) {
	if _, limited := AddressSpaceLeft(); limited {
		t.Skip("the address space is limited")
	}
	if err := Mapping(syscall.ENOMEM, 1<<40); err != error(syscall.ENOMEM) {
		t.Errorf("without a limit: %v", err)
	}
	remote := &Error{Resource: AddressSpace, Limit: 1500000 << 10}
	const want = "the limit of the address space, 1500000 KiB, is reached: raise it (ulimit -v)"
	if text := remote.Error(); text != want || !errors.Is(remote, syscall.ENOMEM) {
		t.Error(text)
	}
}
