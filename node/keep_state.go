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

// stateSubdir is the name of the directory, within a state directory, that holds the files of ranks.
const stateSubdir = "ranks"

// KeepState opens a file in the given state directory, in which the rank saves the state of its exchanges with deployed
// peers for the next process that runs the rank. It also reads the state saved by an earlier process. It must be called
// after Bind and before Start. It is a no-op for a rank without such peers. After an error the rank works, but saves
// nothing or ignores the earlier state.
func (r *Rank) KeepState(directory string) error {
	ranks := r.sessionlessPeers()
	if len(ranks) == 0 {
		return nil
	}
	dir, err := privatedir.Make(filepath.Join(directory, stateSubdir))
	if err != nil {
		return r.stateError(err)
	}
	peers := make([]kept.Peer, len(ranks))
	for i, rank := range ranks {
		peers[i] = r.statePeer(rank)
	}
	file, err := kept.Open(dir, r.stateOwner(), peers)
	if err != nil {
		return r.stateError(errors.Join(err, dir.Close()))
	}
	r.stateFile = file
	r.keepers = make(map[int]mpe.Keeper, len(ranks))
	for i, rank := range ranks {
		r.keepers[rank] = file.Peer(i)
	}
	if file.DiscardReason != nil {
		return fmt.Errorf("rank %d: ignoring the state kept by an earlier process: %w", r.Self.Rank, file.DiscardReason)
	}
	return nil
}

func (r *Rank) stateOwner() kept.Owner {
	return kept.Owner{Rank: r.Self.Rank, Address: r.Self.Address.String()}
}

func (r *Rank) statePeer(rank int) kept.Peer {
	peer := r.Config.Rank(rank)
	return kept.Peer{Rank: rank, Address: peer.Address.String(), Kind: string(peer.Peer),
		Profile: r.Links()[rank].Profile.String()}
}

// ForgetState discards what processes of this user have saved about a peer for a rank in the configuration. The rank
// must not be running. ForgetState reports whether any state was saved.
func ForgetState(cfg *config.Config, self *config.Rank, peer int) (bool, error) {
	rank, err := Plan(cfg, self)
	if err != nil {
		return false, err
	}
	directory, err := privatedir.StatePath()
	if err != nil {
		return false, err
	}
	dir, err := privatedir.Open(filepath.Join(directory, stateSubdir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer dir.Close()
	return kept.Forget(dir, rank.stateOwner(), rank.statePeer(peer))
}

func (r *Rank) stateError(err error) error {
	return fmt.Errorf("rank %d: a restart in the middle of an exchange with a deployed rank may leave that rank "+
		"waiting forever, because no state can be kept: %w", r.Self.Rank, err)
}

// sessionlessPeers returns the peers that cannot detect that a new process now runs this host rank. These are the peers
// that use the cloudfpga or v0.9 profile over UDP.
func (r *Rank) sessionlessPeers() (ranks []int) {
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

// keeperFor returns the keeper that saves the state of the exchange with a peer.
func (r *Rank) keeperFor(rank int) mpe.Keeper {
	if k := r.keepers[rank]; k != nil {
		return k
	}
	return nopKeeper{}
}

// nopKeeper is a keeper that keeps nothing.
type nopKeeper struct{}

func (nopKeeper) Restore(handshake.Instant) handshake.SavedState { return handshake.SavedState{} }
func (nopKeeper) Keep(*handshake.SavedState)                     {}

// closeStateFile closes the state file. It must be called after the engine has been closed.
func (r *Rank) closeStateFile() error {
	if r.stateFile == nil {
		return nil
	}
	return r.stateFile.Close()
}

// keepUserState calls KeepState with the state directory of the user who runs this process.
func (r *Rank) keepUserState() error {
	if len(r.sessionlessPeers()) == 0 {
		return nil
	}
	directory, err := privatedir.StatePath()
	if err != nil {
		return r.stateError(err)
	}
	return r.KeepState(directory)
}
