package kept

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var (
	owner = Owner{0, "127.1.0.1:2718"}
	peers = []Peer{{1, "127.1.0.2:2718", "fpga", "cloudfpga"}, {2, "127.1.0.3:2718", "cpu", "cloudfpga"}}
)

func directory(t testing.TB) *privatedir.Dir {
	t.Helper()
	d, err := privatedir.Make(filepath.Join(t.TempDir(), "kept"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func open(t testing.TB, d *privatedir.Dir, o Owner, ps []Peer) *File {
	t.Helper()
	own, err := privatedir.Open(d.Path()) // to be closed by File.Close
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(own, o, ps)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// example returns a state with a value in each field.
func example(at handshake.Instant) handshake.SavedState {
	return handshake.SavedState{
		In: handshake.SavedMessage{Progress: handshake.Acknowledged, Call: protocol.SendFloat, Tag: 3, StepTime: at},
		Out: handshake.SavedMessage{Progress: handshake.Requested, Call: protocol.SendInt, Tag: 4, Words: 5,
			StepTime: at + 1},
		HasReceived: true, Call: protocol.SendFloat, Size: 6, Sum: 7, Acked: at + 2,
		DeadEnd: true, DeadOnSend: true, DeadWords: 8,
	}
}

// TestNextProcess checks that the next process restores the most recent state, with its times converted, even if the
// first one did not close the file.
func TestNextProcess(t *testing.T) {
	d := directory(t)
	f := open(t, d, owner, peers)
	if f.DiscardReason != nil || f.Peer(0).Restore(time.Second) != (handshake.SavedState{}) {
		t.Fatalf("at first: %v, %+v", f.DiscardReason, f.Peer(0).Restore(time.Second))
	}
	f.Peer(1).Restore(0)
	for n := range 5 {
		k := example(time.Duration(n) * time.Second)
		f.Peer(1).Keep(&k)
	}
	if _, err := os.Stat(d.Join("rank0-127.1.0.1-2718.kept")); err != nil {
		t.Error(err)
	}
	const later = 100 * time.Second
	next := open(t, d, owner, append([]Peer{{3, "127.1.0.4:2718", "fpga", "v0.9"}}, peers...))
	k := next.Peer(2).Restore(later)
	shift := k.In.StepTime - 4*time.Second
	if shift > later || shift < later-10*time.Second {
		t.Errorf("its times are shifted by %v", shift)
	}
	want := example(4*time.Second + shift)
	if k.In.StepTime, k.Out.StepTime, k.Acked = want.In.StepTime, k.In.StepTime+1, k.In.StepTime+2; k != want {
		t.Errorf("it has\n%+v, want\n%+v", k, want)
	}
	for i := range 2 {
		if k := next.Peer(i).Restore(later); k != (handshake.SavedState{}) {
			t.Errorf("peer %d has %+v", i, k)
		}
	}
}

// TestOtherPeer checks that state is not used for another peer or by another rank.
func TestOtherPeer(t *testing.T) {
	for name, change := range map[string]func(o *Owner, p *Peer){
		"address": func(_ *Owner, p *Peer) { p.Address = "127.1.0.9:2718" },
		"rank":    func(_ *Owner, p *Peer) { p.Rank = 7 },
		"kind":    func(_ *Owner, p *Peer) { p.Kind = "cpu" },
		"profile": func(_ *Owner, p *Peer) { p.Profile = "v0.9" },
		"owner":   func(o *Owner, _ *Peer) { o.Rank = 9 },
		"own":     func(o *Owner, _ *Peer) { o.Address = "127.1.0.1:2719" },
	} {
		d := directory(t)
		f := open(t, d, owner, peers[:1])
		f.Peer(0).Restore(0)
		k := example(0)
		f.Peer(0).Keep(&k)
		o, p := owner, peers[0]
		change(&o, &p)
		next := open(t, d, o, []Peer{p})
		if k := next.Peer(0).Restore(0); k != (handshake.SavedState{}) || next.DiscardReason != nil {
			t.Errorf("another %s: %+v, %v", name, k, next.DiscardReason)
		}
	}
}

// TestReboot checks that a reboot is reported until new state is kept.
func TestReboot(t *testing.T) {
	d := directory(t)
	f := open(t, d, owner, peers)
	e := f.Peer(0)
	e.Restore(0)
	e.boot[0]++
	k := example(0)
	e.Keep(&k)
	for range 2 {
		f = open(t, d, owner, peers)
		if k := f.Peer(0).Restore(0); !k.Rebooted || !k.DeadEnd {
			t.Errorf("%+v", k)
		}
	}
	f.Peer(0).Keep(&handshake.SavedState{HasReceived: true})
	if k := open(t, d, owner, peers).Peer(0).Restore(0); k.Rebooted || !k.HasReceived {
		t.Errorf("%+v", k)
	}
}

// TestCorrupt checks that a file that is corrupt or not a state file is reported and not used, and that the next file
// is valid.
func TestCorrupt(t *testing.T) {
	d := directory(t)
	f := open(t, d, owner, peers[:1])
	f.Peer(0).Restore(0)
	k := example(0)
	f.Peer(0).Keep(&k)
	good := bytes.Clone(f.mapping)
	name := owner.fileName()
	files := map[string][]byte{
		"empty": nil, "short": good[:headerLen-1], "cut": good[:len(good)-1], "longer": append(bytes.Clone(good), 0),
		"another record": append(bytes.Clone(good), good[headerLen:]...), "zeros": make([]byte, len(good)),
	}
	for at := range good {
		if at >= headerLen+indexOffset+4 && at < headerLen+entriesOffset || at >= headerLen+entriesOffset+2*entryLen ||
			at >= headerLen+entriesOffset && at < headerLen+entriesOffset+entryLen ||
			at >= headerLen && at < headerLen+digestLen {
			continue // unused, the previous entry, or another peer's
		}
		b := bytes.Clone(good)
		b[at] ^= 0x82
		files["byte "+string(rune('0'+at%10))+" "+time.Duration(at).String()] = b
	}
	for what, b := range files {
		if err := d.WriteFile(name, b); err != nil {
			t.Fatal(err)
		}
		f := open(t, d, owner, peers[:1])
		if !errors.Is(f.DiscardReason, ErrCorrupt) || !strings.Contains(f.DiscardReason.Error(), name) {
			t.Errorf("%s: %v", what, f.DiscardReason)
		}
		if k := f.Peer(0).Restore(0); k != (handshake.SavedState{}) {
			t.Errorf("%s: %+v", what, k)
		}
		if f := open(t, d, owner, peers[:1]); f.DiscardReason != nil {
			t.Errorf("%s, and then: %v", what, f.DiscardReason)
		}
	}
}

// TestLink checks that a symbolic link in place of the file is not followed.
func TestLink(t *testing.T) {
	d := directory(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.WriteFile(target, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, d.Join(owner.fileName())); err != nil {
		t.Fatal(err)
	}
	f := open(t, d, owner, peers)
	if f.DiscardReason == nil {
		t.Error("the link was followed")
	}
	k := example(0)
	f.Peer(0).Keep(&k)
	if b, err := os.ReadFile(target); err != nil || string(b) != "precious" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestInterrupted checks that a process that ends during a write leaves the previous state.
func TestInterrupted(t *testing.T) {
	d := directory(t)
	f := open(t, d, owner, peers[:1])
	f.Peer(0).Restore(0)
	first := handshake.SavedState{HasReceived: true, Size: 1}
	f.Peer(0).Keep(&first)
	record := f.Peer(0).record
	index := record[indexOffset]
	before := bytes.Clone(record)
	second := handshake.SavedState{HasReceived: true, Size: 2}
	f.Peer(0).Keep(&second)
	after := bytes.Clone(record)
	for n := range entryLen + 1 { // n bytes of the entry are written
		copy(record, before)
		at := entriesOffset + int(1-index)*entryLen
		copy(record[at:][:n], after[at:])
		if k := open(t, d, owner, peers[:1]).Peer(0).Restore(0); k.Size != 1 {
			t.Fatalf("after %d bytes: %+v", n, k)
		}
		// A new file has the name now, but the record belongs to the old file.
		if err := d.WriteFile(owner.fileName(), append(owner.encodeHeader(1), before...)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestClosed checks that calls after Close keep nothing and do not fail.
func TestClosed(t *testing.T) {
	f := open(t, directory(t), owner, peers)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	k := example(0)
	f.entries[0].Keep(&k)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestNothingLeft checks that Close removes a file without important state, but no other file and no file of another
// process, and that the number of files is limited.
func TestNothingLeft(t *testing.T) {
	d := directory(t)
	there := func() bool {
		_, err := os.Stat(d.Join(owner.fileName()))
		return err == nil
	}
	f := open(t, d, owner, peers)
	f.Peer(0).Restore(0)
	f.Peer(0).Keep(&handshake.SavedState{HasReceived: true})
	if f.Close(); there() {
		t.Error("a file is left")
	}
	for _, k := range []handshake.SavedState{
		{DeadEnd: true}, {In: handshake.SavedMessage{Progress: handshake.Requested}},
		{Out: handshake.SavedMessage{Progress: handshake.Cleared}},
	} {
		f := open(t, d, owner, peers)
		f.Peer(1).Restore(0)
		f.Peer(1).Keep(&k)
		if f.Close(); !there() {
			t.Errorf("%+v is lost", k)
		}
		if was, err := Forget(d, owner, peers[1]); !was || err != nil {
			t.Errorf("%v, %v", was, err)
		}
	}
	f = open(t, d, owner, peers)
	open(t, d, owner, peers)
	if f.Close(); !there() {
		t.Error("the file of another process is removed")
	}
	for n := range maxFiles + 10 {
		open(t, d, Owner{n, "127.1.0.1:2718"}, peers)
	}
	if files, err := d.Files(); err != nil || len(files) != maxFiles {
		t.Errorf("%d files, %v", len(files), err)
	}
}

func BenchmarkKeep(b *testing.B) {
	f := open(b, directory(b), owner, peers)
	e := f.Peer(0)
	e.Restore(0)
	k := example(0)
	b.ReportAllocs()
	for b.Loop() {
		e.Keep(&k)
	}
}
