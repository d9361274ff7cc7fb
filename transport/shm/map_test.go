package shm

import (
	"net/netip"
	"strings"

	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// parseMap returns the map of software ranks at the given addresses, separated by commas.
func parseMap(addrs string) *rankmap.Map {
	var entries []rankmap.Entry
	for rank, addr := range strings.Split(addrs, ",") {
		entries = append(entries,
			rankmap.Entry{Rank: rank, Addr: netip.MustParseAddrPort(addr), Kind: rankmap.Software})
	}
	m, err := rankmap.New(entries)
	if err != nil {
		panic(err)
	}
	return m
}
