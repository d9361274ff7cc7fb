package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// jobHelp is what the help of commands that show a daemon or a job says of jobs.
const jobHelp = `

With --job, or if there is one job of this user on this host and no daemon, the state is that of the
job: zrlctl run, MPICH's mpiexec and srun start jobs. Its local ranks are those on this host.
Root names a job of another user as NAME@NUMBER, with the number of the user; its processes
may answer anything.`

// target is what a command shows: a daemon, or a job.
type target struct {
	app *app
	job string
	// named: the user has named the daemon's socket.
	named bool
}

// targetFlags adds the flag that names a job to a command, and returns its target.
func (a *app) targetFlags(cmd *cobra.Command) *target {
	t := &target{app: a}
	cmd.Flags().StringVar(&t.job, "job", "", "show this job in place of a daemon")
	cmd.Long += jobHelp
	return t
}

// open returns a function that queries the target, after what the command line says.
func (t *target) open(cmd *cobra.Command) func(context.Context) (state.Status, error) {
	t.findNamed(cmd)
	return t.status
}

func (t *target) findNamed(cmd *cobra.Command) {
	t.named = cmd.Flags().Changed(socketName) || cmd.Root().Flags().Changed(socketName) ||
		os.Getenv(config.EnvControlSocket) != ""
}

// reset resets a peer at the target.
func (t *target) reset(ctx context.Context, req control.ResetRequest) error {
	if t.job == "" {
		client := t.app.client()
		defer client.Close()
		err := client.Reset(ctx, req)
		if _, none := errors.AsType[*control.UnreachableError](err); !none || t.named {
			return err
		}
		list, listErr := control.FindJobs("")
		if t.job, listErr = soleJob(list, err, listErr); listErr != nil {
			return listErr
		}
	}
	j, err := onlyJob(ctx, t.job)
	if err != nil {
		return err
	}
	return j.Reset(ctx, req.Rank, req.Peer)
}

// soleJob returns the name of the only job of a list that was read with listErr, where there is no daemon because of
// err.
func soleJob(list []*control.Job, err, listErr error) (string, error) {
	switch {
	case listErr != nil:
		return "", errors.Join(err, listErr)
	case len(list) == 0:
		return "", fmt.Errorf("%w; nor does a job of yours run on this host", err)
	case len(list) > 1:
		return "", control.Errorf(control.Usage,
			"there is no daemon, but several jobs: name one of them with --job: %s", jobsText(list))
	}
	return list[0].Name, nil
}

// status queries the target.
func (t *target) status(ctx context.Context) (state.Status, error) {
	if t.job != "" {
		j, err := onlyJob(ctx, t.job)
		if err != nil {
			return state.Status{}, err
		}
		return j.Status(), nil
	}
	client := t.app.client()
	defer client.Close()
	s, err := client.Status(ctx)
	if _, none := errors.AsType[*control.UnreachableError](err); !none || t.named {
		return s, err
	}
	list, listErr := control.FindJobs("")
	name, err := soleJob(list, err, listErr)
	if err != nil {
		return s, err
	}
	j, err := onlyJob(ctx, name)
	if err != nil {
		return s, err
	}
	return j.Status(), nil
}

// askReports has the daemon, or the job, whose status this is, ask the ranks of other hosts what they wait for.
func (t *target) askReports(ctx context.Context, s *state.Status) ([]state.Asked, error) {
	if s.Job == "" {
		client := t.app.client()
		defer client.Close()
		return client.AskReports(ctx)
	}
	if len(s.Ranks) == 0 {
		return nil, errors.New("no rank of the job answers on this host")
	}
	return control.AskJob(ctx, s.Job, s.Ranks[0].Rank)
}

// onlyJob returns a job, or the only one of this user without a name, and what its ranks answer.
func onlyJob(ctx context.Context, name string) (*control.Job, error) {
	list, err := control.FindJobs(name)
	if err != nil {
		return nil, err
	}
	switch {
	case len(list) == 1:
		asked, err := control.Jobs(ctx, list[0].Name)
		if err == nil && len(asked) == 1 {
			return asked[0], nil
		}
		if err != nil {
			return nil, err
		}
		// It is over.
	case len(list) > 1:
		return nil, control.Errorf(control.Usage, "there are several jobs: name one of them: %s", jobsText(list))
	}
	if name == "" {
		return nil, control.Errorf(control.Usage, "no job runs on this host")
	}
	if list, err = control.FindJobs(""); err != nil || len(list) == 0 {
		return nil, control.Errorf(control.Usage, "there is no job %q: no job of yours runs on this host", name)
	}
	return nil, control.Errorf(control.Usage, "there is no job %q on this host: there are %s", name, jobsText(list))
}

// maxJobs bounds the jobs that an error names.
const maxJobs = 16

// jobsText lists jobs in a sentence.
func jobsText(list []*control.Job) string {
	parts := make([]string, min(len(list), maxJobs))
	for i := range parts {
		parts[i] = fmt.Sprintf("%s (%s here)", list[i].Name, words.Plural(len(list[i].Ranks), "rank"))
	}
	if more := len(list) - maxJobs; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
