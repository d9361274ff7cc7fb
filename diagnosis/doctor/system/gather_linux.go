package system

import (
	"context"

	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

// Gather returns the facts of this host for a plan. pid is the process of the daemon that runs the plan, or 0 if no
// daemon does. Gather sends echo requests on all paths, and ARP probes. Unanswered echo requests take about echoTries
// times echoWait for each source address.
func Gather(ctx context.Context, p *doctor.Plan, pid int) *doctor.Facts {
	f := &doctor.Facts{Ports: findPorts(p)}
	f.Paths = p.NeededPaths()
	probeEcho(ctx, f.Paths)
	addHostFacts(f, p, pid)
	f.Claims = doctor.NewFact(probeClaims(ctx, p, f))
	return f
}

// quickPaths is the maximum number of paths examined when a daemon starts. Each requires a route look-up, which takes
// some 20 µs.
const quickPaths = 256

// GatherQuick returns only the facts that can be read immediately, for at most quickPaths paths. It gathers no ports,
// and sends no echo requests or ARP probes.
func GatherQuick(p *doctor.Plan, pid int) *doctor.Facts {
	f := &doctor.Facts{}
	f.Paths = p.NeededPaths()
	f.Paths = f.Paths[:min(len(f.Paths), quickPaths)]
	addHostFacts(f, p, pid)
	return f
}

// addHostFacts adds those facts about the host that can be read immediately.
func addHostFacts(facts *doctor.Facts, p *doctor.Plan, pid int) {
	facts.Interfaces = doctor.NewFact(readInterfaces())
	facts.Buffer = doctor.NewFact(readBuffer(p.ReceiveBuffer))
	facts.Offload = doctor.NewFact(readOffload())
	facts.XDP = readXDP(p)
	facts.Clock = doctor.NewFact(readClock())
	facts.Files = doctor.NewFact(readFiles(pid))
	addRoutes(facts.Paths, facts.Interfaces.Value)
}
