package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/bundle"
	"github.com/zrlmpi/zrlmpid/internal/query"
)

// supportParts returns the end of the daemon's log and a list of the daemon's records. If no daemon is running, it
// reads systemd's journal and lists the configured directory of records.
func (e *examination) supportParts(ctx context.Context) (log, records bundle.Part) {
	log = bundle.Part{Name: "log.txt", Description: "end of the daemon's log"}
	records = bundle.Part{Name: "records.txt", Description: "list of the failure records"}
	if e.status == nil {
		log.Description = "end of the log of zrlmpid.service"
		log.Content, log.Missing = readJournal(ctx)
		records.Content, records.Missing = e.readRecords()
		return log, records
	}
	client := control.NewClient(e.socket)
	defer client.Close()
	support, err := query.Get[control.Support](ctx, client.Handle, query.Request{Kind: query.Support})
	switch {
	case err != nil:
		log.Missing, records.Missing = err, err
		return log, records
	case support.Log == "":
		log.Missing = errors.New("nothing was logged")
	}
	log.Content = []byte(support.Log)
	if support.Records == nil {
		records.Missing = errors.New("the daemon writes no records: the log has the reason, unless record.spool.size is 0")
		return log, records
	}
	records.Content = formatRecords(support.Records)
	return log, records
}

// formatRecords lists the files of a spool, one on each line.
func formatRecords(records *control.Records) []byte {
	var b bytes.Buffer
	total := int64(0)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, f := range records.Files {
		total += f.Bytes
		fmt.Fprintf(w, "%d\t %s\n", f.Bytes, f.Name)
	}
	_ = w.Flush() // a Buffer returns no errors
	fmt.Fprintf(&b, "%s: %d files, %d bytes of at most %d\n", records.Directory, len(records.Files), total, records.Size)
	return b.Bytes()
}

// readRecords lists the configured directory of records.
func (e *examination) readRecords() ([]byte, error) {
	if e.config == nil || e.config.SpoolDirectory() == "" {
		return nil, errors.New("the configuration names no directory for failure records")
	}
	records := control.Records{Directory: e.config.SpoolDirectory(), Size: int64(e.config.Record.Spool.Size)}
	files, err := os.ReadDir(records.Directory)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && info.Mode().IsRegular() {
			records.Files = append(records.Files, control.Record{Name: f.Name(), Bytes: info.Size()})
		}
	}
	return formatRecords(&records), nil
}

// journalTimeout is the timeout for reading the journal. journalLines is the maximum number of lines to read.
const (
	journalTimeout = 10 * time.Second
	journalLines   = "1000"
)

// readJournal returns the end of the service's log from systemd's journal.
func readJournal(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, journalTimeout)
	defer cancel()
	text, err := exec.CommandContext(ctx, "journalctl", "--unit", "zrlmpid.service", "--lines", journalLines,
		"--no-pager", "--quiet", "--output", "short-iso").Output()
	switch {
	case err != nil:
		return nil, fmt.Errorf("journalctl: %w", err)
	case len(text) == 0:
		return nil, errors.New("the journal has no lines of zrlmpid.service that this user may read")
	}
	return text, nil
}
