package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// decodeFlags holds the flags of decode.
type decodeFlags struct {
	input    captureInput
	time     string
	ranks    []uint
	types    []string
	pair     string
	messages []int64
	packets  []int64
	hex      bool
	output   string
}

func (a *app) decodeCommand() *cobra.Command {
	var flags decodeFlags
	cmd := &cobra.Command{
		Use: "decode FILE...|- | decode -i INTERFACE", Short: "Print the packets of a recording",
		Long: `Print a line for each ZRLMPI packet of a pcap or pcapng file, or of an interface, with
its message. Continuation datagrams are printed with their position in the message.
Packets that a live rank would drop are marked with the reason. Several files are merged
as by analyze; each line then has the number of the packet in each file, the time from one
file to the next, and whether the packet was lost between them. The number of ignored
packets is printed to standard error. libpcap is not needed; -i needs the permission to
open packet sockets (CAP_NET_RAW).

Exit codes: 2 the recording cannot be read, or contains no ZRLMPI packets; otherwise as zrlctl.`,
		Example: `  zrlctl decode trace.pcapng --rank 1 --type SEND_REQUEST,ACK
  zrlctl decode -i eth0 --time delta
  zrlctl decode trace.pcap.gz --message 7 -x
  zrlctl decode trace.pcap --packet 12,17,31
  zrlctl decode host0.pcap host1.pcap`,
		RunE: operation(func(cmd *cobra.Command, args []string) error {
			return a.decode(cmd.Context(), &flags, args, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		}),
	}
	flags.input.addFlags(cmd)
	fl := cmd.Flags()
	fl.StringVarP(&flags.time, "time", "t", "rel", "time stamps: rel (since the first packet), delta (since the previous "+
		"packet), abs (date and time), epoch (seconds since 1970) or none")
	fl.UintSliceVar(&flags.ranks, "rank", nil, "only packets from or to these `ranks`")
	fl.StringSliceVar(&flags.types, "type", nil,
		"only packets of these types; PAYLOAD (continuation datagrams) and BAD (invalid) are types")
	fl.StringVar(&flags.pair, "pair", "", "only packets between these two ranks, as in 0,1")
	fl.Int64SliceVar(&flags.messages, "message", nil, "only packets of the messages with these `numbers`")
	fl.Int64SliceVar(&flags.packets, "packet", nil,
		"only packets with these `numbers`, for example from a problem that zrlctl analyze found")
	fl.BoolVarP(&flags.hex, "hex", "x", false, "also print the bytes")
	fl.StringVarP(&flags.output, "output", "o", "",
		"write matching packets to this pcapng file, as plain IP packets, instead of printing them")
	hideEmptyDefaults(fl)
	return cmd
}

// decode prints the matching packets, or writes them to a file.
func (a *app) decode(ctx context.Context, flags *decodeFlags, args []string, stdin io.Reader, stdout,
	stderr io.Writer) error {
	match, err := flags.filter()
	if err != nil {
		return err
	}
	clock, err := newClock(flags.time)
	if err != nil {
		return err
	}
	profile, err := flags.input.parseProfile()
	if err != nil {
		return err
	}
	src, name, err := flags.input.open(ctx, args, stdin)
	if err != nil {
		return err
	}
	defer src.Close()
	d := decoder{src: src, profile: profile, matches: match, live: flags.input.iface != ""}
	if flags.output != "" {
		err = writeFile(flags.output, func(out io.Writer) error { return d.write(ctx, out) })
	} else {
		err = d.print(ctx, stdout, clock, a.json, flags.hex)
	}
	if d.tracker == nil { // the output could not be opened
		return err
	}
	stats := src.Stats()
	stats.Skipped = d.tracker.Skipped(stats.Skipped)
	err = errors.Join(err, printIgnored(stderr, &stats, d.tracker.NotFollowed(), a.json))
	if err != nil || d.hasPackets {
		return err
	}
	return &unreadableError{fmt.Errorf("%s: %s", name, stats.ExplainEmpty())}
}

// printIgnored prints the number of packets that were not printed.
func printIgnored(out io.Writer, stats *capture.Stats, notFollowed int64, asJSON bool) (err error) {
	if len(stats.Skipped) == 0 && notFollowed == 0 {
		return nil
	}
	if asJSON {
		return json.NewEncoder(out).Encode(struct {
			Skipped     map[string]int64 `json:"skipped"`
			NotFollowed int64            `json:"not_followed,omitempty"`
		}{stats.Skipped, notFollowed})
	}
	if reasons := stats.SkippedReasons(); len(reasons) > 0 {
		_, err = fmt.Fprintf(out, "ignored packets: %s\n", strings.Join(reasons, ", "))
	}
	if notFollowed > 0 && err == nil {
		_, err = fmt.Fprintf(out, "ignored: %s (too many pairs of addresses)\n",
			words.Plural(int(notFollowed), "packet"))
	}
	return err
}

// decoder prints or copies the matching packets of a recording.
type decoder struct {
	src        capture.Source
	profile    protocol.Profile
	matches    func(*capture.Event) bool
	live       bool
	tracker    *capture.Tracker
	hasPackets bool // the recording contains a ZRLMPI packet
}

// print prints a line for each event.
func (d *decoder) print(ctx context.Context, stdout io.Writer, clock *clock, asJSON, withHex bool) error {
	out := bufio.NewWriterSize(stdout, 1<<16)
	enc := json.NewEncoder(out)
	event := func(event *capture.Event) error {
		if asJSON {
			return enc.Encode(event.JSON())
		}
		_, err := fmt.Fprintf(out, "%6d %s%s\n", event.Packet, clock.formatTime(event.Time), event.Text())
		if withHex && err == nil {
			_, err = io.WriteString(out, indent(hex.Dump(event.Data)))
		}
		return err
	}
	unit := func(*pcapng.Unit) error {
		if d.live {
			return out.Flush() // live
		}
		return nil
	}
	return flushAndJoin(d.follow(ctx, event, unit), out)
}

// write copies each unit of the recording that contains a matching event to out.
func (d *decoder) write(ctx context.Context, out io.Writer) error {
	writer := pcapng.NewWriter(out, pcapng.WriterOptions{})
	return flushAndJoin(d.follow(ctx, func(*capture.Event) error { return nil }, writer.WriteUnit), writer)
}

// follow calls the callback event for each matching event, and the callback unit for each unit of the recording that
// contains one. It returns at the end of the recording or at the first error.
func (d *decoder) follow(ctx context.Context, event func(*capture.Event) error, unit func(*pcapng.Unit) error) error {
	var err error
	matched := false
	d.tracker = capture.NewTracker(capture.TrackerOptions{Profile: d.profile, OnEvent: func(e *capture.Event) {
		d.hasPackets = d.hasPackets || e.IsPacket()
		if err == nil && d.matches(e) {
			matched = true
			err = event(e)
		}
	}})
	var u pcapng.Unit
	for {
		if end := d.src.Next(&u); end != nil {
			return recordingError(ctx, end, d.live)
		}
		matched = false
		d.tracker.ProcessUnit(&u)
		if matched && err == nil {
			err = unit(&u)
		}
		if err != nil {
			return err
		}
	}
}

// recordingError converts the error that ended the reading of a recording into the error that the command returns.
func recordingError(ctx context.Context, err error, live bool) error {
	interrupted := live && ctx.Err() != nil
	if err == nil || interrupted || errors.Is(err, io.EOF) {
		return nil
	}
	return &unreadableError{err}
}

// filter returns a function that reports whether an event matches the flags.
func (f *decodeFlags) filter() (func(*capture.Event) bool, error) {
	var a, b uint32
	if f.pair != "" {
		first, second, ok := strings.Cut(f.pair, ",")
		x, err1 := strconv.ParseUint(first, 10, 32)
		y, err2 := strconv.ParseUint(second, 10, 32)
		if !ok || err1 != nil || err2 != nil {
			return nil, usageErrorf("--pair %q: give two ranks, as in 0,1", f.pair)
		}
		a, b = uint32(x), uint32(y)
	}
	names := []string{"PAYLOAD", "BAD"}
	for t := protocol.SendRequest; t <= protocol.Error; t++ {
		names = append(names, t.String())
	}
	for i, name := range f.types {
		f.types[i] = strings.ToUpper(name)
		if !slices.Contains(names, f.types[i]) {
			return nil, usageErrorf("--type %q: must be one of %s", name, strings.Join(names, ", "))
		}
	}
	return func(event *capture.Event) bool {
		h := event.Header
		switch {
		case len(f.ranks) > 0 &&
			(!event.HasRanks || !slices.Contains(f.ranks, uint(h.Src)) && !slices.Contains(f.ranks, uint(h.Dst))),
			f.pair != "" && (!event.HasRanks || !(h.Src == a && h.Dst == b || h.Src == b && h.Dst == a)),
			len(f.messages) > 0 && !slices.Contains(f.messages, event.Message),
			len(f.packets) > 0 && !slices.Contains(f.packets, event.Packet),
			len(f.types) > 0 && !slices.Contains(f.types, typeName(event)):
			return false
		}
		return true
	}, nil
}

func typeName(event *capture.Event) string {
	switch event.Kind {
	case capture.PayloadEvent:
		return "PAYLOAD"
	case capture.BadEvent:
		return "BAD"
	}
	return event.Header.Type.String()
}

// clock formats the times of packets in the mode that the user has chosen.
type clock struct {
	mode        string
	first, last time.Time
}

func newClock(mode string) (*clock, error) {
	if !slices.Contains([]string{"rel", "delta", "abs", "epoch", "none"}, mode) {
		return nil, usageErrorf("--time %q: must be rel, delta, abs, epoch or none", mode)
	}
	return &clock{mode: mode}, nil
}

func (c *clock) formatTime(t time.Time) string {
	if c.first.IsZero() {
		c.first, c.last = t, t
	}
	defer func() { c.last = t }()
	switch c.mode {
	case "none":
		return ""
	case "abs":
		return t.Format("2006-01-02 15:04:05.000000 ")
	case "epoch":
		return fmt.Sprintf("%d.%06d ", t.Unix(), t.Nanosecond()/1000)
	case "delta":
		return fmt.Sprintf("%12.6f ", t.Sub(c.last).Seconds())
	}
	return fmt.Sprintf("%12.6f ", t.Sub(c.first).Seconds())
}

func indent(s string) string {
	return "\t" + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n\t") + "\n"
}
