//go:build unix

package launch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
)

// TestMain makes the test binary run as a rank.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "rank" {
		programs[os.Args[2]]()
		return
	}
	os.Exit(m.Run())
}

// programs are the programs of ranks.
var programs = map[string]func(){
	// exchange exchanges and prints numbers.
	"exchange": func() {
		c := connect()
		try(c.Put(ctx, fmt.Sprint("k", c.Rank()), fmt.Sprint(c.Rank()*c.Rank())))
		try(c.Barrier(ctx))
		for rank := range c.Size() {
			value, err := c.Get(ctx, fmt.Sprint("k", rank))
			try(err)
			fmt.Println(value)
		}
		try(c.Finalize(ctx))
	},
	"fail": func() { os.Exit(9) },
	"exit": func() { os.Exit(only(2, 7)) },
	"kill": func() { try(syscall.Kill(os.Getpid(), syscall.Signal(only(1, int(syscall.SIGKILL))))); forever() },
	// leave does not finalize on one rank.
	"leave": func() {
		c := connect()
		if c.Rank() != 1 {
			try(c.Finalize(ctx))
		}
	},
	"barrier": func() { try(connect().Barrier(ctx)) },
	"environment": func() {
		dir, err := os.Getwd()
		try(err)
		fmt.Println(os.Getenv("JOB"), os.Getenv("ONE"), os.Getenv(pmi.EnvRank), dir)
	},
	"nothing":  func() {},
	"finalize": func() { try(connect().Finalize(ctx)); forever() },
	"abort": func() {
		c := connect()
		if c.Rank() == 2 {
			try(c.Abort(33))
		}
		forever()
	},
	"nonsense": func() {
		if only(1, 1) == 1 {
			_, _ = os.NewFile(pmiFD, "").WriteString("GET / HTTP/1.1\n")
		}
		forever()
	},
	"abort256": func() { try(connect().Abort(256)); forever() },
	"close":    func() { connect(); try(syscall.Close(pmiFD)); forever() },
	"longline": func() { _, _ = os.NewFile(pmiFD, "").WriteString(strings.Repeat("x", 1<<20)); forever() },
	"unread": func() {
		conn := os.NewFile(pmiFD, "")
		for range 1 << 20 {
			if _, err := conn.WriteString("cmd=init pmi_version=9\n"); err != nil {
				break
			}
		}
		forever()
	},
	"deaf": func() { // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT)
		fmt.Println("ready")
		forever()
	},
	"interrupted": func() {
		got := make(chan os.Signal, 1)
		signal.Notify(got, syscall.SIGUSR1)
		fmt.Println("ready")
		fmt.Println(<-got)
	},
	"forever": func() { fmt.Println("ready"); forever() },
	"prompt":  func() { fmt.Print("number? "); _, _ = io.Copy(os.Stdout, os.Stdin) },
	"lines": func() {
		for i := range 2000 {
			fmt.Printf("%s line %d of rank %s\n", strings.Repeat("x", i%300), i, os.Getenv(pmi.EnvRank))
		}
		fmt.Print("end without a newline")
	},
}

// forever blocks. Go ends a program in which all goroutines are blocked.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// only returns a value on one rank, and 0 on others.
func only(rank, value int) int {
	if os.Getenv(pmi.EnvRank) == strconv.Itoa(rank) {
		return value
	}
	return 0
}

