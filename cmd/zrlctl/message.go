package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func addTimeoutFlag(fl *pflag.FlagSet, d *time.Duration) {
	fl.DurationVar(d, "timeout", defaultTimeout, "timeout (0: none)")
}

func addFromFlag(fl *pflag.FlagSet, rank *int) {
	fl.IntVar(rank, "from", control.AnyRank, "local rank that sends (-1: the lowest with run: host)")
}

func (a *app) sendCommand() *cobra.Command {
	var hexText, file, datatype string
	var length int
	req := control.SendRequest{}
	cmd := &cobra.Command{
		Use: "send RANK (--data HEX | --file FILE | --words N)", Short: "Send a message to a rank",
		Long: `Send a message of whole 32-bit words, and wait until a receive has matched it and it is
acknowledged, with every profile. --words N sends the numbers 0 to N-1 in the given
datatype. The bytes of --data and --file are sent unchanged; words are little-endian.`,
		Args: argCount(1, 1),
		RunE: operation(func(cmd *cobra.Command, args []string) (err error) {
			if err := requireOneFlag(cmd, "data", "file", "words"); err != nil {
				return &usageError{err}
			}
			if req.To, err = parseRank(args[0]); err != nil {
				return err
			}
			if req.Datatype, err = protocol.ParseDatatype(datatype); err != nil {
				return &usageError{err}
			}
			var data io.Reader
			switch fl := cmd.Flags(); {
			case fl.Changed("data"):
				data, err = parseHexMessage(hexText)
			case fl.Changed("file"):
				var input io.ReadCloser
				if input, err = openInput(file, cmd.InOrStdin()); err == nil {
					defer input.Close()
				}
				data = input
			default:
				data, err = countingMessage(length, req.Datatype)
			}
			if err != nil {
				return err
			}
			client := a.client()
			defer client.Close()
			m, err := client.Send(cmd.Context(), req, data)
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), m, "sent %s from rank %d to rank %d in %.1f µs\n",
				words.Plural(int(m.Words), "word"), m.From, m.To, m.Elapsed)
		}),
	}
	fl := cmd.Flags()
	fl.StringVar(&hexText, "data", "", "message as hex digits; spaces are allowed")
	fl.StringVar(&file, "file", "", "file with the message (-: standard input)")
	fl.IntVar(&length, "words", 0, "send this many words, counting from 0")
	fl.StringVar(&datatype, "datatype", "int", "datatype: int or float")
	fl.IntVar(&req.Tag, "tag", 0, "tag of the message: not sent by cloudfpga, 0 to 255 with v0.9")
	addFromFlag(fl, &req.From)
	addTimeoutFlag(fl, &req.Timeout)
	return cmd
}

func parseHexMessage(text string) (io.Reader, error) {
	digits := make([]byte, 0, len(text))
	for i, r := range text {
		switch {
		case unicode.IsSpace(r):
		case r < utf8.RuneSelf && strings.ContainsRune("0123456789abcdefABCDEF", r):
			digits = append(digits, byte(r))
		default:
			return nil, usageErrorf("--data: %q, byte %d, is not a hex digit: give digits 0 to 9 and a to f", r, i+1)
		}
	}
	const wordDigits = 2 * protocol.WordLen
	if len(digits)%wordDigits != 0 {
		return nil, usageErrorf("--data: %s: a message consists of whole words of %d digits each",
			words.Plural(len(digits), "hex digit"), wordDigits)
	}
	data := make([]byte, len(digits)/2)
	if _, err := hex.Decode(data, digits); err != nil {
		return nil, usageErrorf("--data: %w", err)
	}
	return bytes.NewReader(data), nil
}

func openInput(name string, stdin io.Reader) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(stdin), nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &usageError{err}
	}
	return f, nil
}

// countingMessage returns a message that consists of the words 0, 1, 2 and so on.
func countingMessage(words int, datatype protocol.Datatype) (io.Reader, error) {
	switch {
	case words < 0:
		return nil, usageErrorf("--words %d: must be at least 1; 0 only for peers that are not FPGAs", words)
	case words > config.MaxWords:
		return nil, usageErrorf("--words %d: must be at most %d", words, config.MaxWords)
	}
	data := make([]byte, 0, words*protocol.WordLen)
	for i := range uint32(words) {
		value := i
		if datatype == protocol.Float {
			value = math.Float32bits(float32(i))
		}
		data = binary.LittleEndian.AppendUint32(data, value)
	}
	return bytes.NewReader(data), nil
}

