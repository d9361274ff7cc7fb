package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// captureInput describes where the packet tools read packets from.
type captureInput struct {
	iface    string
	profile  string
	ports    []uint
	allPorts bool
	// onNote is the value of capture.Options.OnNote.
	onNote func(pcapng.RankNote)
}

// hideEmptyDefaults makes the help omit empty defaults of lists, which pflag prints as [] for these types.
func hideEmptyDefaults(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if kind := f.Value.Type(); f.DefValue == "[]" && (kind == "uintSlice" || kind == "int64Slice") {
			f.DefValue = ""
		}
	})
}

func (in *captureInput) addFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(&in.iface, "interface", "i", "", "capture from this interface until interrupted")
	fl.StringVar(&in.profile, "profile", protocol.CloudFPGA.String(),
		"profile of the packets: cloudfpga or v0.9; extended is detected automatically")
	fl.UintSliceVar(&in.ports, "port", nil, "`ports` that carry ZRLMPI (default 2718 to 2845)")
	fl.BoolVar(&in.allPorts, "all-ports", false, "include all ports")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if in.iface != "" {
			return argCount(0, 0)(cmd, args)
		}
		if len(args) == 0 {
			return syntaxErrorf("%s: give a capture file or several, - for standard input, or an interface with -i",
				cmd.Name())
		}
		return nil
	}
}

// open opens the files or the interface. The source is closed when ctx is done.
func (in *captureInput) open(ctx context.Context, args []string, stdin io.Reader) (capture.Source, string, error) {
	opts := capture.Options{AllPorts: in.allPorts, OnNote: in.onNote}
	for _, p := range in.ports {
		if p > 65535 {
			return nil, "", usageErrorf("--port %d: must be at most 65535", p)
		}
		opts.Ports = append(opts.Ports, uint16(p))
	}
	var src capture.Source
	var err error
	name := in.iface
	switch {
	case in.iface != "":
		src, err = opts.OpenLive(ctx, in.iface)
	case len(args) == 1 && args[0] == "-":
		name = "standard input"
		src, err = opts.NewReader(stdin, name)
	default:
		name = strings.Join(args, ", ")
		src, err = opts.OpenFiles(ctx, args)
	}
	if err != nil {
		return nil, "", &unreadableError{fmt.Errorf("%w", err)}
	}
	context.AfterFunc(ctx, func() { src.Close() })
	return src, name, nil
}

func (in *captureInput) parseProfile() (protocol.Profile, error) {
	p, err := protocol.ParseProfile(in.profile)
	if err != nil {
		return 0, &usageError{err}
	}
	return p, nil
}

// unreadableError reports that a recording cannot be read.
type unreadableError struct{ error }

func (e *unreadableError) Unwrap() error { return e.error }
