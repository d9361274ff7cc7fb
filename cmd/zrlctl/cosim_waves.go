package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/capture/vcd"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// wavesFlags holds the flags of cosim waves.
type wavesFlags struct {
	input  captureInput
	output string
	waves  string
	period uint64
	rank   int
}

func (a *app) cosimWavesCommand() *cobra.Command {
	var flags wavesFlags
	cmd := &cobra.Command{
		Use: "waves CAPTURE|- --waves FILE -o FILE", Short: "Add the packets of a role to its waves",
		Long: `Add the packets of a rank to the waves of its role in simulation, a value change dump (VCD),
on the same time axis, for GTKWave. At the cycle of each packet, the strings zrlmpi.sent and
zrlmpi.received change to its number in the capture, its type, and its sending and receiving
rank. CAPTURE is a file from "zrlctl capture". If the simulator was started more than once,
only packets since the last start are added.`,
		Example: `  zrlctl capture -o role.pcapng
  zrlctl cosim waves role.pcapng --waves waves.vcd -o both.vcd && gtkwave both.vcd`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.cosimWaves(cmd.Context(), &flags, args, cmd.InOrStdin(), cmd.OutOrStdout())
		}),
		Args: argCount(1, 1),
	}
	fl := cmd.Flags()
	fl.StringVarP(&flags.output, "output", "o", "", "write to this file")
	fl.StringVar(&flags.waves, "waves", "", "the role's waves, a VCD")
	fl.Uint64Var(&flags.period, "period", 10, "time units per cycle in the waves: 10 with Verilator, 6400000 with GHDL")
	fl.IntVar(&flags.rank, "rank", -1,
		"rank of the role; required if the capture has several roles (default: the only one)")
	fl.StringVar(&flags.input.profile, "profile", "cloudfpga",
		"profile of the packets: cloudfpga or v0.9; extended is detected automatically")
	return cmd
}

// rolePackets reports how many packets a capture contains for one simulation of a rank's role.
type rolePackets struct {
	File       string `json:"file"`
	Rank       int    `json:"rank"`
	Simulation uint64 `json:"simulation"`
	Packets    int    `json:"packets"`
}

func (a *app) cosimWaves(ctx context.Context, flags *wavesFlags, args []string, stdin io.Reader,
	stdout io.Writer) error {
	switch {
	case flags.output == "":
		return usageErrorf("--output is missing: name the file to be written")
	case flags.period == 0:
		return usageErrorf("--period 0: must be at least 1")
	case flags.waves == "":
		return usageErrorf("--waves is missing: name the role's waves")
	case sameFile(flags.waves, flags.output):
		return usageErrorf("--output %s: must not be the file of --waves", flags.output)
	}
	packets, err := flags.readPackets(ctx, args, stdin)
	if err != nil {
		return err
	}
	simulation, err := packets.lastSimulation(flags.rank)
	if err != nil {
		return err
	}
	waves, err := os.Open(flags.waves)
	if err != nil {
		return err
	}
	defer waves.Close()
	list := packets.packetsOf(simulation)
	if err := writeFile(flags.output,
		func(out io.Writer) error { return vcd.Write(out, waves, flags.period, list) }); err != nil {
		return err
	}
	r := rolePackets{flags.output, simulation.Rank, simulation.Simulation, len(list)}
	return a.print(stdout, r, "%s: %s of rank %d, simulation %d; view it with: gtkwave %s\n", r.File,
		words.Plural(r.Packets, "packet"), r.Rank, r.Simulation, r.File)
}

// sameFile reports whether two names refer to the same existing file.
func sameFile(a, b string) bool {
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

// cyclePacket is a captured packet, with the simulation cycle at which each simulated rank handled it.
type cyclePacket struct {
	src    netip.AddrPort
	text   string
	cycles []pcapng.Cycle
}

// cyclePackets holds the captured packets that have simulation cycles, and the addresses of the ranks.
type cyclePackets struct {
	list  []cyclePacket
	addrs map[int]netip.AddrPort
}

// readPackets reads the packets that have cycles.
func (f *wavesFlags) readPackets(ctx context.Context, args []string, stdin io.Reader) (*cyclePackets, error) {
	profile, err := f.input.parseProfile()
	if err != nil {
		return nil, err
	}
	src, _, err := f.input.open(ctx, args, stdin)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	packets := &cyclePackets{addrs: map[int]netip.AddrPort{}}
	text := "" // of the first event of a packet
	tracker := capture.NewTracker(capture.TrackerOptions{Profile: profile, OnEvent: func(e *capture.Event) {
		if e.HasRanks {
			packets.addrs[int(e.Header.Src)], packets.addrs[int(e.Header.Dst)] = e.Src, e.Dst
		}
		if text == "" {
			text = eventName(e)
		}
	}})
	var unit pcapng.Unit
	for {
		if err := src.Next(&unit); errors.Is(err, io.EOF) {
			return packets, nil
		} else if err != nil {
			return nil, &unreadableError{err}
		}
		text = ""
		part := unit // Tracker.Unit changes it
		tracker.ProcessUnit(&part)
		packet := cyclePacket{src: unit.Src, text: fmt.Sprintf("%d:%s", unit.Packet, text)}
		for _, comment := range unit.Comments {
			if cycle, ok := pcapng.ParseCycle(comment); ok {
				packet.cycles = append(packet.cycles, cycle)
			}
		}
		if packet.cycles != nil {
			packets.list = append(packets.list, packet)
		}
	}
}

// eventName returns the name of an event without blanks.
func eventName(e *capture.Event) string {
	event := e.JSON()
	name := event.Type
	if name == "" {
		name = event.Kind
	}
	if event.SrcRank == nil {
		return name
	}
	return fmt.Sprintf("%s:%d>%d", name, *event.SrcRank, *event.DstRank)
}

// lastSimulation returns the last simulation of the given rank. If rank is negative, it returns the last simulation of
// the only simulated rank.
func (c *cyclePackets) lastSimulation(rank int) (pcapng.Cycle, error) {
	found := map[int]pcapng.Cycle{}
	for _, p := range c.list {
		for _, cycle := range p.cycles {
			if cycle.Simulation >= found[cycle.Rank].Simulation {
				found[cycle.Rank] = cycle
			}
		}
	}
	ranks := slices.Sorted(maps.Keys(found))
	if rank < 0 && len(ranks) > 1 {
		return pcapng.Cycle{}, usageErrorf("--rank is missing: the capture has packets of the roles of ranks %v", ranks)
	}
	if rank < 0 && len(ranks) == 1 {
		rank = ranks[0]
	}
	if last, ok := found[rank]; ok {
		return last, nil
	}
	return pcapng.Cycle{}, fmt.Errorf("no packet has a cycle of a role in simulation%s: capture the packets of the "+
		"process that runs the role with zrlctl capture", rankSuffix(rank))
}

func rankSuffix(rank int) string {
	if rank < 0 {
		return ""
	}
	return fmt.Sprintf(" of rank %d", rank)
}

// packetsOf returns the packets that were captured during the given simulation.
func (c *cyclePackets) packetsOf(simulation pcapng.Cycle) (list []vcd.Packet) {
	for _, p := range c.list {
		for _, cycle := range p.cycles {
			if cycle.Rank == simulation.Rank && cycle.Simulation == simulation.Simulation {
				list = append(list, vcd.Packet{Cycle: cycle.Cycle, IsSent: p.src == c.addrs[cycle.Rank], Text: p.text})
			}
		}
	}
	return list
}
