package system

import (
	"errors"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/udp/xdp"
)

// readXDP examines the devices of the local ranks with a link that may use AF_XDP.
func readXDP(p *doctor.Plan) (list []doctor.XDP) {
	seen := make(map[int]bool)
	for i := range p.Links {
		link := &p.Links[i]
		if link.Path == "" || link.Path == config.PathKernel || link.Transport != config.TransportUDP || seen[link.Rank] {
			continue
		}
		seen[link.Rank] = true
		fact := doctor.XDP{Rank: link.Rank}
		for j := range p.Ranks {
			if p.Ranks[j].Rank != link.Rank {
				continue
			}
			d, err := xdp.Examine(p.Ranks[j].Addr.Addr())
			fact.Device, fact.Driver, fact.Queues = d.Name, d.Driver, d.Queues
			if err != nil {
				fact.Problem, fact.Filtered = err.Error(), errors.Is(err, xdp.ErrFiltered)
			}
		}
		list = append(list, fact)
	}
	return list
}
