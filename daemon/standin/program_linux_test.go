package standin_test

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// programArg makes the test binary run as a user's program, which the exec kernels of the tests start.
const programArg = "a-users-program"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == programArg {
		os.Exit(programs[os.Args[2]](os.Args[3:]))
	}
	// Under the race detector every program would take a second to exit.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(m.Run())
}

const (
	sendInt   = 0
	recvInt   = 1
	sendFloat = 2
	recvFloat = 3
	barrier   = 4
)

// programs maps names to programs. Each returns its exit status.
var programs = map[string]func(args []string) int{
	// echo returns messages to rank 0 with the other datatype.
	"echo": func([]string) int {
		for i := 0; ; i++ {
			_, msg := do(byte(recvInt+i%2*2), maxWords, 0, nil)
			do(byte(sendFloat-i%2*2), uint32(len(msg)/4), 0, msg)
		}
	},
	// environment sends its rank and size.
	"environment": func([]string) int {
		var msg []byte
		for _, name := range []string{"ZRLMPI_RANK", "ZRLMPI_SIZE"} {
			n, err := strconv.Atoi(os.Getenv(name))
			if err != nil {
				return 10
			}
			msg = binary.LittleEndian.AppendUint32(msg, uint32(n))
		}
		do(sendInt, 2, 0, msg)
		return 0
	},
	// failing makes calls that fail. After each of them, it sends a word to show that it can continue.
	"failing": func(args []string) int {
		code, _ := strconv.Atoi(args[0])
		count, _ := strconv.ParseUint(args[1], 0, 32)
		rank, _ := strconv.ParseUint(args[2], 0, 32)
		var data []byte
		if code == sendInt {
			data = make([]byte, 4*count)
		}
		status, text := do(byte(code), uint32(count), uint32(rank), data)
		fmt.Fprintf(os.Stderr, "status %d: %s", status, strings.TrimRight(string(text), "\x00"))
		do(sendInt, 1, 0, []byte{1, 2, 3, 4})
		return 0
	},
	// write writes bytes. It then exits with a status or, if the status is "wait", waits until its input ends.
	"write": func(args []string) int {
		b, _ := hex.DecodeString(args[0])
		os.Stdout.Write(b)
		if args[1] == "wait" {
			io.Copy(io.Discard, os.Stdin)
			return 0
		}
		n, _ := strconv.Atoi(args[1])
		return n
	},
	// crash receives a message and then fails.
	"crash": func([]string) int {
		do(recvInt, 10, 0, nil)
		return 3
	},
	// play writes the bytes in those lines of a file that contain "→", and expects the bytes in lines that
	// contain "←".
	"play": func(args []string) int {
		text, err := os.ReadFile(args[0])
		if err != nil {
			return 10
		}
		for line := range strings.Lines(string(text)) {
			arrow, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			digits, _, _ := strings.Cut(rest, "  ")
			b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
			if arrow != "→" && arrow != "←" {
				continue
			}
			if err != nil || len(b) == 0 {
				fmt.Fprintln(os.Stderr, "bad example:", line)
				return 11
			}
			if arrow == "→" {
				os.Stdout.Write(b)
				continue
			}
			got := make([]byte, len(b))
			if _, err := io.ReadFull(os.Stdin, got); err != nil || string(got) != string(b) {
				fmt.Fprintf(os.Stderr, "got % x, %v instead of % x", got, err, b)
				return 12
			}
		}
		return 0
	},
	// talk writes to its standard error.
	"talk": func([]string) int {
		fmt.Fprintf(os.Stderr, "short\r\n%s\n\nbad \xff byte\nno newline", strings.Repeat("x", 5000))
		return 0
	},
	// stubborn ignores SIGTERM and the end of its input, and so does its child. Both connect to a socket and
	// exit when it is closed.
	"stubborn": func(args []string) int {
		signal.Ignore(syscall.SIGTERM)
		if args[0] == "parent" {
			self, _ := os.Executable()
			child := exec.Command(self, programArg, "stubborn", "child", args[1])
			child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
			if err := child.Start(); err != nil {
				return 10
			}
		}
		conn, err := net.Dial("unix", args[1])
		if err != nil {
			return 11
		}
		conn.Write([]byte(args[0][:1]))
		io.Copy(io.Discard, conn)
		return 0
	},
	// close closes its output and then keeps running or waits until its input ends.
	"close": func(args []string) int {
		signal.Ignore(syscall.SIGTERM)
		os.Stdout.Close()
		if args[0] == "stay" {
			select {}
		}
		io.Copy(io.Discard, os.Stdin)
		return 0
	},
	// daemon leaves a child behind in another session. The child keeps the output open and exits when a socket
	// is closed.
	"daemon": func(args []string) int {
		self, _ := os.Executable()
		child := exec.Command(self, programArg, "stubborn", "child", args[0])
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return 10
		}
		return 0
	},
}

var stdin = bufio.NewReader(os.Stdin)

// do makes one call and returns its feedback.
func do(code byte, count, rank uint32, data []byte) (status byte, words []byte) {
	msg := binary.LittleEndian.AppendUint32([]byte{code}, count)
	msg = binary.LittleEndian.AppendUint32(msg, rank)
	os.Stdout.Write(append(msg, data...))
	var head [5]byte
	if _, err := io.ReadFull(stdin, head[:]); err != nil {
		os.Exit(20) // the stand-in is about to end this process
	}
	words = make([]byte, 4*binary.LittleEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(stdin, words); err != nil {
		os.Exit(20)
	}
	return head[0], words
}
