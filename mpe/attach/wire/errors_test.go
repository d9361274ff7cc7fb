package wire

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// crossed returns err as the other side of the socket receives it.
func crossed(t *testing.T, err error) error {
	t.Helper()
	got, bad := parseError(encodeError(err))
	if bad != nil {
		t.Fatal(bad)
	}
	return got
}

// TestSentinels checks that every error that a rank can return has a number.
func TestSentinels(t *testing.T) {
	// Errors of report queries do not end any operation of a program.
	known := map[string]bool{"extended.ErrNoReport": true, "extended.ErrNoQuestions": true, "mpe.ErrNotExtended": true}
	for _, s := range sentinels {
		known[s.name] = true
	}
	found := 0
	for _, dir := range []string{"mpe", "mpe/core", "handshake", "extended", "mpe/coll", "mpe/coll/op",
		"mpe/collective"} {
		pkg := path.Base(dir)
		files, err := filepath.Glob(filepath.Join("../../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == "aliases.go" { // aliases
				continue
			}
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range tree.Decls {
				vars, ok := decl.(*ast.GenDecl)
				if !ok || vars.Tok != token.VAR {
					continue
				}
				for _, spec := range vars.Specs {
					for _, name := range errorNames(pkg, spec.(*ast.ValueSpec)) {
						found++
						name = strings.Replace(name, "core.", "mpe.", 1) // the public name of the error
						if !known[name] {
							t.Errorf("%s has no number in wire.sentinels", name)
						}
					}
				}
			}
		}
	}
	if found < 10 || len(sentinels) > 64 {
		t.Errorf("%d errors found, %d in the table", found, len(sentinels))
	}
}

// errorNames returns the names of the errors that a declaration defines or aliases.
func errorNames(pkg string, spec *ast.ValueSpec) (names []string) {
	for i, name := range spec.Names {
		if !strings.HasPrefix(name.Name, "Err") {
			continue
		}
		full := pkg + "." + name.Name
		if i < len(spec.Values) {
			if alias, ok := spec.Values[i].(*ast.SelectorExpr); ok {
				full = fmt.Sprint(alias.X, ".", alias.Sel)
			}
		}
		names = append(names, full)
	}
	return names
}

