package hangs_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/internal/testkit/tlstest"
	"github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// hang is a hang of three ranks on three hosts, with its cause.
type hang struct {
	name string
	// c means that the programs are in C instead of Go. job means that each program is itself a rank, instead of using
	// the rank of a daemon.
	c, job   bool
	defaults string
	// programs lists the steps of each rank, and kernels the kernels of ranks that are stand-ins.
	programs, kernels [3]string
	// edits are replacements in each host's configuration.
	edits map[int][]string
	// before is called before the daemons and programs start, and disturb when the programs are ready.
	before, disturb func(s *site)
	// hung lists the ranks that hang, as digits.
	hung  string
	cause cause
	// silent is the reason why a host with a hanging rank yields no diagnosis, if any.
	silent string
}

// cause is the expected cause: one of several IDs, the most specific first, at a rank or between a rank and a peer.
type cause struct {
	ids        string
	rank, peer int
}

// of returns a cause at one rank.
func of(rank int, ids ...string) cause { return cause{strings.Join(ids, " "), rank, -1} }

// between returns a cause between two ranks. If packets are lost, the first rank is their sender.
func between(rank, peer int, ids ...string) cause { return cause{strings.Join(ids, " "), rank, peer} }

// fits reports whether a found cause is the expected one.
func (h *hang) fits(id string, rank, peer int) bool {
	c := &h.cause
	switch {
	case id == diagnosis.WaitsElsewhere && strings.Contains(h.hung, fmt.Sprint(rank)): // for the culprit
		return true
	case !slices.Contains(strings.Fields(c.ids), id):
		return false
	case id == diagnosis.WaitCycle:
		return true
	case c.peer < 0:
		return rank == c.rank ||
			peer == c.rank && slices.Contains(append(blocked, diagnosis.OtherCall, diagnosis.TLSMismatch), id)
	case id == diagnosis.PacketsBlocked, id == diagnosis.LostPacket, id == diagnosis.PathMTU:
		return rank == c.rank && peer == c.peer || strings.HasPrefix(c.ids, "both ") && rank == c.peer && peer == c.rank
	}
	return rank == c.rank && peer == c.peer || rank == c.peer && peer == c.rank
}

func stop(rank int) func(s *site) {
	return func(s *site) { s.signal(s.ready[rank], unix.SIGSTOP) }
}

func kill(rank int) func(s *site) {
	return func(s *site) { s.signal(s.ready[rank], unix.SIGKILL) }
}

func (s *site) signal(p *os.Process, signal unix.Signal) {
	if err := p.Signal(signal); err != nil {
		s.t.Error(err)
	}
}

// daemonGets returns a disturbance that sends a signal to a daemon, which then does not answer.
func daemonGets(host int, signal unix.Signal) func(s *site) {
	return func(s *site) {
		s.signal(s.daemons[host].Process, signal)
		s.gone[host] = true
	}
}

func restart(host int) func(s *site) {
	return func(s *site) {
		s.signal(s.daemons[host].Process, unix.SIGKILL)
		_, _ = s.daemons[host].Process.Wait()
		s.startDaemon(host)
	}
}

// startAgain returns a disturbance that kills the program of a rank and starts it again.
func startAgain(rank int) func(s *site) {
	return func(s *site) {
		kill(rank)(s)
		s.until("the daemon to know", func() bool {
			client := control.NewClient(s.path(rank, "c.sock"))
			defer client.Close()
			status, err := client.Status(s.t.Context())
			return err == nil && len(status.Ranks[0].Attached) == 0
		})
		s.startProgram(rank)
	}
}

// restartInMessage returns a disturbance that restarts a daemon after its rank has asked rank 0 to send. Packets from
// rank 0 are blocked until then.
func restartInMessage(host int) func(s *site) {
	return func(s *site) {
		s.until("the request to be cleared", func() bool {
			d, err := s.why(0, false)
			return err == nil && len(d.Findings) > 0 && d.Findings[0].Missing == protocol.Data
		})
		restart(host)(s)
		s.router.IP(fmt.Sprintf("rule del from %s to %s blackhole", address(0), address(host)))
	}
}

