package kept

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

// ErrCorrupt is returned if a file is corrupt, or if its format or version is unknown.
var ErrCorrupt = errors.New("not a file of this version, or corrupt")

const (
	magic   = "zrlkept1"
	version = 1

	headerLen = 64
	recordLen = 256
	// maxPeers is the maximum number of peers in the file of a rank. Deployed clusters have at most 128 ranks; clusters
	// of software ranks may have more.
	maxPeers = 4096

	// A record consists of the digest of its peer, the index of its valid entry, and two entries.
	digestLen     = sha256.Size
	indexOffset   = digestLen
	entriesOffset = 64
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Peer identifies a peer of a rank. Saved state is used only if all of these fields are unchanged.
type Peer struct {
	Rank                   int
	Address, Kind, Profile string
}

// digest returns the key of the peer's record. A peer with another address or profile thus never gets its state.
func (p Peer) digest() [digestLen]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d %q %q %q", p.Rank, p.Address, p.Kind, p.Profile))
}

// Owner is the rank that owns a file.
type Owner struct {
	Rank    int
	Address string
}

// fileName returns a name that is safe in any directory. Different owners may share one; the digest in the header
// decides.
func (o Owner) fileName() string {
	address := strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdefghijklmnopqrstuvwxyz.", r) {
			return r
		}
		return '-'
	}, o.Address)
	return fmt.Sprintf("rank%d-%s.kept", o.Rank, address)
}

// encodeHeader returns the header of the owner's file, which has records for n peers.
func (o Owner) encodeHeader(n int) []byte {
	b := make([]byte, headerLen)
	copy(b, magic)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], uint32(n))
	digest := sha256.Sum256(fmt.Appendf(nil, "%d %q", o.Rank, o.Address))
	copy(b[16:], digest[:])
	binary.LittleEndian.PutUint32(b[headerLen-4:], crc32.Checksum(b[:headerLen-4], castagnoli))
	return b
}

// File is the file of a rank.
type File struct {
	// mapping is the content of the file, shared with the file system, so that stored records survive a crash of the
	// process without a system call. entries is in the order of the peers passed to Open.
	mapping []byte
	dir     *privatedir.Dir
	name    string
	// created identifies the file, to detect that another process has replaced it.
	created fs.FileInfo
	entries []*Entry
	// DiscardReason is the reason why the state of an earlier process is not used, nil if it is used.
	DiscardReason error
}

// maxFiles is the maximum number of files in a directory. The file of a killed process remains until another process
// runs the rank.
const maxFiles = 256

// Open opens the file of a rank in a directory, or creates it. Close closes both the file and the directory. Only one
// process at a time may run a rank: state that another process saves from now on is lost.
func Open(dir *privatedir.Dir, owner Owner, peers []Peer) (*File, error) {
	if len(peers) > maxPeers {
		return nil, fmt.Errorf("%d peers: state is kept for at most %d", len(peers), maxPeers)
	}
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	file := &File{dir: dir, name: owner.fileName()}
	pruneOldest(dir)
	content := owner.encodeHeader(len(peers))
	old, err := readRecords(dir, owner)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		file.DiscardReason = err
	}
	for _, p := range peers {
		digest := p.digest()
		record := make([]byte, recordLen)
		if was := old[digest]; was != nil {
			copy(record, was)
		} else {
			copy(record, digest[:])
			encodeEntry(record[entriesOffset:][:entryLen], &storedEntry{boot: boot})
		}
		content = append(content, record...)
	}
	if file.mapping, file.created, err = create(dir, file.name, content); err != nil {
		return nil, err
	}
	for i := range peers {
		file.entries = append(file.entries, &Entry{boot: boot, record: file.mapping[headerLen+i*recordLen:][:recordLen]})
	}
	return file, nil
}

// readRecords returns the valid records of the owner's file by digest.
func readRecords(dir *privatedir.Dir, owner Owner) (map[[digestLen]byte][]byte, error) {
	b, err := dir.ReadFile(owner.fileName(), headerLen+maxPeers*recordLen)
	if err != nil {
		return nil, err
	}
	corrupt := fmt.Errorf("%s: %w", dir.Join(owner.fileName()), ErrCorrupt)
	if len(b) < headerLen || (len(b)-headerLen)%recordLen != 0 {
		return nil, corrupt
	}
	n := (len(b) - headerLen) / recordLen
	if string(b[:headerLen]) != string(owner.encodeHeader(n)) {
		return nil, corrupt
	}
	records := make(map[[digestLen]byte][]byte, n)
	for i := range n {
		r := b[headerLen+i*recordLen:][:recordLen]
		if _, err := validEntry(r); err != nil {
			return nil, corrupt
		}
		records[[digestLen]byte(r)] = r
	}
	return records, nil
}

