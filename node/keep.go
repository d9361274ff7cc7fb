package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node/kept"
)

// keptDirectory is the subdirectory of a state directory that holds the files of ranks.
const keptDirectory = "ranks"

// KeepState opens a file in the given state directory, in which the rank keeps the state of its exchanges with deployed
// peers for the next process with this rank. It also reads the state that an earlier process kept. It must be called
// after Bind and before Start. A rank without such peers keeps nothing. After an error the rank works, but keeps
// nothing or ignores the earlier state.
func (r *Rank) KeepState(directory string) error {
	ranks := r.interruptible()
	if len(ranks) == 0 {
		return nil
	}
	dir, err := privatedir.Make(filepath.Join(directory, keptDirectory))
	if err != nil {
		return r.notKept(err)
	}
	peers := make([]kept.Peer, len(ranks))
	for i, rank := range ranks {
		peers[i] = r.keptPeer(rank)
	}
	f, err := kept.Open(dir, r.keptOwner(), peers)
	if err != nil {
		return r.notKept(errors.Join(err, dir.Close()))
	}
	r.kept = f
	r.keepers = make(map[int]mpe.Keeper, len(ranks))
	for i, rank := range ranks {
		r.keepers[rank] = f.Peer(i)
	}
	if f.Discarded != nil {
		return fmt.Errorf("rank %d: ignoring the state kept by an earlier process: %w", r.Self.Rank, f.Discarded)
	}
	return nil
}

func (r *Rank) keptOwner() kept.Owner {
	return kept.Owner{Rank: r.Self.Rank, Address: r.Self.Address.String()}
}

func (r *Rank) keptPeer(rank int) kept.Peer {
	peer := r.Config.Rank(rank)
	return kept.Peer{Rank: rank, Address: peer.Address.String(), Kind: string(peer.Peer),
		Profile: r.Links()[rank].Profile.String()}
}

// ForgetState discards the state of a peer that processes of this user have kept for a rank of the configuration. No
// process may have the rank now. It reports whether there was any state.
func ForgetState(cfg *config.Config, self *config.Rank, peer int) (bool, error) {
	r, err := Plan(cfg, self)
	if err != nil {
		return false, err
	}
	directory, err := privatedir.StatePlace()
	if err != nil {
		return false, err
	}
	dir, err := privatedir.Open(filepath.Join(directory, keptDirectory))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	return kept.Forget(dir, r.keptOwner(), r.keptPeer(peer))
}

func (r *Rank) notKept(err error) error {
	return fmt.Errorf("rank %d: a restart in the middle of an exchange with a deployed rank may leave that rank "+
		"waiting forever, because no state can be kept: %w", r.Self.Rank, err)
}

// interruptible returns the peers of a host rank that do not notice that a new process has replaced this rank's
// process: peers with the cloudfpga or v0.9 profile over UDP.
func (r *Rank) interruptible() (ranks []int) {
	if r.Self.Run != config.RunHost {
		return nil
	}
	for rank := range r.Links() {
		if l := &r.Links()[rank]; rank != r.Self.Rank && l.Extended == nil && l.Transport == config.TransportUDP {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// keeper returns the keeper for the state of the exchange with a peer.
func (r *Rank) keeper(rank int) mpe.Keeper {
	if k := r.keepers[rank]; k != nil {
		return k
	}
	return forgetful{}
}

// forgetful is a keeper that keeps nothing.
type forgetful struct{}

func (forgetful) Restore(handshake.Instant) handshake.Kept { return handshake.Kept{} }
func (forgetful) Keep(*handshake.Kept)                     {}

// closeKept closes the file after the engine has been closed.
func (r *Rank) closeKept() error {
	if r.kept == nil {
		return nil
	}
	return r.kept.Close()
}

// keepStateOfUser calls KeepState with the state directory of this process's user.
func (r *Rank) keepStateOfUser() error {
	if len(r.interruptible()) == 0 {
		return nil
	}
	directory, err := privatedir.StatePlace()
	if err != nil {
		return r.notKept(err)
	}
	return r.KeepState(directory)
}
