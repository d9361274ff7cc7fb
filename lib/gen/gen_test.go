package main

import (
	"errors"
	"strings"
	"testing"
)

func tables(t *testing.T) *source {
	t.Helper()
	src, err := readSource("../capi")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestStandardIsComplete checks that all functions of MPI 5.0 are in the table.
func TestStandardIsComplete(t *testing.T) {
	n := 0
	for _, f := range tables(t).table {
		if f.isInABI(standard) {
			n++
		}
	}
	if n != 664 {
		t.Errorf("%d functions, the standard has 664", n)
	}
}

// TestFaults checks that errors in a table are reported with file and line.
func TestFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Send", "not a function"},
		{"Send(buf *void", "closing"},
		{"Send(buf)", "name and type"},
		{"Send(buf *)", "not a name"},
		{"Send(buf [x]int)", "array"},
		{"Send(buf [3int)", "array"},
		{"Send(buf *void, buf int)", "two parameters buf"},
		{"Send(..., n int)", "last"},
		{"Send() @openmpi", "an ABI is mpich or standard"},
		{"Send() @mpich @mpich", "once"},
		{"Send() int int", "follows"},
		{"Send() @mpich int", "follows"},
		{"Send()\n\nRecv()", "sorted"},
		{"Send()\nSend()", "listed twice"},
	} {
		_, err := parseFunctions("f", []byte("# comment\n"+c.text))
		wantLine(t, err, "f", 2+strings.Count(c.text, "\n"), c.want)
	}
	for _, c := range []struct{ text, want string }{
		{"handle Comm long", "int or *TAG"},
		{"handle Comm *", "int or *TAG"},
		{"int A", "3 words"},
		{"int A x-", "neither"},
		{"int A 1y", "neither"},
		{"int A 99999999999999999999", "neither"},
		{"*1 A 1", "not a name"},
		{"int A 1\nint A 2", "listed twice"},
	} {
		_, err := parseABI(mpich, "a", []byte("# comment\n"+c.text))
		wantLine(t, err, "a", 2+strings.Count(c.text, "\n"), c.want)
	}
}

func wantLine(t *testing.T, err error, file string, line int, want string) {
	t.Helper()
	var fault *lineError
	if !errors.As(err, &fault) || fault.file != file || fault.line != line || !strings.Contains(err.Error(), want) {
		t.Errorf("%v: want %q of line %d", err, want, line)
	}
}

// FuzzTables checks that the parsers accept any text without panicking.
func FuzzTables(f *testing.F) {
	f.Add("Send(buf *const choice, n [][3]int, ...) Comm @mpich\nhandle Comm int\nComm COMM_NULL " +
		"0x8c000000\nstatus a b[5]")
	f.Fuzz(func(_ *testing.T, text string) {
		parseFunctions("", []byte(text))
		parseABI(mpich, "", []byte(text))
	})
}