// validEntry decodes the entry that the index of a record selects.
func validEntry(record []byte) (storedEntry, error) {
	i := binary.LittleEndian.Uint32(record[indexOffset:])
	if i > 1 {
		return storedEntry{}, ErrCorrupt
	}
	return decodeEntry(record[entriesOffset+int(i)*entryLen:][:entryLen])
}

// Peer returns the entry for the peer at index i in the list that was passed to Open.
func (f *File) Peer(i int) *Entry { return f.entries[i] }

// Close closes the file and the directory. It removes the file if no peer can still depend on its state, because the
// rank has answered its peers for as long as they may retransmit.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	idle := true
	for _, e := range f.entries {
		s, err := validEntry(e.record)
		idle = idle && err == nil && !s.DeadEnd && s.In.Progress == handshake.NoMessage &&
			s.Out.Progress == handshake.NoMessage
		e.record = nil
	}
	err := unmap(f.mapping)
	f.mapping = nil
	if idle && f.isCurrent() {
		err = errors.Join(err, f.dir.Remove(f.name))
	}
	return errors.Join(err, f.dir.Close())
}

// isCurrent reports whether no other process has replaced the file.
func (f *File) isCurrent() bool {
	file, err := f.dir.Open(f.name)
	if err != nil {
		return false
	}
	defer file.Close()
	info, err := file.Stat()
	return err == nil && os.SameFile(info, f.created)
}

// pruneOldest removes the oldest files of a directory that has too many.
func pruneOldest(dir *privatedir.Dir) {
	files, err := dir.Files()
	if err != nil || len(files) < maxFiles {
		return // Open reports the error
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, f := range files[:len(files)-maxFiles+1] {
		_ = dir.Remove(f.Name()) // the next process tries again
	}
}

// Entry is the saved state of a peer.
type Entry struct {
	boot   [bootLen]byte
	record []byte // a record; nil after Close
	// clockOffset converts Instants of this process to times on clock. It is the time on clock at Instant 0.
	clockOffset handshake.Instant
}

// Restore returns the state saved by an earlier process, with its times as Instants of this process. now is the current
// time.
func (e *Entry) Restore(now handshake.Instant) handshake.SavedState {
	e.clockOffset = clock() - now
	entry, err := validEntry(e.record)
	if err != nil { // cannot happen: Open has checked it
		return handshake.SavedState{}
	}
	state := entry.SavedState
	if state == (handshake.SavedState{}) {
		return state
	}
	state.Rebooted = state.Rebooted || entry.boot != e.boot
	shiftTimes(&state, -e.clockOffset)
	state.In.StepTime, state.Out.StepTime, state.Acked = min(state.In.StepTime, now), min(state.Out.StepTime,
		now), min(state.Acked, now)
	return state
}

// shiftTimes adds by to each time in state that is set.
func shiftTimes(state *handshake.SavedState, by handshake.Instant) {
	if state.In.Progress != handshake.NoMessage {
		state.In.StepTime += by
	}
	if state.Out.Progress != handshake.NoMessage {
		state.Out.StepTime += by
	}
	if state.HasReceived {
		state.Acked += by
	}
}

// Keep stores k as the state of the peer.
func (e *Entry) Keep(k *handshake.SavedState) {
	if e.record == nil {
		return
	}
	s := storedEntry{boot: e.boot, SavedState: *k}
	shiftTimes(&s.SavedState, e.clockOffset)
	index := (*uint32)(unsafe.Pointer(&e.record[indexOffset]))
	next := 1 - atomic.LoadUint32(index)&1
	encodeEntry(e.record[entriesOffset+int(next)*entryLen:][:entryLen], &s)
	atomic.StoreUint32(index, next) // if the process ends before this, the previous entry stays valid
}

// Forget discards the saved state of a peer for a rank that no process runs. It reports whether there was any.
func Forget(dir *privatedir.Dir, owner Owner, peer Peer) (bool, error) {
	records, err := readRecords(dir, owner)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	digest := peer.digest()
	if records[digest] == nil {
		return false, nil
	}
	delete(records, digest)
	content := owner.encodeHeader(len(records))
	for _, r := range records {
		content = append(content, r...)
	}
	return true, dir.WriteFile(owner.fileName(), content)
}
