package shm

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
)

// ranksFolder is the name of the directory that holds the sockets of ranks that do not belong to a job. It is within a
// user's directory for sockets.
const ranksFolder = "ranks"

// socketDir is the directory that contains the sockets of the ranks on this host. It belongs to a job or to a
// user; no other user can write there.
type socketDir struct {
	dir *rendezvous.Dir
	// netNamespace identifies the network namespace, within which addresses are unique. It is empty in a job, whose
	// ranks find each other by number.
	netNamespace string
	name         string // of our socket
}

// newSocketDir returns the socketDir of a rank without opening it, and the path of its directory.
func newSocketDir(cfg *Config) (dir *socketDir, path string, err error) {
	dir, path = new(socketDir), cfg.Directory
	if path == "" {
		base, err := privatedir.Runtime()
		if err != nil {
			return nil, "", err
		}
		base.Close()
		path = filepath.Join(base.Path(), ranksFolder)
		dir.netNamespace = netNamespaceID()
	}
	dir.name = dir.socketName(cfg.Rank, cfg.Map.Addr(cfg.Rank))
	return dir, path, nil
}

// bindSocket creates the socket of a rank. The error is a *rendezvous.TakenError if another process already runs the
// rank.
func bindSocket(cfg *Config) (*socketDir, *net.UnixListener, error) {
	m, path, err := newSocketDir(cfg)
	if err != nil {
		return nil, nil, err
	}
	if m.netNamespace != "" {
		if conn, peer, err := connectElsewhere(m.name, path); err == nil {
			conn.Close()
			return nil, nil, &rendezvous.TakenError{Path: m.name, PID: peer.PID}
		}
	}
	dir, fd, err := rendezvous.Listen(path, m.name, unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, nil, err
	}
	m.dir = dir
	if m.netNamespace != "" {
		dir.Sweep() // remove sockets of killed processes; the launcher does so for a job
	}
	f := os.NewFile(uintptr(fd), m.name)
	defer f.Close() // FileListener duplicates the descriptor
	ln, err := net.FileListener(f)
	if err != nil {
		m.detach()
		return nil, nil, errors.Join(err, dir.Close())
	}
	return m, ln.(*net.UnixListener), nil
}

// netNamespaceID identifies the network namespace of this process.
func netNamespaceID() string {
	name, _ := os.Readlink("/proc/self/ns/net") // if it fails, all namespaces count as one
	return strings.Trim(name, "net:[]") + "-"
}

// socketName returns the name of a rank's socket.
func (m *socketDir) socketName(rank int, addr netip.AddrPort) string {
	if m.netNamespace == "" {
		return strconv.Itoa(rank) + ".memory"
	}
	return m.netNamespace + addr.String()
}

// connect connects to the process of a peer. It does not block.
func (m *socketDir) connect(p *peer) (*net.UnixConn, error) {
	name := m.socketName(p.rank, p.addr)
	conn, _, err := m.dir.Connect(name, unix.SOCK_SEQPACKET)
	if errors.Is(err, rendezvous.ErrNoProcess) && m.netNamespace != "" {
		conn, _, err = connectElsewhere(name, m.dir.Path())
	}
	if errors.Is(err, rendezvous.ErrNoProcess) {
		return nil, fmt.Errorf("%w is rank %d at %v over shared memory: no process listens in %s", errNoProcess, p.rank,
			p.addr, m.dir.Path())
	}
	return conn, err
}

// connectElsewhere searches for a socket in the directories that processes of this user use in other environments, and
// connects to it. It skips the directory here.
func connectElsewhere(name, here string) (*net.UnixConn, rendezvous.Peer, error) {
	for _, place := range privatedir.RuntimePaths() {
		dir, err := rendezvous.Open(filepath.Join(place, ranksFolder))
		if err == nil && dir.Path() == here {
			dir.Close()
			continue
		}
		if err != nil {
			continue // missing, or not trustworthy
		}
		conn, peer, err := dir.Connect(name, unix.SOCK_SEQPACKET)
		dir.Close()
		if err == nil {
			return conn, peer, nil
		}
	}
	return nil, rendezvous.Peer{}, rendezvous.ErrNoProcess
}

// detach removes our socket. It must be called before the listener is closed: afterwards, the name may belong
// to another process.
func (m *socketDir) detach() { _ = m.dir.Remove(m.name) } // a launcher may already have removed it
