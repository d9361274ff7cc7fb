package system

import (
	"context"

	"github.com/zrlmpi/zrlmpid/doctor"
)

// Gather returns the facts of this host for a plan. pid is the process of the daemon that runs it; 0: none does. It sends
// echo requests on all paths, and takes about echoTime if one is not answered.
func Gather(ctx context.Context, p *doctor.Plan, pid int) *doctor.Facts {
	f := &doctor.Facts{Ports: ports(p), Firewall: doctor.Known(firewall(ctx))}
	var lengths []int
	f.Paths, lengths = p.NeededPaths()
	echo(ctx, f.Paths, lengths)
	host(f, p, pid)
	return f
}

// GatherQuick returns those that take no time: without ports, neighbours, echo requests and firewall.
func GatherQuick(p *doctor.Plan, pid int) *doctor.Facts {
	f := &doctor.Facts{}
	f.Paths, _ = p.NeededPaths()
	host(f, p, pid)
	return f
}

// host adds what is read at once.
func host(f *doctor.Facts, p *doctor.Plan, pid int) {
	f.Interfaces = doctor.Known(interfaces())
	f.Buffer = doctor.Known(buffer(p.ReceiveBuffer))
	f.Offload = doctor.Known(offload())
	f.Clock = doctor.Known(clock())
	f.Files = doctor.Known(files(pid))
	routes(f.Paths, f.Interfaces.Value)
}
