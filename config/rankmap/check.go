package rankmap

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Rules are the parts of Check that a test or a stand-in relaxes.
type Rules struct {
	// AllowAnyPort accepts FPGA ranks on ports other than protocol.Port. A
	// deployed FPGA has no other; a stand-in has.
	AllowAnyPort bool
}

// Check reports what deployed nodes do not support: an FPGA distinguishes its peers by
// IP address only, uses port 2718, and supports 64 ranks; upstream's CPU library supports
// 128. The error joins an *Error for every mistake.
func (m *Map) Check(rules Rules) error {
	var mistakes []error
	for _, limit := range []struct {
		kind Kind
		most int
	}{{FPGA, protocol.MaxRanksFPGA}, {CPU, protocol.MaxRanksCPU}} {
		if rank := m.first(limit.kind); rank != NoRank && m.Size() > limit.most {
			mistakes = append(mistakes, &Error{TooManyRanks, rank, NoRank, fmt.Sprintf(
				"there are %d ranks, but rank %d is of kind %v and can address %d at most: use fewer ranks, or none of that kind",
				m.Size(), rank, limit.kind, limit.most)})
		}
	}
	for _, e := range m.entries {
		if e.Kind == FPGA && e.Addr.Port() != protocol.Port && !rules.AllowAnyPort {
			mistakes = append(mistakes, &Error{FPGAPort, e.Rank, NoRank, fmt.Sprintf(
				"rank %d is an FPGA at port %d, but an FPGA sends to and from port %d only: correct the port",
				e.Rank, e.Addr.Port(), protocol.Port)})
		}
	}
	if fpga := m.first(FPGA); fpga != NoRank {
		mistakes = append(mistakes, m.sharedIPs(fpga)...)
	}
	return errors.Join(mistakes...)
}

// sharedIPs returns an Error for every IP that more than one rank has; it names
// the first two ranks.
func (m *Map) sharedIPs(fpga int) []error {
	holder := make(map[netip.Addr]int, len(m.entries))
	reported := make(map[netip.Addr]bool)
	var mistakes []error
	for _, e := range m.entries {
		ip := sourceKey(e.Addr).Addr()
		first, shared := holder[ip]
		if !shared {
			holder[ip] = e.Rank
			continue
		}
		if reported[ip] {
			continue
		}
		reported[ip] = true
		mistakes = append(mistakes, &Error{SharedIP, first, e.Rank, fmt.Sprintf(
			"ranks %d and %d share %v, but rank %d is an FPGA and distinguishes its peers by IP address only: give each rank its own IP address",
			first, e.Rank, ip, fpga)})
	}
	return mistakes
}

// first returns the lowest rank of the given kind, or NoRank.
func (m *Map) first(kind Kind) int {
	for _, e := range m.entries {
		if e.Kind == kind {
			return e.Rank
		}
	}
	return NoRank
}
