package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/node/recorder"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// packets provides access to the packets recorded by a daemon or a job.
type packets struct {
	// profile is the profile of all packets that are not of the extended profile.
	profile protocol.Profile
	// body is the daemon's response, or nil.
	body   io.ReadCloser
	client *control.Client
	// job holds the packets recorded by a job, or is nil.
	job *control.JobPackets
}

// recorded requests the packets of a job, or of the daemon if job is empty.
func (a *app) recorded(ctx context.Context, job string, req control.CaptureRequest) (*packets, error) {
	if job == "" {
		p := &packets{client: a.client()}
		var err error
		if p.body, p.profile, err = p.client.Capture(ctx, req); err != nil {
			p.client.Close()
			return nil, err
		}
		return p, nil
	}
	j, err := onlyJob(job)
	if err != nil {
		return nil, err
	}
	source, err := j.Packets(ctx, req)
	if err != nil {
		return nil, err
	}
	return &packets{profile: j.Profile(), job: source}, nil
}

// open returns the packets as a source.
func (p *packets) open(o capture.Options) (capture.Source, error) {
	if p.body != nil {
		return o.NewReader(p.body, "the daemon's packets")
	}
	p.job.OnNote = o.OnNote
	return p.job, nil
}

// Close ends the request.
func (p *packets) Close() {
	if p.job != nil {
		p.job.Close()
		return
	}
	p.body.Close()
	p.client.Close()
}

// writeJob writes the packets recorded by the ranks of a job.
func writeJob(ctx context.Context, out io.Writer, p *packets, job string) error {
	var recorded recorder.Recorded
	p.job.OnNote = func(n pcapng.RankNote) {
		if c, ok := n.(*pcapng.Call); ok {
			recorded.Calls = append(recorded.Calls, *c)
		}
	}
	var u pcapng.Unit
	err := p.job.Next(&u)
	for ; err == nil; err = p.job.Next(&u) {
		recorded.Units = append(recorded.Units, u)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	now := time.Now()
	capture.Annotate(recorded.Units, now, p.profile)
	return recorder.Write(out, recorded, now, "last packets of the ranks of job "+job+" on this host")
}
