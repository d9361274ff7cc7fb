package digest

import (
	"fmt"
	"strconv"
	"strings"
)

// Filter selects the waits, ranks and peers that match all of its words. A number such as 2 matches a rank on either
// side, 2>17 matches a pair of ranks, and any other word matches part of an address, profile, error or other text.
type Filter struct{ words []string }

// NewFilter returns a filter for the space-separated words in text.
func NewFilter(text string) Filter { return Filter{strings.Fields(strings.ToLower(text))} }

// matches reports whether the filter matches an item that concerns two ranks and contains the given texts.
func (f Filter) matches(rank, peer int, texts ...string) bool {
	if len(f.words) == 0 {
		return true
	}
	text := strings.ToLower(strings.Join(texts, " "))
	for _, word := range f.words {
		if n, err := strconv.Atoi(word); err == nil {
			if n != rank && n != peer {
				return false
			}
			continue
		}
		if word != fmt.Sprintf("%d>%d", rank, peer) && !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// Waits returns the waits that match the filter, oldest first, without brief ones. others is the number of waits that
// neither match nor are brief.
func (f Filter) Waits(d *Digest) (fit []*Wait, others int) {
	old, _ := d.splitBrief()
	for i := range old {
		if w := &old[i]; f.matches(w.Rank, w.Peer, string(w.Direction), w.For.String(), w.Text) {
			fit = append(fit, w)
		}
	}
	return fit, len(old) - len(fit)
}

// Peers returns the peers that match the filter, in the given order. It returns a single entry for each pair of local
// ranks. Unless all is set, it counts silent peers instead of returning them.
func (f Filter) Peers(d *Digest, order Order, all bool) (fit []*Peer, silent, others int) {
	list := d.mergePairs()
	for i := range list {
		peer := &list[i]
		texts := []string{string(peer.Kind), peer.Address, string(peer.Profile), string(peer.Transport), peer.Refuses,
			peer.NetworkError}
		switch {
		case !f.matches(peer.Rank, peer.Peer, texts...) && !(peer.Local && f.matches(peer.Peer, peer.Rank, texts...)):
			others++
		case !all && !peer.Active():
			silent++
		default:
			fit = append(fit, peer)
		}
	}
	Sort(fit, order)
	return fit, silent, others
}

// maxListedIdle is the maximum number of local ranks for which Ranks lists idle ranks like all others.
const maxListedIdle = 8

// Ranks returns the local ranks that match the filter. If there are more than maxListedIdle local ranks, it returns
// idle ranks in a separate list unless all is set.
func (f Filter) Ranks(digest *Digest, all bool) (fit, idle []*Rank) {
	waiting := make(map[int]bool)
	for i := range digest.Waits {
		waiting[digest.Waits[i].Rank] = true
	}
	for i := range digest.Ranks {
		rank := &digest.Ranks[i]
		switch {
		case !f.matches(rank.Rank, rank.Rank, string(rank.Role), rank.Kernel, string(rank.KernelState), rank.Address,
			rank.TransportText(" ")):
		case !all && len(digest.Ranks) > maxListedIdle && rank.isIdle() && !waiting[rank.Rank]:
			idle = append(idle, rank)
		default:
			fit = append(fit, rank)
		}
	}
	return fit, idle
}
