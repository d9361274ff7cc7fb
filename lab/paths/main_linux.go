package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/netns"
	"github.com/zrlmpi/zrlmpid/lab/bench"
)

// sideCommand is the argument that makes the program run one side.
const sideCommand = "side"

// roundLimit is the maximum duration of one pair in one round.
const roundLimit = time.Minute

// report is the result of a run.
type report struct {
	Machine bench.Machine `json:"machine"`
	Trips   int           `json:"trips"`
	Pairs   []*pair       `json:"pairs"`
}

// pair is a combination of paths and its figures for each round. Times are in µs.
type pair struct {
	Host string `json:"host"`
	Peer string `json:"peer"`
	// Missing is the reason why this kernel does not support the pair, or empty.
	Missing   string    `json:"missing,omitempty"`
	P50       []float64 `json:"p50_us"`
	P99       []float64 `json:"p99_us"`
	Preempted []int     `json:"preempted"`
	// BusyPolled is the percentage of the host's packets that system calls took from the device.
	BusyPolled []float64 `json:"busy_polled_percent"`
	paths      [2]int
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("paths: ")
	if len(os.Args) == 3 && os.Args[1] == sideCommand {
		runSide(os.Args[2])
		return
	}
	rounds := flag.Int("rounds", 9, "number of `rounds`")
	trips := flag.Int("trips", 20_000, "round `trips` of a pair in one round")
	only := flag.String("paths", "", "measure only these `paths`, separated by commas, and udp")
	file := flag.String("json", "", "write the figures of all rounds to this `file`")
	flag.Parse()
	r, err := measure(*rounds, *trips, *only)
	must("cannot measure", err)
	must("print", r.print(os.Stdout))
	if *file != "" {
		text, err := json.MarshalIndent(r, "", " ")
		must("json", err)
		must("json", os.WriteFile(*file, append(text, '\n'), 0o644))
	}
}

// measure measures each path with the same path as its peer, and with a UDP socket as its peer.
func measure(rounds, trips int, only string) (*report, error) {
	r := &report{Machine: bench.DescribeMachine(), Trips: trips}
	for i, p := range paths {
		if i > 0 && only != "" && !slices.Contains(strings.Split(only, ","), p.name) {
			continue
		}
		r.Pairs = append(r.Pairs, &pair{Host: p.name, Peer: p.name, paths: [2]int{i, i}})
		if i > 0 {
			r.Pairs = append(r.Pairs, &pair{Host: p.name, Peer: paths[0].name, paths: [2]int{i, 0}})
		}
	}
	for range rounds {
		for _, i := range rand.Perm(len(r.Pairs)) {
			p := r.Pairs[i]
			if err := p.round(trips); err != nil {
				return nil, fmt.Errorf("%s with %s: %w", p.Host, p.Peer, err)
			}
		}
	}
	r.Machine.LoadAfter = bench.DescribeMachine().LoadBefore
	return r, nil
}

// round runs one round of a pair and appends its figures.
func (p *pair) round(trips int) error {
	if p.Missing != "" {
		return nil
	}
	var options [2]string
	for i, e := range endpoints {
		options[i] = fmt.Sprintf("address %v numrxqueues 1 numtxqueues 1", e.MAC)
	}
	hosts, err := netns.NewPair(options)
	if err != nil {
		return err
	}
	defer hosts.Close()
	ctx, cancel := context.WithTimeout(context.Background(), roundLimit)
	defer cancel()
	var runs [2]*process
	for i, n := range hosts {
		if err := configure(n, i, paths[p.paths[i]].gro); err != nil {
			return err
		}
		if runs[i], err = start(ctx, n, side{p.paths[i], i, trips}); err != nil {
			return err
		}
	}
	for _, run := range runs {
		if line, err := run.stdout.ReadString('\n'); line != "ready\n" {
			p.Missing = run.failure(err).Error()
			return nil
		}
	}
	runs[0].stdin.Close() // starts the host
	var f [2]figures
	for i, run := range runs {
		if err := json.NewDecoder(run.stdout).Decode(&f[i]); err != nil {
			return run.failure(err)
		}
		if err := run.command.Wait(); err != nil {
			return err
		}
	}
	p.P50 = append(p.P50, float64(f[0].P50)/float64(time.Microsecond))
	p.P99 = append(p.P99, float64(f[0].P99)/float64(time.Microsecond))
	p.Preempted = append(p.Preempted, f[0].Preempted+f[1].Preempted)
	p.BusyPolled = append(p.BusyPolled, f[0].BusyPolled)
	return nil
}

// configure configures an end of the veth pair.
func configure(n *netns.Namespace, index int, gro bool) error {
	peer := endpoints[1-index]
	err := errors.Join(n.Set("net.ipv6.conf.all.disable_ipv6", "1"),
		n.RunIP(fmt.Sprintf("neigh replace %v lladdr %v dev eth0 nud permanent", peer.Addr, peer.MAC)),
		n.SetFeature("eth0", unix.ETHTOOL_STXCSUM, 0))
	if gro {
		err = errors.Join(err, n.SetFeature("eth0", unix.ETHTOOL_SGRO, 1))
	}
	return err
}

// process is a running side.
type process struct {
	command *exec.Cmd
	stdin   io.Closer
	stdout  *bufio.Reader
	stderr  bytes.Buffer
}

// start starts a side in its namespace, on its processor.
func start(ctx context.Context, n *netns.Namespace, s side) (*process, error) {
	description, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{command: exec.CommandContext(ctx, "/proc/self/exe", sideCommand, string(description))}
	p.command.Env = append(os.Environ(), "GODEBUG=asyncpreemptoff=1") // signals would interrupt system calls
	p.command.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL}
	p.command.Stderr = &p.stderr
	stdin, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	n.Do(func() {
		var cpus unix.CPUSet
		cpus.Set(s.Index)
		if err = unix.SchedSetaffinity(0, &cpus); err == nil { // the process inherits it
			err = p.command.Start()
		}
	})
	return p, err
}

func (p *process) failure(err error) error {
	return fmt.Errorf("%w (%w): %s", err, p.command.Wait(), bytes.TrimSpace(p.stderr.Bytes()))
}

// print prints medians of the rounds, with their ranges.
func (r *report) print(w io.Writer) error {
	fmt.Fprintf(w, "%d × %s, %s; load before %s, after %s\nmedian (range) of %d rounds of %d round trips, in µs\n\n",
		r.Machine.Cores, r.Machine.CPU, r.Machine.System, r.Machine.LoadBefore, r.Machine.LoadAfter,
		len(r.Pairs[0].P50), r.Trips)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "host\tpeer\tp50\t\tp99\t\tof udp\tpreempted\tbusy-polled\t")
	for _, p := range r.Pairs {
		if p.Missing != "" {
			fmt.Fprintf(w, "%s with %s: %s\n", p.Host, p.Peer, p.Missing)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.2f\t%d\t%.0f %%\t\n", p.Host, p.Peer, spread(p.P50), spread(p.P99),
			median(p.P50)/median(r.Pairs[0].P50), median(p.Preempted), median(p.BusyPolled))
	}
	return t.Flush()
}

func spread(all []float64) string {
	return fmt.Sprintf("%.2f\t(%.2f–%.2f)", median(all), slices.Min(all), slices.Max(all))
}

func median[T int | float64](all []T) T { return slices.Sorted(slices.Values(all))[len(all)/2] }