// locked is a writer for several goroutines that signals each write.
type locked struct {
	mu   sync.Mutex
	all  bytes.Buffer
	news chan struct{}
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.news != nil {
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
	return l.all.Write(b)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// until waits until the output has a text the given number of times.
func (l *locked) until(text string, times int) {
	for strings.Count(l.String(), text) < times {
		<-l.news
	}
}

// job returns a job with the given number of ranks for each program.
func job(t *testing.T, ranks int, names ...string) (*Job, *locked) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := &locked{news: make(chan struct{}, 1)}
	j := &Job{Stdout: out, Stderr: os.Stderr}
	for _, name := range names {
		j.Programs = append(j.Programs, Program{Ranks: ranks, Args: []string{self, "rank", name}})
	}
	return j, out
}

func TestExchange(t *testing.T) {
	for _, bind := range []bool{false, true} {
		j, out := job(t, 3, "exchange")
		j.Label = true
		if j.Bind = bind; bind {
			if _, err := cores(); err != nil {
				t.Log("not bound: ", err)
				continue
			}
		}
		if err := j.Run(); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		slices.Sort(lines)
		if want := "[0] 0,[0] 1,[0] 4,[1] 0,[1] 1,[1] 4,[2] 0,[2] 1,[2] 4"; strings.Join(lines, ",") != want {
			t.Errorf("%q", lines)
		}
	}
}

// TestFailures: the first failed rank is named, and all other ranks are ended.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		programs string
		ranks    int
		want     string
		code     int
	}{
		{"exit", 1, "", 0},
		{"exit", 3, "rank 2 (PROGRAM) ended with exit code 7", 7},
		{"kill", 3, "rank 1 (PROGRAM) was ended by a signal: killed; 2 other ranks were ended", 137},
		{"leave", 2, "rank 1 (PROGRAM) ended, with exit code 0, without MPI_Finalize", 1},
		{"barrier nothing", 1, "rank 1 (PROGRAM) ended without MPI_Init: rank 0 would wait for it forever; the " +
			"other rank was ended", 1},
		{"barrier finalize", 1, "rank 1 (PROGRAM) has called MPI_Finalize: rank 0 would wait for it forever; the " +
			"other rank was ended", 1},
		{"abort", 4, "rank 2 (PROGRAM) has aborted the job with code 33; 3 other ranks were ended", 33},
		{"nonsense", 2, "rank 1 (PROGRAM) has sent its launcher what cannot be answered: not a line of PMI-1", 1},
		{"abort256", 1, "rank 0 (PROGRAM) has aborted the job with code 256", 1},
		{"close finalize", 1, "rank 0 (PROGRAM) has closed its connection to the launcher without MPI_Finalize, and " +
			"runs on; the other rank was ended", 1},
		{"longline", 1, "rank 0 (PROGRAM) has sent its launcher a line of more than 65536 bytes", 1},
		{"unread", 1, "rank 0 (PROGRAM) does not read the answers of its launcher", 1},
		{"deaf fail", 1, "rank 1 (PROGRAM) ended with exit code 9; the other rank was ended", 9},
	} {
		j, _ := job(t, tt.ranks, strings.Fields(tt.programs)...)
		want := strings.ReplaceAll(tt.want, "PROGRAM", j.Programs[0].Args[0])
		signals := make(chan os.Signal, 1)
		j.Signals = signals
		hangs := time.AfterFunc(30*time.Second, func() { signals <- syscall.SIGINT })
		err := j.Run()
		hangs.Stop()
		if ExitCode(err) != tt.code || want == "" && err != nil ||
			want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%s: %v (code %d), want %s (%d)", tt.programs, err, ExitCode(err), want, tt.code)
		}
	}
}

func TestCannotStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		code int
		is   error
	}{{"no-such-program", CodeNotFound, nil}, {"./no-such-program", CodeNotFound, fs.ErrNotExist},
		{file, CodeCannotStart, fs.ErrPermission}} {
		j, _ := job(t, 2, "forever")
		j.Programs = append(j.Programs, Program{Ranks: 1, Args: []string{tt.name}})
		err := j.Run()
		var e *RankError
		if !errors.As(err, &e) || e.Rank != 2 || e.Code != tt.code || e.RanksEnded != 2 ||
			!strings.Contains(err.Error(), tt.name) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestNoWorkingDirectory(t *testing.T) {
	j, _ := job(t, 1, "forever")
	j.Programs[0].Dir = "/no-such-directory"
	err := j.Run()
	if ExitCode(err) != CodeCannotStart ||
		!strings.Contains(err.Error(),
			"could not be started: working directory: stat /no-such-directory/.: no such file") {
		t.Errorf("%v, code %d", err, ExitCode(err))
	}
}

// TestChildren: processes started by a rank end with the job.
func TestChildren(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.OpenFile(fifo, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	j := &Job{Stdout: io.Discard, Stderr: os.Stderr,
		Programs: []Program{{Ranks: 1, Args: []string{"sh", "-c", "sleep 1000 >" + fifo + " 2>&1 &"}}}}
	if err := j.Run(); err != nil {
		t.Fatal(err)
	}
	_ = in.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := in.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the child of the rank runs: %v", err)
	}
}

// TestUnreadInput: input not read by a rank is left to the next program.
func TestUnreadInput(t *testing.T) {
	name := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(name, []byte("left"), 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	j, _ := job(t, 2, "nothing")
	j.Stdin = in
	if err := j.Run(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(in); string(rest) != "left" || err != nil {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestSignals: signals are forwarded; termination signals end the job, immediately the second time.
func TestSignals(t *testing.T) {
	for _, tt := range []struct {
		program string
		signals []os.Signal
		want    string
		code    int
	}{
		{"interrupted", []os.Signal{syscall.SIGUSR1}, "<nil>", 0},
		{"forever", []os.Signal{syscall.SIGINT}, "the job was ended by a signal: interrupt", 130},
		{"deaf", []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, "the job was ended by a signal: terminated", 143},
	} {
		j, out := job(t, 2, tt.program)
		signals := make(chan os.Signal)
		j.Signals = signals
		ended := make(chan error)
		go func() { ended <- j.Run() }()
		out.until("ready", 2)
		for _, s := range tt.signals {
			signals <- s
		}
		if err := <-ended; fmt.Sprint(err) != tt.want || ExitCode(err) != tt.code {
			t.Errorf("%s: %v, code %d", tt.program, err, ExitCode(err))
		}
		if tt.code == 0 && strings.Count(out.String(), "user defined signal 1") != 2 {
			t.Errorf("%q", out)
		}
	}
}

// TestProgress: the ranks that delay the start are reported.
func TestProgress(t *testing.T) {
	j, out := job(t, 1, "barrier", "forever", "forever")
	signals, late := make(chan os.Signal), make(chan time.Time)
	j.Signals = signals
	said := make(chan string, 1)
	j.Progress = func(text string) {
		select {
		case said <- text:
		default:
		}
	}
	ended := make(chan error)
	go func() { ended <- j.run(late, func() {}) }()
	out.until("ready", 2)
	for text := ""; text == ""; { // rank 0 may be late
		select {
		case late <- time.Time{}:
		case text = <-said:
			if text != "waiting for ranks 1, 2 to call MPI_Init" {
				t.Error(text)
			}
		}
	}
	signals <- syscall.SIGINT
	if err := <-ended; ExitCode(err) != 130 {
		t.Error(err)
	}
}

// TestOutput: lines are not mixed, and a prompt is shown.
func TestOutput(t *testing.T) {
	j, out := job(t, 3, "lines")
	if err := j.Run(); err != nil {
		t.Fatal(err)
	}
	whole := strings.Count(out.String(), " of rank ")
	for _, line := range strings.Split(strings.ReplaceAll(out.String(), "end without a newline", ""), "\n") {
		if n := strings.Count(line, "line"); n > 1 {
			t.Fatalf("two lines are mixed: %q", line)
		}
	}
	if whole != 6000 || strings.Count(out.String(), "end without a newline") != 3 {
		t.Errorf("%d lines", whole)
	}

	j, out = job(t, 2, "prompt")
	in, answer := io.Pipe()
	j.Stdin = in
	ended := make(chan error)
	go func() { ended <- j.Run() }()
	out.until("number? ", 2)
	fmt.Fprintln(answer, "42")
	answer.Close()
	if err := <-ended; err != nil || !strings.Contains(out.String(), "42\n") {
		t.Errorf("%v, %q", err, out)
	}

	broken := errors.New("no space left")
	j, _ = job(t, 1, "lines")
	j.Stdout = failing{broken}
	if err := j.Run(); !errors.Is(err, broken) || ExitCode(err) != 1 {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestRanksText(t *testing.T) {
	j := &Job{}
	for _, tt := range []struct {
		ranks []int
		want  string
	}{{[]int{3}, "rank 3"}, {[]int{1, 2}, "ranks 1, 2"},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"}} {
		if got := j.ranksText(tt.ranks, true); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	j.ProcessRanks = []ProcessRank{{0, "10.0.0.1:2718"}, {3, "10.0.0.1:2719"}}
	if got := j.ranksText([]int{0, 1}, true); got != "ranks 0 (10.0.0.1:2718), 3 (10.0.0.1:2719)" {
		t.Errorf("%q", got)
	}
	if got := j.ranksText([]int{1}, false); got != "rank 3" {
		t.Errorf("%q", got)
	}
}

// TestEnvironment: programs have the environment variables of the job and of the program, and their working
// directories.
func TestEnvironment(t *testing.T) {
	j, out := job(t, 1, "environment", "environment")
	dir := t.TempDir()
	j.Env = []string{"JOB=all", "ONE=0"}
	j.Programs[1].Env, j.Programs[1].Dir = []string{"ONE=1"}, dir
	j.Label, j.ProcessRanks = true, []ProcessRank{{2, "a"}, {5, "b"}}
	if err := j.Run(); err != nil {
		t.Fatal(err)
	}
	own, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	if want := []string{"[2] all 0 0 " + own, "[5] all 1 1 " + dir}; !slices.Equal(lines, want) {
		t.Errorf("%q, want %q", lines, want)
	}
}
