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
	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// jobHelp explains jobs in the help of each command that can show either a daemon or a job.
const jobHelp = `

With --job, or if there is one job of this user on this host and no daemon, show the state of
that job and its ranks on this host. zrlctl run, MPICH's mpiexec and srun start jobs. Root
names a job of another user as NAME@NUMBER, with the number of the user; do not trust the
answers of its processes.`

// target is the daemon or job that a command shows.
type target struct {
	app *app
	job string
	// socketGiven is set if the user specified the daemon's socket on the command line.
	socketGiven bool
}

// addTargetFlags adds the flag --job to a command and returns its target.
func (a *app) addTargetFlags(cmd *cobra.Command) *target {
	t := &target{app: a}
	cmd.Flags().StringVar(&t.job, "job", "", "show this job instead of a daemon")
	cmd.Long += jobHelp
	return t
}

// queryFunc returns a function that queries the target. It must be called after the command line has been parsed.
func (t *target) queryFunc(cmd *cobra.Command) func(context.Context) (state.Status, error) {
	t.detectSocket(cmd)
	return t.queryStatus
}

func (t *target) detectSocket(cmd *cobra.Command) {
	t.socketGiven = cmd.Flags().Changed(socketName) || cmd.Root().Flags().Changed(socketName) ||
		os.Getenv(config.EnvControlSocket) != ""
}

// handleQuery is a query.Handler that passes a request to the daemon or job that the user specified. By default, it
// passes the request to the daemon or, if no daemon is running, to the only job.
func (t *target) handleQuery(ctx context.Context, request query.Request) query.Response {
	response, _ := t.handleAndName(ctx, request)
	return response
}

// handleAndName is like handleQuery, and also names the job that handled the request, or returns "" for the daemon.
func (t *target) handleAndName(ctx context.Context, request query.Request) (query.Response, string) {
	name := t.job
	if name == "" {
		client := t.app.client()
		defer client.Close()
		resp := client.Handle(ctx, request)
		if _, none := errors.AsType[*control.UnreachableError](resp.Err); !none || t.socketGiven {
			return resp, ""
		}
		list, listErr := control.FindJobs("")
		var err error
		if name, err = chooseOnlyJob(list, resp.Err, listErr); err != nil {
			return query.Response{Err: err}, ""
		}
	}
	j, err := findJob(name)
	if err != nil {
		return query.Response{Err: err}, ""
	}
	return j.Handle(ctx, request), name
}

// chooseOnlyJob returns the name of the only job in list. listErr is the error from reading the list, and err explains
// why no daemon answers.
func chooseOnlyJob(list []*control.Job, err, listErr error) (string, error) {
	switch {
	case listErr != nil:
		return "", errors.Join(err, listErr)
	case len(list) == 0:
		if daemonErr, ok := errors.AsType[*control.UnreachableError](err); ok {
			return "", &control.UnreachableError{Socket: daemonErr.Socket, Err: daemonErr.Err, JobPlaces: jobs.Places()}
		}
		return "", err
	case len(list) > 1:
		return "", control.Errorf(control.Usage,
			"there is no daemon, but several jobs: name one of them with --job: %s", formatJobs(list))
	}
	return list[0].Name, nil
}

// queryStatus queries the target's status.
func (t *target) queryStatus(ctx context.Context) (state.Status, error) {
	return query.Get[state.Status](ctx, t.handleQuery, query.Request{Kind: query.Status})
}

// findJob returns the job with the given name, or this user's only job if name is empty. It does not contact the job's
// ranks.
func findJob(name string) (*control.Job, error) {
	list, err := control.FindJobs(name)
	if err != nil {
		return nil, err
	}
	switch {
	case len(list) == 1:
		return list[0], nil
	case len(list) > 1:
		return nil, control.Errorf(control.Usage, "there are several jobs: name one of them: %s", formatJobs(list))
	}
	if name == "" {
		return nil, control.Errorf(control.Usage, "no job of this user runs on this host: start one with \"zrlctl run\"")
	}
	if list, err = control.FindJobs(""); err != nil || len(list) == 0 {
		return nil, control.Errorf(control.Usage,
			"there is no job %q, and no other job of this user runs on this host (none in %s)", name,
			strings.Join(jobs.Places(), ", "))
	}
	return nil, control.Errorf(control.Usage, "there is no job %q on this host: there are %s", name, formatJobs(list))
}

// maxJobs is the maximum number of jobs listed in an error.
const maxJobs = 16

// formatJobs lists jobs for an error message.
func formatJobs(list []*control.Job) string {
	parts := make([]string, min(len(list), maxJobs))
	for i := range parts {
		parts[i] = fmt.Sprintf("%s (%s here)", list[i].Name, words.Plural(len(list[i].Ranks), "rank"))
	}
	if more := len(list) - maxJobs; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, ", ")
}