func TestErrorsCross(t *testing.T) {
	for i, s := range sentinels {
		got := crossed(t, fmt.Errorf("rank 1: %w: do something", s.err))
		for j, other := range sentinels {
			if errors.Is(got, other.err) != (i == j) {
				t.Errorf("%s: errors.Is(err, %s) is %v", s.name, other.name, i != j)
			}
		}
		if want := "rank 1: " + s.err.Error() + ": do something"; got.Error() != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	got := crossed(t, errors.Join(mpe.ErrTag, handshake.ErrEmpty))
	if !errors.Is(got, mpe.ErrTag) || !errors.Is(got, handshake.ErrEmpty) || errors.Is(got, mpe.ErrRank) {
		t.Errorf("%v", got)
	}
	if got := crossed(t, io.EOF); errors.Is(got, io.EOF) || got.Error() != "EOF" {
		t.Errorf("%v", got)
	}
	if got := crossed(t, errors.New(strings.Repeat("long", 10000))); len(got.Error()) != MaxText {
		t.Errorf("a text of %d bytes", len(got.Error()))
	}
}

func TestStructuredErrorsCross(t *testing.T) {
	w := handshake.Wait{ID: 7, State: handshake.WaitData, Local: 1, Remote: 2, For: 3, Since: 4, Retransmissions: 5,
		Words: 6, Got: 1 << 40, Deferred: 1, HasDeferred: true}
	for _, tt := range []struct{ err, sentinel error }{
		{&handshake.TimeoutError{Wait: w, Elapsed: 12345}, handshake.ErrTimeout},
		{&handshake.PartialError{Remote: 3, Words: 5, Datagrams: 6, Elapsed: 7, FPGA: true}, handshake.ErrPartial},
		{&handshake.TruncatedError{Remote: 3, Posted: 5, Sent: 8}, handshake.ErrTruncated},
		{&mpe.TruncatedError{Source: 3, Posted: 5, Sent: 8}, mpe.ErrTruncated},
		{&handshake.RemoteError{Remote: 3, State: handshake.WaitAck}, handshake.ErrRemote},
		{&handshake.RestartError{Remote: 3, Interrupted: handshake.InOurSend, Words: 5, Before: 6, Rebooted: true},
			handshake.ErrRestart},
		{&mpe.WaitError{Wait: w, Queued: 4, InTransfer: true, Network: errors.New("unreachable")}, nil},
		{&collective.CallFailedError{Rank: 3, Collective: coll.Scan, Comm: 5, Number: 6,
			Cause: collective.CauseClosing}, collective.ErrCallFailed},
		{&coll.CallError{Collective: coll.Scan, Algorithm: "chain", Problem: "nothing"}, coll.ErrCall},
	} {
		got := crossed(t, fmt.Errorf("rank 0: %w", tt.err))
		as := reflect.New(reflect.TypeOf(tt.err))
		if !errors.As(got, as.Interface()) || !reflect.DeepEqual(as.Elem().Interface(), tt.err) {
			t.Errorf("%#v, want %#v", as.Elem(), tt.err)
		}
		if tt.sentinel != nil && !errors.Is(got, tt.sentinel) {
			t.Errorf("%v is not %v", got, tt.sentinel)
		}
	}
}

// TestStepErrorsCross checks that a StepError is received together with the errors that it contains.
func TestStepErrorsCross(t *testing.T) {
	wait := &mpe.WaitError{Wait: handshake.Wait{ID: 7, State: handshake.WaitData, Local: 1, Remote: 2}}
	sent := &collective.StepError{
		Collective: coll.Reduce, Algorithm: "flat", Number: 3, Kind: coll.StepRecv, Peer: 4, Bytes: 5,
		Others: []int{6, 7},
		Err:    errors.Join(collective.ErrMismatch, wait),
	}
	got := crossed(t, fmt.Errorf("rank 0: %w", sent))
	step, ok := errors.AsType[*collective.StepError](got)
	if !ok || step.Error() != sent.Error() || got.Error() != "rank 0: "+sent.Error() ||
		!slices.Equal(step.Others, sent.Others) {
		t.Errorf("%v, %v", got, step)
	}
	for _, err := range []error{got, step, step.Err} {
		if w, ok := errors.AsType[*mpe.WaitError](err); !ok || w.Wait != wait.Wait ||
			!errors.Is(err, collective.ErrMismatch) || errors.Is(err, mpe.ErrFull) {
			t.Errorf("%#v", err)
		}
	}
	sent.Others = make([]int, 1<<16)
	if step, ok := errors.AsType[*collective.StepError](crossed(t, sent)); !ok || len(step.Others) != maxOthers {
		t.Errorf("%v", step)
	}
	// An error without a cause is sent as text only.
	if got := crossed(t, &collective.StepError{}); got.Error() != (&collective.StepError{}).Error() {
		t.Errorf("%v", got)
	}
}

// TestDeadEndsCross checks that a DeadEndError is received together with its cause.
func TestDeadEndsCross(t *testing.T) {
	cause := &handshake.PartialError{Remote: 3, Words: 1000, Datagrams: 3, FPGA: true}
	sent := &handshake.DeadEndError{Local: 1, Remote: 3, Cause: cause}
	got := crossed(t, fmt.Errorf("rank 1: %w", sent))
	dead, ok := errors.AsType[*handshake.DeadEndError](got)
	if !ok || dead.Error() != sent.Error() || dead.Local != 1 || dead.Remote != 3 ||
		got.Error() != "rank 1: "+sent.Error() {
		t.Fatalf("%v, %v", got, dead)
	}
	for _, err := range []error{got, dead, dead.Cause} {
		p, ok := errors.AsType[*handshake.PartialError](err)
		if !ok || *p != *cause || !errors.Is(err, handshake.ErrPartial) {
			t.Errorf("%#v", err)
		}
	}
	if !errors.Is(got, handshake.ErrDeadEnd) || errors.Is(dead.Cause, handshake.ErrDeadEnd) {
		t.Errorf("%#v", got)
	}
}

func TestRefusedError(t *testing.T) {
	for reason, target := range map[Reason]error{NoRank: mpe.ErrRank, Busy: ErrBusy, Permission: fs.ErrPermission,
		Closing: mpe.ErrClosed} {
		for other := range numReasons {
			if errors.Is(NewRefusal(other, "x"), target) != (other == reason) {
				t.Errorf("%v is %v", other, target)
			}
		}
	}
}

func TestParseErrorCorrupt(t *testing.T) {
	whole := encodeError(fmt.Errorf("rank 0: %w (%w)", &handshake.TruncatedError{Remote: 1}, context.Canceled))
	for n := range whole {
		if n == 12+int(Order.Uint32(whole[8:])) {
			continue // an error without details
		}
		if _, err := parseError(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted", n, len(whole))
		}
	}
}
