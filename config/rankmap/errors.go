package rankmap

// Mistake is what is wrong with a rank map, in one word that logs and tests can
// compare.
type Mistake string

// The mistakes that New finds.
const (
	// Empty: there are no entries.
	Empty Mistake = "empty"
	// BadRank: a negative rank, or one at or above the number of entries,
	// which leaves a gap below it.
	BadRank Mistake = "bad_rank"
	// DuplicateRank: two entries have the same rank.
	DuplicateRank Mistake = "duplicate_rank"
	// BadKind: the kind is not one of the three.
	BadKind Mistake = "bad_kind"
	// BadAddress: the IP is missing, unspecified, multicast or broadcast,
	// or the port is 0.
	BadAddress Mistake = "bad_address"
	// SameAddress: two ranks have the same IP and port.
	SameAddress Mistake = "same_address"
	// MixedFamilies: one rank has an IPv4 address and another an IPv6 one.
	MixedFamilies Mistake = "mixed_families"
)

// The mistakes that Check finds.
const (
	// SharedIP: two ranks share an IP in a cluster with an FPGA.
	SharedIP Mistake = "shared_ip"
	// FPGAPort: an FPGA's port is not protocol.Port.
	FPGAPort Mistake = "fpga_port"
	// TooManyRanks: more ranks than a deployed node can address.
	TooManyRanks Mistake = "too_many_ranks"
)

// NoRank stands in an Error for a rank that the mistake does not have.
const NoRank = -1

// Error is one mistake in a rank map. New and Check report every mistake they
// find, joined; errors.As finds the first.
type Error struct {
	Mistake Mistake
	// Rank is the rank with the mistake, and Other the second rank where
	// the mistake takes two; NoRank where there is none.
	Rank, Other int
	// Problem is the sentence for people: what is wrong and what to do.
	Problem string
}

// Error returns the problem.
func (e *Error) Error() string { return "rank map: " + e.Problem }

// Is makes errors.Is match any Error with the same mistake.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Mistake == e.Mistake
}
