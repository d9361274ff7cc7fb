package system

import (
	"context"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

// Gather returns the facts of this host for a plan. pid is the process of the daemon that runs it; 0: none does. It
// sends
// echo requests on all paths, takes about echoTime if one is not answered, and sends ARP probes.
func Gather(ctx context.Context, p *doctor.Plan, pid int) *doctor.Facts {
	f := &doctor.Facts{Ports: ports(p)}
	f.Paths = p.NeededPaths()
	echo(ctx, f.Paths)
	host(f, p, pid)
	f.Claims = doctor.Known(claims(ctx, p, f))
	return f
}

// quickPaths bounds the paths that are examined at the start of a daemon: a route takes some 20 µs.
const quickPaths = 256

// GatherQuick returns those that take no time: without ports and echo requests, and of at most quickPaths paths.
func GatherQuick(p *doctor.Plan, pid int) *doctor.Facts {
	f := &doctor.Facts{}
	f.Paths = p.NeededPaths()
	f.Paths = f.Paths[:min(len(f.Paths), quickPaths)]
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
