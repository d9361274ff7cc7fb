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

// packetSource provides access to the packets recorded by a daemon or a job.
type packetSource struct {
	// profile is the profile of all packets that do not use the extended profile.
	profile protocol.Profile
	// body is the daemon's response, or nil.
	body   io.ReadCloser
	client *control.Client
	// job holds the packets recorded by a job. It is nil for the packets of a daemon.
	job *control.JobPackets
}

// openPackets requests the packets of a job, or of the daemon if job is empty.
func (a *app) openPackets(ctx context.Context, job string, req control.CaptureRequest) (*packetSource, error) {
	if job == "" {
		source := &packetSource{client: a.client()}
		var err error
		if source.body, source.profile, err = source.client.Capture(ctx, req); err != nil {
			source.client.Close()
			return nil, err
		}
		return source, nil
	}
	j, err := findJob(job)
	if err != nil {
		return nil, err
	}
	source, err := j.Packets(ctx, req)
	if err != nil {
		return nil, err
	}
	return &packetSource{profile: j.Profile(), job: source}, nil
}

// asSource returns a source that reads the packets.
func (p *packetSource) asSource(o capture.Options) (capture.Source, error) {
	if p.body != nil {
		return o.NewReader(p.body, "the daemon's packets")
	}
	p.job.OnNote = o.OnNote
	return p.job, nil
}

// Close ends the request.
func (p *packetSource) Close() {
	if p.job != nil {
		p.job.Close()
		return
	}
	p.body.Close()
	p.client.Close()
}

// writeJobPackets writes the packets recorded by the ranks of a job.
func writeJobPackets(ctx context.Context, out io.Writer, source *packetSource, job string) error {
	var recorded recorder.Recording
	source.job.OnNote = func(n pcapng.RankNote) {
		if c, ok := n.(*pcapng.Call); ok {
			recorded.Calls = append(recorded.Calls, *c)
		}
	}
	var u pcapng.Unit
	err := source.job.Next(&u)
	for ; err == nil; err = source.job.Next(&u) {
		recorded.Units = append(recorded.Units, u)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	now := time.Now()
	capture.Annotate(recorded.Units, now, source.profile)
	return recorder.Write(out, recorded, now, "last packets of the ranks of job "+job+" on this host")
}
