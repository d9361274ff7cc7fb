package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// rawHeaderLen is the number of bytes in a raw datagram in addition to the message: the length of a packet's header.
// rawUDPMost is the maximum length of a message that still fits into one datagram together with a header, and
// rawPathMost the maximum length that also fits into one Ethernet frame.
const (
	rawHeaderLen = 32
	rawUDPMost   = 65507 - rawHeaderLen
	rawPathMost  = 1500 - 28 - rawHeaderLen
)

// raw measures a limit of the machine. Two processes exchange data without MPI.
type raw struct {
	key, name string
	group     Group
	// programs maps each workload to the C source that measures it, and to the first arguments of that program.
	programs map[string][]string
	// most is the largest step size n that the program supports. 0 means no limit.
	most int
}

var raws = []raw{
	{key: rawPoll, name: "raw UDP round trip, polling", group: Network, most: rawUDPMost,
		programs: map[string][]string{"pingpong": {"rawpingpong.c", "poll"}}},
	{key: "raw-udp-sleep", name: "raw UDP round trip, sleeping", group: Network, most: rawUDPMost,
		programs: map[string][]string{"pingpong": {"rawpingpong.c", "sleep"}}},
	{key: "raw-udp-one", name: "raw UDP, 1416-byte datagrams one by one", group: Network, programs: rawStream("one")},
	{key: "raw-udp-segment", name: "raw UDP, UDP_SEGMENT", group: Network, programs: rawStream("segment")},
	{key: rawGRO, name: "raw UDP, UDP_SEGMENT and UDP_GRO", group: Network, programs: rawStream("gro")},
	{key: rawRing, name: "raw shared memory", group: Memory, programs: map[string][]string{
		"pingpong": {"rawshm.c", "0"}, "stream": {"rawshm.c", strconv.Itoa(streamWindow)},
	}},
}

// vethRaw is rawPoll between two hosts.
var vethRaw = raw{key: rawVeth, name: "raw UDP round trip, polling", group: Hosts, most: rawUDPMost,
	programs: raws[0].programs}

// Keys of the limits used as references.
const (
	rawPoll = "raw-udp-poll"
	rawVeth = "raw-veth"
	rawXDP  = "raw-xdp"
	rawGRO  = "raw-udp-gro"
	rawRing = "raw-shm"
)

func rawStream(how string) map[string][]string {
	return map[string][]string{"stream": {"rawstream.c", strconv.Itoa(streamWindow), how}}
}

func rawFamily() family { return familyOfRaws(raws) }

func familyOfRaws(raws []raw) family {
	f := family{find: func(_ context.Context, dir string, _ func(string) bool) ([]side, []string, error) {
		return findRaws(raws, dir)
	}}
	for _, r := range raws {
		f.keys = append(f.keys, r.key)
	}
	return f
}

func findRaws(raws []raw, dir string) (found []side, missing []string, err error) {
	const lacking = "the raw limits are missing: %s. They are not measured"
	if runtime.GOOS != "linux" {
		return nil, []string{fmt.Sprintf(lacking, "their programs are for Linux")}, nil
	}
	if !installed("cc") {
		return nil, []string{fmt.Sprintf(lacking+". On Debian: apt-get install gcc libc6-dev",
			"there is no C compiler, cc")}, nil
	}
	compiler := newCompiler(dir, "cc")
	for _, r := range raws {
		found = append(found, r.side(compiler))
	}
	return found, nil, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

func (r raw) side(compiler *compiler) side {
	s := side{Side: Side{Key: r.key, Name: r.name, Kind: Limit, Group: r.group}}
	for _, program := range r.programs {
		s.Command = strings.TrimSuffix(program[0], ".c") + " " + strings.Join(program[1:], " ")
	}
	s.steps = func(w *workload, steps []step) []step {
		if r.programs[w.name] == nil {
			return nil
		}
		if r.most > 0 {
			return stepsUpTo(r.most, steps)
		}
		return steps
	}
	s.run = func(ctx context.Context, j job, out io.Writer) error {
		program := r.programs[j.w.name]
		path, err := compiler.compile(ctx, program[0])
		if err != nil {
			return err
		}
		cmd := command(ctx, path, append(program[1:len(program):len(program)], stepArgs(j.steps)...)...)
		cmd.Stdout = out
		if j.hosts != nil {
			sockets, err := j.hosts.openSockets()
			defer closeAll(sockets)
			if err != nil {
				return err
			}
			cmd.ExtraFiles, cmd.Env = sockets, append(os.Environ(), "RAW_SOCKETS=3") // the first number after stderr's
		}
		return cmd.run()
	}
	return s
}