func absent(host int) func(s *site) { return func(s *site) { s.gone[host] = true } }

// block returns a disturbance in which the router drops packets from one host to another.
func block(from, to int) func(s *site) {
	return func(s *site) {
		s.router.IP(fmt.Sprintf("rule add from %s to %s blackhole", address(from), address(to)))
	}
}

// reject makes the router reject them.
func reject(from, to int) func(s *site) {
	return func(s *site) {
		s.router.IP(fmt.Sprintf("rule del from 10.9.%d.254 blackhole", from),
			fmt.Sprintf("rule add from %s to %s prohibit", address(from), address(to)))
	}
}

// translate returns a disturbance in which the router changes the source address of packets from one host to another.
func translate(from, to int) func(s *site) {
	return func(s *site) {
		s.router.Run(needs.Program(s.t, "translated addresses", "nft", "nftables"),
			fmt.Sprintf("table ip hang { chain post { "+
				"type nat hook postrouting priority 100; oifname port%d ip saddr %s masquerade; }; }", to,
				address(from)))
	}
}

func cut(a, b int) func(s *site) {
	return func(s *site) {
		block(a, b)(s)
		block(b, a)(s)
	}
}

// secure configures TLS on the hosts. Each letter selects the authority that issued the certificate of a host.
func secure(authorities string) func(s *site) {
	return func(s *site) {
		var hosts []string
		for host := range s.host {
			hosts = append(hosts, address(host))
		}
		sections := map[rune]string{'-': ""}
		for host, of := range authorities {
			if _, made := sections[of]; !made {
				sections[of] = tlstest.Section(s.t, hosts...) + "\n"
			}
			s.more[host] = sections[of]
		}
	}
}

func down(host int) func(s *site) {
	return func(s *site) { s.host[host].IP("link set eth0 down") }
}

// narrow returns a disturbance that lowers the MTU of the router's link to a host. The router sends no ICMP errors for
// dropped packets.
func narrow(host int) func(s *site) {
	return func(s *site) { s.router.IP(fmt.Sprintf("link set port%d mtu 1000", host)) }
}

// The accepted names of causes, the most specific first.
var (
	wrongTag      = []string{diagnosis.TagMismatch, diagnosis.OtherCall}
	wrongComm     = []string{diagnosis.CommMismatch, diagnosis.OtherCall}
	wrongDatatype = []string{diagnosis.DatatypeMismatch, diagnosis.OtherCall}
	wrongRoot     = []string{diagnosis.RootMismatch, diagnosis.OtherCall}
	wrongOrder    = []string{diagnosis.CallOrder, diagnosis.OtherCall}
	inCycle       = []string{diagnosis.WaitCycle, diagnosis.OtherCall}
	ended         = []string{diagnosis.ProcessEnded, diagnosis.NotAttached}
	blocked       = []string{diagnosis.PacketsBlocked, diagnosis.LostPacket, diagnosis.NetworkError}
	wrongMap      = []string{diagnosis.WrongAddress, diagnosis.NetworkError}
)

const (
	overUDP  = "profile: extended, transport: udp, deadlines: {ack: 2m}"
	overTCP  = "profile: extended, transport: tcp, deadlines: {ack: 2m}"
	deployed = "profile: cloudfpga, deadlines: {clear: 2m, data: 2m, ack: 2m}"
	begin    = "barrier, ready, "
	compute  = ", compute"
)

// all returns the same program for all ranks but one.
func all(program string, but int, other string) (list [3]string) {
	for i := range list {
		list[i] = program
	}
	list[but] = other
	return list
}

