package node

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/node/recorder"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// failureRecorder writes a record when an operation of a job's rank fails. The record contains the preceding packets
// and calls. Many programs exit right after a failure, so a failed operation returns its error only after the record
// has been written.
type failureRecorder struct {
	rank   *Rank
	job    string
	output io.Writer // receives a line with the path of each record

	mu      sync.Mutex
	limiter recorder.RateLimiter
	// recordDone is closed when the current record has been written. It is nil if no record is being written.
	recordDone chan struct{}
}

// writeTimeout limits how long a caller waits for a record to be written, for example because of a slow file system.
const writeTimeout = 5 * time.Second

// startRecord starts writing a record, unless too many records were written recently. Failures that occur while the
// record is being written share it, and so do all failures of one event, such as a lost peer and the messages to it.
// startRecord does not block, because the caller holds the engine's lock.
func (f *failureRecorder) startRecord(peer int, operation string, err error) {
	if peer >= 0 {
		operation += fmt.Sprintf(" rank %d", peer)
	}
	f.rank.FlightRecorder.RecordFailure(peer, err)
	if !recorder.WorthRecording(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	if f.recordDone != nil || !f.limiter.Allow(now) {
		return
	}
	f.recordDone = make(chan struct{})
	go func(written chan struct{}) {
		f.rank.AwaitEventEnd()
		f.writeAndReport(now, peer, operation, err)
		f.mu.Lock()
		f.recordDone = nil
		f.mu.Unlock()
		close(written)
	}(f.recordDone)
}

// waitWritten waits until no record is being written.
func (f *failureRecorder) waitWritten() {
	f.mu.Lock()
	written := f.recordDone
	f.mu.Unlock()
	if written == nil {
		return
	}
	late := time.NewTimer(writeTimeout)
	defer late.Stop()
	select {
	case <-written:
	case <-late.C:
	}
}

// writeAndReport writes a record, and prints its path.
func (f *failureRecorder) writeAndReport(now time.Time, peer int, operation string, cause error) {
	path, err := f.writeRecord(recorder.RecordName(now, jobs.Name(f.job), f.rank.Self.Rank, peer),
		fmt.Sprintf("%s has failed: %v", operation, cause))
	switch {
	case err != nil:
		fmt.Fprintf(f.output, "zrlmpi: rank %d: the packets before the failure of its %s are not recorded: %v\n",
			f.rank.Self.Rank, operation, err)
	case f.rank.profile() == protocol.V09:
		fmt.Fprintf(f.output, "zrlmpi: rank %d: packets before its %s failed: zrlctl analyze --profile v0.9 %s\n",
			f.rank.Self.Rank, operation, path)
	default:
		fmt.Fprintf(f.output, "zrlmpi: rank %d: packets before its %s failed: zrlctl analyze %s\n", f.rank.Self.Rank,
			operation, path)
	}
}

// writeRecord writes a record with the given name, and returns its path.
func (f *failureRecorder) writeRecord(name, why string) (path string, err error) {
	now := time.Now()
	rank, size := f.rank, int64(f.rank.Config.Record.Spool.Size)
	comment := fmt.Sprintf("last packets of rank %d of job %s, written because its %s", rank.Self.Rank, f.job, why)
	data, err := recorder.Encode(rank.FlightRecorder.Reader(rank.addresses(), now).Read(now), size, now, comment)
	if err != nil {
		return "", err
	}
	return writeShared(recordsDirectories(&rank.Config.Record.Spool), size, name, data)
}

// profile returns V09 if any link of the rank uses that profile, and CloudFPGA otherwise.
func (r *Rank) profile() protocol.Profile {
	for peer, l := range r.Links() {
		if peer != r.Self.Rank && l.Profile == protocol.V09 {
			return protocol.V09
		}
	}
	return protocol.CloudFPGA
}