func (a *app) recvCommand() *cobra.Command {
	var out, format, datatype string
	req := control.RecvRequest{}
	cmd := &cobra.Command{
		Use: "recv RANK", Short: "Receive a message from a rank", Args: argCount(1, 1),
		Long: `Receive one message from a rank. A message longer than --words is an error, but its
beginning is still written.`,
		RunE: operation(func(cmd *cobra.Command, args []string) (err error) {
			if req.From, err = parseRank(args[0]); err != nil {
				return err
			}
			if req.AnyDatatype = datatype == "any"; !req.AnyDatatype {
				if req.Datatype, err = protocol.ParseDatatype(datatype); err != nil {
					return usageErrorf("--datatype: %w, or any", err)
				}
			}
			write, err := formatter(format)
			if err != nil {
				return err
			}
			client := a.client()
			defer client.Close()
			message, data, err := client.Recv(cmd.Context(), req)
			if err != nil {
				return err
			}
			switch {
			case a.json:
				err = a.writeReceived(cmd.OutOrStdout(), message, data, out, format, write)
			default:
				err = writeOutput(out, cmd.OutOrStdout(), data, write)
			}
			if err != nil {
				return err
			}
			if message.Truncated != "" {
				return &control.Error{Kind: control.Truncated, Message: message.Truncated + "; raise --words"}
			}
			return nil
		}),
	}
	fl := cmd.Flags()
	fl.IntVar(&req.Words, "words", control.DefaultWords, "size of the buffer in words")
	fl.StringVarP(&out, "output", "o", "-", "write the message to this file (-: standard output)")
	fl.StringVar(&format, "format", "hex", "output format: hex, int, float or raw")
	fl.StringVar(&datatype, "datatype", "any", "datatype: int, float or any")
	fl.IntVar(&req.To, "to", control.AnyRank, "local rank that receives (-1: the lowest with run: host)")
	addTimeoutFlag(fl, &req.Timeout)
	return cmd
}

// receivedMessage is the JSON form of a received message. Data is a string of hex digits or a list of numbers,
// depending on --format. It is omitted if the message is written to a file.
type receivedMessage struct {
	control.Message
	Data any    `json:"data,omitempty"`
	File string `json:"file,omitempty"`
}

func (a *app) writeReceived(stdout io.Writer, m control.Message, data []byte, out, format string,
	write func(io.Writer, []byte) error) error {
	message := receivedMessage{Message: m}
	switch {
	case out != "-":
		if err := writeOutput(out, stdout, data, write); err != nil {
			return err
		}
		message.File = out
	case format == "int":
		ints := make([]int32, len(data)/protocol.WordLen)
		for i := range ints {
			ints[i] = int32(binary.LittleEndian.Uint32(data[i*protocol.WordLen:]))
		}
		message.Data = ints
	case format == "float":
		// Format floats as text because JSON cannot represent infinities.
		floats := make([]string, len(data)/protocol.WordLen)
		for i := range floats {
			f := math.Float32frombits(binary.LittleEndian.Uint32(data[i*protocol.WordLen:]))
			floats[i] = strconv.FormatFloat(float64(f), 'g', -1, 32)
		}
		message.Data = floats
	default:
		message.Data = hex.EncodeToString(data)
	}
	return writeJSON(stdout, message)
}

func writeOutput(name string, stdout io.Writer, data []byte, write func(io.Writer, []byte) error) error {
	if name == "-" {
		return write(stdout, data)
	}
	return writeFile(name, func(out io.Writer) error { return write(out, data) })
}

func (a *app) resetCommand() *cobra.Command {
	req, t, file := query.Request{Kind: query.Reset}, &target{app: a}, ""
	cmd := &cobra.Command{
		Use: "reset RANK", Short: "Resume communication with a restarted peer", Args: argCount(1, 1),
		Long: `Clear the dead end of a peer: an FPGA whose role was restarted, or a program that uses
upstream's CPU library. Until the reset, or until the peer sends a message, all operations
with the peer fail with the error that caused the dead end. Messages in progress continue.

Restart the peer before the reset. A peer that is still in the middle of a message would
store the next data as part of that message.

With --job, or if there is one job of this user on this host and no daemon, all ranks of the
job on this host reset the peer, because each rank has its own state for it.

With --config, discard the state of the peer that ended processes of this user saved for a
rank of that configuration. This way, a job can be restarted when none of its processes runs.`,
		RunE: operation(func(cmd *cobra.Command, args []string) (err error) {
			if req.Peer, err = parseRank(args[0]); err != nil {
				return err
			}
			t.detectSocket(cmd)
			job := ""
			if file != "" {
				err = forgetPeerState(file, &req)
			} else {
				var response query.Response
				response, job = t.handleAndName(cmd.Context(), req)
				err = response.Err
			}
			if err != nil {
				return err
			}
			return a.print(cmd.OutOrStdout(), map[string]int{"reset": req.Peer}, "%s\n", describeReset(req, job, file))
		}),
	}
	cmd.Flags().IntVar(&req.Rank, "from", control.AnyRank,
		"local rank (-1: the lowest of the daemon with run: host, or all of the job)")
	cmd.Flags().StringVar(&t.job, "job", "", "reset the peer in this job instead of a daemon")
	cmd.Flags().StringVar(&file, "config", "", "reset the peer for the next process of a rank of this "+
		"configuration `file`")
	cmd.MarkFlagsMutuallyExclusive("job", "config")
	return cmd
}

// describeReset describes a reset by the daemon, by a job, or for a rank of a configuration file that no process has.
func describeReset(req query.Request, job, file string) string {
	by := fmt.Sprintf("rank %d of the daemon", req.Rank)
	switch anyRank := req.Rank == control.AnyRank; {
	case file != "":
		by = fmt.Sprintf("the next process of rank %d of %s", req.Rank, file)
	case job != "" && anyRank:
		by = fmt.Sprintf("each rank of job %s on this host", job)
	case job != "":
		by = fmt.Sprintf("rank %d of job %s", req.Rank, job)
	case anyRank:
		by = "the lowest host rank of the daemon"
	}
	return fmt.Sprintf("rank %d is reset for %s", req.Peer, by)
}