var hangs = []hang{
	// Causes in programs.
	{name: "wrong tag", c: true, job: true, defaults: overUDP,
		programs: [3]string{begin + "send 1 7 4, recv 1 8 4", begin + "recv 0 5 4", begin + "compute"}, hung: "01",
		cause: of(1, wrongTag...)},
	{name: "sent ahead of another one", c: true, job: true, defaults: overUDP,
		programs: [3]string{begin + "send 1 7 4" + compute, begin + "recv 0 5 4, recv 0 7 4", begin + "compute"},
		hung:     "1",
		cause:    of(0, diagnosis.ProgramComputes)},
	{name: "wrong tag, long message", defaults: overTCP,
		programs: [3]string{begin + "send 1 7 90000", begin + "recv 0 5 90000", begin + "compute"}, hung: "01",
		cause: of(1, wrongTag...)},
	{name: "wrong tag, profile cloudfpga", defaults: strings.Replace(deployed, "cloudfpga", "v0.9", 1),
		programs: [3]string{"send 1 7 4", "recv 0 5 4", "compute"}, hung: "01", cause: of(1, wrongTag...)},
	{name: "wrong root", c: true, job: true, defaults: overTCP,
		programs: all(begin+"reduce 0 4"+compute, 1, begin+"reduce 1 4"+compute), hung: "0",
		cause: of(1, wrongRoot...)},
	{name: "wrong datatype", c: true, defaults: deployed,
		programs: [3]string{"floats 1 0 4", "recv 0 0 4", "compute"}, hung: "01", cause: of(1, wrongDatatype...)},
	{name: "wrong communicator", c: true, job: true, defaults: overUDP,
		programs: [3]string{"dup, ready, send 1 7 4, recv 1 7 4", "dup, ready, world, recv 0 7 4",
			"dup, ready" + compute}, hung: "01",
		cause: of(1, wrongComm...)},
	{name: "other collective call", c: true, defaults: overTCP,
		programs: all(begin+"allreduce 1", 1, begin+"scan 1"+compute), hung: "0", cause: of(1, wrongOrder...)},
	{name: "order of collective calls", c: true, job: true, defaults: overUDP,
		programs: all(begin+"reduce 0 4, allreduce 1", 1, begin+"allreduce 1, reduce 0 4"), hung: "012",
		cause: of(1, wrongOrder...)},
	{name: "cycle of two", c: true, defaults: overUDP,
		programs: [3]string{begin + "recv 1 0 4", begin + "recv 0 0 4", begin + "compute"}, hung: "01",
		cause: of(0, inCycle...)},
	{name: "cycle of three", c: true, job: true, defaults: overTCP,
		programs: [3]string{begin + "ssend 1 0 90000", begin + "ssend 2 0 90000", begin + "ssend 0 0 90000"},
		hung:     "012",
		cause:    of(0, inCycle...)},
	{name: "cycle of three, profile cloudfpga", defaults: deployed,
		programs: [3]string{"send 1 0 4", "send 2 0 4", "send 0 0 4"}, hung: "012", cause: of(0, inCycle...)},
	{name: "computes", c: true, job: true, defaults: overUDP,
		programs: all(begin+"allreduce 1", 1, begin+"compute"), hung: "02", cause: of(1, diagnosis.ProgramComputes)},
	{name: "computes, profile cloudfpga", defaults: deployed,
		programs: [3]string{"send 1 0 4", "compute", "compute"}, hung: "0", cause: of(1, diagnosis.ProgramComputes)},
	{name: "computes with a receive posted", c: true, defaults: overUDP,
		programs: all(begin+"allreduce 1", 1, begin+"irecv 2 3 4, compute"), hung: "02",
		cause: of(1, diagnosis.ProgramComputes)},
	{name: "computes with a receive posted, in a job", job: true, defaults: overTCP,
		programs: all(begin+"allreduce 1", 1, begin+"irecv 2 3 4, compute"), hung: "02",
		cause: of(1, diagnosis.ProgramComputes)},
	{name: "error ignored", c: true, defaults: overUDP,
		programs: all(begin+"send 1 3 4, allreduce 1", 1, begin+"try 0 3 1, compute"), hung: "02",
		cause: of(1, diagnosis.CallFailed, diagnosis.ProgramComputes)},
	// Causes in processes.
	{name: "stopped", c: true, job: true, defaults: overUDP, programs: all(begin+"allreduce 1", 1, begin+"compute"),
		disturb: stop(1),
		hung:    "02", cause: of(1, diagnosis.ProcessStopped)},
	{name: "stopped, with a daemon", c: true, defaults: overTCP, programs: all(begin+"allreduce 1", 1, begin+"compute"),
		disturb: stop(1),
		hung:    "02", cause: of(1, diagnosis.ProcessStopped)},
	{name: "killed", c: true, defaults: overUDP, programs: all(begin+"allreduce 1", 1, begin+"compute"),
		disturb: kill(1),
		hung:    "02", cause: of(1, ended...)},
	{name: "killed and started again", c: true, defaults: overUDP,
		programs: [3]string{"barrier, recv 1 1 4, ready, recv 1 2 4", "barrier, send 0 1 4, ready, compute",
			begin + "compute"},
		disturb: startAgain(1), hung: "01", cause: of(1, diagnosis.Restarted)},
	{name: "killed and started again, profile cloudfpga", defaults: deployed,
		programs: [3]string{"recv 1 1 4, ready, send 1 2 4", "send 0 1 4, ready, compute", "compute"},
		disturb:  startAgain(1), hung: "01", cause: of(1, diagnosis.Restarted)},
	{name: "never started", c: true, defaults: overTCP, programs: all("allreduce 1", 1, ""), hung: "02",
		cause: of(1, ended...)},
	{name: "ended before its receive", c: true, defaults: overUDP,
		programs: [3]string{begin + "ssend 1 0 4", begin + "exit", begin + "compute"}, hung: "0",
		cause: of(1, ended...)},
	{name: "in MPI_Finalize", c: true, defaults: overUDP,
		programs: [3]string{begin + "ssend 1 0 4", "barrier, ready", begin + "compute"}, hung: "0",
		cause: of(1, ended...)},
	{name: "daemon stopped", defaults: overUDP, programs: all(begin+"allreduce 1", 1, begin+"compute"),
		disturb: daemonGets(1, unix.SIGSTOP), hung: "02", cause: of(1, diagnosis.ProcessStopped)},
	{name: "daemon killed", defaults: overUDP, programs: all(begin+"allreduce 1", 1, begin+"compute"),
		disturb: daemonGets(1, unix.SIGKILL), hung: "02", cause: of(1, diagnosis.ProcessEnded)},
	{name: "daemon restarted in the message", defaults: deployed,
		programs: [3]string{"recv 1 0 4", "send 0 0 4", "compute"}, before: block(0, 1), disturb: restartInMessage(1),
		hung:  "0",
		cause: of(1, diagnosis.Restarted, diagnosis.NotAttached)},
	// Causes in the network.
	{name: "direction blocked", c: true, defaults: overUDP, programs: all("allreduce 1", 2, "allreduce 1"),
		before: block(1, 0),
		hung:   "012", cause: between(1, 0, blocked...)},
	{name: "direction blocked later", c: true, defaults: overTCP,
		programs: [3]string{begin + "send 1 0 90000", begin + "recv 0 0 90000", begin + "compute"},
		disturb:  block(0, 1), hung: "01",
		cause: between(0, 1, blocked...)},
	{name: "direction blocked, profile cloudfpga", defaults: deployed,
		programs: [3]string{"send 1 0 4", "recv 0 0 4", "compute"},
		before:   block(1, 0), hung: "01", cause: between(1, 0, blocked...)},
	{name: "cut", c: true, job: true, defaults: overUDP,
		programs: [3]string{begin + "send 1 0 4, recv 1 0 4", begin + "recv 0 0 4, send 0 0 4", begin + "compute"},
		disturb:  cut(0, 1),
		hung:     "01", cause: between(0, 1, append([]string{"both"}, blocked...)...)},
	{name: "interface down", c: true, defaults: overTCP,
		programs: all(begin+"allreduce 1, allreduce 1", 1, begin+"allreduce 1"+compute), disturb: down(1), hung: "02",
		cause: of(1, blocked...)},
	{name: "firewall rejects", defaults: deployed, programs: [3]string{"send 1 0 4", "recv 0 0 4", "compute"},
		before: reject(0, 1),
		hung:   "01", cause: between(0, 1, blocked...)},
	{name: "address translated", c: true, defaults: overUDP, programs: all("allreduce 1", 2, "allreduce 1"),
		before: translate(0, 1),
		hung:   "012", cause: between(0, 1, append(wrongMap, blocked...)...)},
	{name: "address translated, profile cloudfpga", defaults: deployed,
		programs: [3]string{"send 1 0 4", "recv 0 0 4", "compute"},
		before:   translate(0, 1), hung: "01", cause: between(0, 1, append(wrongMap, blocked...)...)},
	{name: "path MTU", defaults: deployed,
		programs: [3]string{"ready, send 1 0 5000", "ready, recv 0 0 5000", "compute"},
		edits:    map[int][]string{0: {"defaults:", "limits: {offload: off}\ndefaults:"}}, before: narrow(0),
		hung:  "01",
		cause: between(0, 1, diagnosis.PathMTU)},
	// Causes in configurations.
	{name: "addresses swapped", defaults: overUDP, programs: [3]string{"send 1 0 90000", "recv 0 0 90000", "compute"},
		edits: map[int][]string{0: {address(1), address(2), address(2), address(1)}}, hung: "01",
		cause: between(0, 1, wrongMap...)},
	{name: "addresses swapped, profile cloudfpga", defaults: deployed,
		programs: [3]string{"send 1 0 4", "recv 0 0 4", "compute"},
		edits:    map[int][]string{0: {address(1), address(2), address(2), address(1)}}, hung: "01",
		cause: between(0, 1, wrongMap...)},
	{name: "address of no host", defaults: overUDP, programs: [3]string{"send 1 0 90000", "recv 0 0 90000", "compute"},
		edits: map[int][]string{0: {address(1), "10.9.1.77"}}, hung: "01", cause: between(0, 1, wrongMap...)},
	{name: "other port", defaults: deployed, programs: [3]string{"send 1 0 4", "recv 0 0 4", "compute"},
		edits: map[int][]string{1: {address(1), address(1) + ":2719"}}, hung: "01", cause: between(0, 1, wrongMap...)},
	{name: "other profile", defaults: overUDP, programs: [3]string{"send 1 0 90000", "recv 0 0 90000", "compute"},
		edits: map[int][]string{1: {overUDP, deployed}}, hung: "01", cause: between(0, 1, diagnosis.WrongProfile)},
	{name: "TLS, other authority", c: true, defaults: overTCP, programs: all("allreduce 1", 2, "allreduce 1"),
		before: secure("ABB"), hung: "012",
		cause: of(0, diagnosis.TLSMismatch)},
	{name: "TLS of one side, which dials", defaults: overTCP, programs: all("allreduce 1", 2, "allreduce 1"),
		before: secure("A--"),
		hung:   "012", cause: of(0, diagnosis.TLSMismatch)},
	{name: "TLS of one side, which accepts", c: true, defaults: overTCP, programs: all("allreduce 1", 2, "allreduce 1"),
		before: secure("--A"),
		hung:   "012", cause: of(2, diagnosis.TLSMismatch)},
	// Causes in stand-ins.
	{name: "kernel waits", defaults: deployed, kernels: [3]string{1: "echo"},
		programs: [3]string{"recv 1 0 4", "", "compute"}, hung: "0",
		cause: of(1, diagnosis.KernelWaits, diagnosis.WaitCycle, diagnosis.WaitsElsewhere)},
	{name: "stand-in never started", defaults: deployed, kernels: [3]string{1: "echo"},
		programs: [3]string{"send 1 0 4", "", "compute"},
		before:   absent(1), hung: "0", cause: of(1, diagnosis.ProcessEnded)},
	{name: "stand-in's packets blocked", defaults: deployed, kernels: [3]string{1: "sink"},
		programs: [3]string{"send 1 0 4", "", "compute"}, before: block(1, 0), hung: "0",
		cause: between(1, 0, blocked...)},
}

