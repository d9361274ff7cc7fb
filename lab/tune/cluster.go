package tune

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// job is a request to all ranks to make a call once and verify it, and then to make it Iterations times.
type job struct {
	Collective string        `json:"collective"`
	By         choice.Choice `json:"by"`
	Bytes      int           `json:"bytes"`
	Iterations int           `json:"iterations"`
}

// answer is the reply with which a rank responds to a job.
type answer struct {
	// Nanos lists how long the calls took on this rank, in nanoseconds.
	Nanos []int64 `json:"nanos"`
	Error string  `json:"error,omitempty"`
}

// cluster is a set of running rank processes.
type cluster struct {
	ranks []*process
	stop  context.CancelFunc
}

// process is the process of a rank.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	in    *json.Encoder
	out   *json.Decoder
}

// startCluster starts n ranks that communicate over a transport. Their error output is written to stderr.
func startCluster(ctx context.Context, dir, transport string, n int, stderr io.Writer) (*cluster, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "ranks.yaml")
	if err := bench.Configure(file, "extended", transport, "", n); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	c := &cluster{stop: stop}
	for rank := range n {
		cmd := exec.CommandContext(ctx, self, RankCommand, "-config", file, "-rank", strconv.Itoa(rank))
		// Jobs choose the algorithm, so a choice in the environment must not override it.
		cmd.Env = append(os.Environ(), config.EnvCollectives+"=", config.EnvCollectivesTable+"=")
		cmd.Stderr = stderr
		p, err := start(cmd)
		if err != nil {
			c.stop()
			c.close()
			return nil, err
		}
		c.ranks = append(c.ranks, p)
	}
	return c, nil
}

func start(cmd *exec.Cmd) (*process, error) {
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &process{cmd, stdin, json.NewEncoder(stdin), json.NewDecoder(stdout)}, nil
}

// measure sends a job to all ranks. It returns how long each call took on the slowest rank, in nanoseconds. After an
// error, the cluster can no longer be used.
func (c *cluster) measure(ctx context.Context, j job) ([]int64, error) {
	release := context.AfterFunc(ctx, c.stop) // ends the wait for an answer
	defer release()
	answers := make([]answer, len(c.ranks))
	ends := make(chan error, len(c.ranks))
	for rank, p := range c.ranks {
		go func() { ends <- p.runJob(rank, j, &answers[rank]) }()
	}
	var first error
	for range c.ranks {
		if err := <-ends; err != nil && first == nil {
			first = err
			c.stop() // the other ranks may be waiting for this rank
		}
	}
	if first != nil {
		return nil, first
	}
	longest := make([]int64, j.Iterations)
	for _, a := range answers {
		for i, t := range a.Nanos {
			longest[i] = max(longest[i], t)
		}
	}
	return longest, nil
}

// runJob sends a job to the process and reads the answer.
func (p *process) runJob(rank int, j job, a *answer) error {
	if err := p.in.Encode(j); err != nil {
		return fmt.Errorf("rank %d ends: %w", rank, err)
	}
	if err := p.out.Decode(a); err != nil {
		return fmt.Errorf("rank %d ends: %w", rank, err)
	}
	if a.Error != "" {
		return fmt.Errorf("rank %d: %s", rank, a.Error)
	}
	if n := len(a.Nanos); n != j.Iterations {
		return fmt.Errorf("rank %d has measured %d calls instead of %d", rank, n, j.Iterations)
	}
	return nil
}

// close stops the ranks and waits until they have exited. It ignores their exit codes, because each job was answered or
// returned an error.
func (c *cluster) close() {
	for _, p := range c.ranks {
		p.stdin.Close() // stops the rank
	}
	for _, p := range c.ranks {
		_ = p.cmd.Wait()
	}
	c.stop()
}
