package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/replay"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/udp"
)

// errDiffers is returned by a replay that has already printed a difference between the peer's packets and the
// recording.
var errDiffers = errors.New("the peer deviated from the recording")

func (a *app) replayCommand() *cobra.Command {
	var cfg replay.Config
	var to, bind, speed, profile string
	cmd := &cobra.Command{
		Use: "replay FILE...|- --as RANK --to ADDRESS", Short: "Replay one side of a recording against a live peer",
		Long: `Send the recorded packets of a rank to a live peer, wait for the packets that the rank
received, and report the first difference, byte for byte. The peer identifies ranks by
their address: packets are sent from the recorded address, or from --bind. Packets that
the kernel had coalesced in the recording are sent as single datagrams.

Exit codes: 0 the peer behaved as recorded, 1 it deviated, 2 the recording cannot be read.`,
		Example: "  zrlctl replay trace.pcap --as 0 --to 127.0.0.2",
		Args:    cobra.MinimumNArgs(1),
		RunE: operation(func(cmd *cobra.Command, args []string) (err error) {
			if err := requireFlags(cmd, "as", "to"); err != nil {
				return &usageError{err}
			}
			if cfg.PeerAddr, err = parseAddress(to); err != nil {
				return usageErrorf("--to: %w", err)
			}
			if bind != "" {
				if cfg.LocalAddr, err = parseAddress(bind); err != nil {
					return usageErrorf("--bind: %w", err)
				}
			}
			if cfg.FullSpeed = speed == "full"; !cfg.FullSpeed && speed != "recorded" {
				return usageErrorf("--speed %q: must be recorded or full", speed)
			}
			if cfg.Profile, err = protocol.ParseProfile(profile); err != nil {
				return &usageError{err}
			}
			opts := capture.Options{AllPorts: true}
			src, err := opts.OpenFiles(cmd.Context(), args)
			if err != nil {
				return &unreadableError{err}
			}
			defer src.Close()
			result, err := replay.Run(cmd.Context(), src, cfg)
			if err != nil {
				return err
			}
			if granted := result.ReceiveBuffer; result.Difference != nil && granted < udp.DefaultReceiveBuffer {
				fmt.Fprintf(cmd.ErrOrStderr(), "zrlctl: receive buffer of %d bytes instead of %d, packets may have "+
					"been lost here: raise net.core.rmem_max\n", granted, udp.DefaultReceiveBuffer)
			}
			if a.json {
				err = json.NewEncoder(cmd.OutOrStdout()).Encode(result)
			} else {
				text := "no difference"
				if result.Difference != nil {
					text = result.Difference.String()
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s sent, %d received: %s\n",
					words.Plural(result.Sent, "packet"), result.Received, text)
			}
			if err == nil && result.Difference != nil {
				return errDiffers
			}
			return err
		}),
	}
	fl := cmd.Flags()
	fl.IntVar(&cfg.PlayedRank, "as", 0, "rank whose recorded packets are sent")
	fl.IntVar(&cfg.Peer, "peer", -1, "rank of the live peer (-1: the first peer in the recording)")
	fl.StringVar(&to, "to", "", "address of the live peer, as in 127.0.0.2 or 127.0.0.2:2718")
	fl.StringVar(&bind, "bind", "", "local address (default the recorded one)")
	fl.StringVar(&speed, "speed", "recorded", "recorded (with the recorded pauses) or full (without)")
	fl.StringVar(&profile, "profile", protocol.CloudFPGA.String(), "profile of the packets: cloudfpga or v0.9")
	fl.DurationVar(&cfg.Timeout, "timeout", 5*time.Second, "time to wait for a packet beyond its recorded time")
	fl.DurationVar(&cfg.Linger, "linger", 200*time.Millisecond,
		"time to wait at the end for packets that are not in the recording")
	return cmd
}

// parseAddress parses an IP address with or without a port.
func parseAddress(s string) (netip.AddrPort, error) {
	if !strings.Contains(s, ":") || strings.HasSuffix(s, "]") ||
		strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "[") {
		ip, err := netip.ParseAddr(strings.Trim(s, "[]"))
		return netip.AddrPortFrom(ip, protocol.Port), err
	}
	return netip.ParseAddrPort(s)
}