// vantages is the number of vantages: each host, and all daemons together.
const vantages = 4

// TestHosts checks that every answer is the cause or a list that contains the cause, whichever host is asked.
func TestHosts(t *testing.T) {
	builtBinaries(t)
	answers := make([][vantages]string, len(hangs))
	t.Run("hangs", func(t *testing.T) {
		for i := range hangs {
			t.Run(hangs[i].name, func(t *testing.T) {
				t.Parallel()
				answers[i] = newSite(t, &hangs[i]).explained()
			})
		}
	})
	if *write {
		totals, kinds := tables(answers)
		title := fmt.Sprintf("%d hangs", len(hangs))
		if err := verdict.Write("../../../docs/reliability.md", "hosts", title, totals, kinds); err != nil {
			t.Fatal(err)
		}
	}
}

// explained asks all vantages at all moments, and returns the last answers.
func (s *site) explained() (last [vantages]string) {
	s.run()
	began := time.Now()
	for _, moment := range moments {
		time.Sleep(time.Until(began.Add(moment))) // the age of the hang matters
		var asking sync.WaitGroup
		for vantage := range last {
			asking.Go(func() { last[vantage] = s.answer(vantage, moment) })
		}
		asking.Wait()
	}
	return last
}

// answer asks a vantage and returns the verdict, or "" if no hanging rank can be asked there.
func (s *site) answer(vantage int, moment time.Duration) string {
	host, all := vantage, vantage == len(s.host)
	if all {
		host = slices.Index(s.gone[:], false)
	}
	if s.gone[host] || all && s.hang.job {
		return ""
	}
	hangs := all || strings.Contains(s.hang.hung, fmt.Sprint(host))
	d, err := s.why(host, all)
	if err != nil {
		if hangs {
			s.t.Errorf("host %d: %v", host, err)
		}
		return ""
	}
	is := verdict.Compare(d, s.hang.fits)
	switch {
	case is == verdict.Silent && !hangs:
		return ""
	case is == verdict.Wrong, is == verdict.Missing, is == verdict.Silent && s.hang.silent == "":
		s.t.Errorf("%v after %v, from host %d, all daemons: %v; the cause is %+v\n%s", is, moment, host, all,
			s.hang.cause, d.Text())
	default:
		s.t.Logf("%v after %v, from host %d, all daemons: %v\n%s", is, moment, host, all, d.Text())
	}
	return is.String()
}

// tables returns the totals of each vantage, and the answers to each hang.
func tables(answers [][vantages]string) (totals, kinds [][]string) {
	names := []string{"host 0", "host 1", "host 2", "all daemons"}
	counts := [vantages]verdict.Counts{}
	kinds = [][]string{append([]string{"hang", "programs"}, names...)}
	for i, h := range hangs {
		programs := "Go"
		if h.c {
			programs = "C"
		}
		if h.job {
			programs += ", a job"
		}
		kinds = append(kinds, append([]string{h.name, programs}, answers[i][:]...))
		for vantage, is := range answers[i] {
			for v := range verdict.Wrong + 1 {
				if v.String() == is {
					counts[vantage][v]++
				}
			}
		}
	}
	totals = [][]string{append([]string{"asked at"}, verdict.Columns...)}
	for vantage, c := range counts {
		totals = append(totals, append([]string{names[vantage]}, c.Cells()...))
	}
	return totals, kinds
}
