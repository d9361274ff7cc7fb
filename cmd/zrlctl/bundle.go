package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor/bundle"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/internal/version"
)

func (a *app) bundleCommand() *cobra.Command {
	var file, name string
	var withPackets bool
	cmd := &cobra.Command{
		Use: "bundle", Short: "Write one file for a bug report", Args: cobra.NoArgs,
		Long: `Collect the state of a daemon and its host in one file for a bug report, and list its
contents: configuration, status, metrics, the results of doctor, versions, the end of the
log, the list of failure records, and the last packets of the flight recorder without most
of their payload. A part that cannot be collected is left out and reported. With
--packets=false, the file contains no packets. Without a daemon, the log is read from
systemd's journal.

A bundle cannot contain a job. For a job, send the output of "zrlctl status --json", "zrlctl
why" and, if its ranks use a network, "zrlctl capture -o FILE", each with --job NAME.

Comments in the configuration and program arguments of kernels are removed. Keys,
certificates and passwords are in other files, which are not read. The file does contain
addresses, names of processes and beginnings of messages: read it before you publish it.`,
		Example: "  sudo zrlctl bundle -o zrlmpid.tar.gz",
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			e, err := a.newExamination(cmd.Context(), file)
			if _, none := errors.AsType[*control.UnreachableError](err); none {
				return fmt.Errorf("%w; a bundle cannot contain a job: for one, send the output of \"zrlctl status --json "+
					"--job NAME\" and \"zrlctl why --job NAME\"", err)
			}
			if err != nil {
				return err
			}
			parts := e.parts(cmd.Context())
			if withPackets {
				parts = append(parts, e.packetsPart(cmd.Context()))
			}
			if err := writeBundle(name, parts); err != nil {
				return err
			}
			return listBundle(cmd.OutOrStdout(), name, parts)
		}),
	}
	cmd.Flags().StringVarP(&name, "output", "o", "zrlmpid-bundle.tar.gz", "`file` to write")
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` (default: the running daemon's configuration)")
	cmd.Flags().BoolVar(&withPackets, "packets", true, "include the last packets of the flight recorder")
	return cmd
}

// packetsPart returns the packets stored in the daemon's flight recorder.
func (e *examination) packetsPart(ctx context.Context) bundle.Part {
	part := bundle.Part{Name: "packets.pcapng", Description: "last packets of the daemon's ranks"}
	client := control.NewClient(e.socket)
	defer client.Close()
	packets, _, err := client.Capture(ctx, control.CaptureRequest{})
	if err == nil {
		defer packets.Close()
		part.Content, err = io.ReadAll(packets)
	}
	part.Missing = err
	return part
}

// parts returns the parts of a bundle.
func (e *examination) parts(ctx context.Context) []bundle.Part {
	report := e.report(ctx)
	log, records := e.supportParts(ctx)
	part := func(name, what string, content func() ([]byte, error)) bundle.Part {
		p := bundle.Part{Name: name, Description: what}
		p.Content, p.Missing = content()
		return p
	}
	return []bundle.Part{
		part("versions.txt", "versions", func() ([]byte, error) { return e.versions(), nil }),
		part("config.yaml", "configuration with all defaults", func() ([]byte, error) {
			if e.config == nil {
				return nil, errors.New("the configuration cannot be read: name it with --config")
			}
			return bundle.Configuration(e.config)
		}),
		part("status.json", "status of the daemon", func() ([]byte, error) {
			if e.status == nil {
				return nil, errNoDaemon
			}
			return jsonBytes(e.status)
		}),
		part("metrics.txt", "metrics of the daemon", func() ([]byte, error) { return e.fetchMetrics(ctx) }),
		log, records,
		part("doctor.txt", "results of doctor", func() ([]byte, error) { return []byte(report.Text()), nil }),
		part("doctor.json", "results of doctor as JSON", func() ([]byte, error) { return jsonBytes(report) }),
		part("facts.json", "interfaces, routes and limits of this host",
			func() ([]byte, error) { return jsonBytes(e.facts) }),
	}
}

var errNoDaemon = errors.New("no daemon is running")

func jsonBytes(v any) ([]byte, error) {
	var b bytes.Buffer
	err := writeJSON(&b, v)
	return b.Bytes(), err
}

// versions returns the versions of the programs and of the operating system.
func (e *examination) versions() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "zrlctl %s\n", version.String())
	if e.status != nil {
		fmt.Fprintf(&b, "zrlmpid %s, uptime %.0f s\n", e.status.Version, e.status.Uptime)
	}
	fmt.Fprintf(&b, "%s %s/%s, %d processors\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	for _, name := range []string{"/proc/version", "/etc/os-release"} {
		if text, err := os.ReadFile(name); err == nil {
			fmt.Fprintf(&b, "\n%s:\n%s", name, text)
		}
	}
	return b.Bytes()
}

// metricsTimeout is the timeout of the request for metrics. maxMetrics is the maximum length of the response in bytes.
const (
	metricsTimeout = 5 * time.Second
	maxMetrics     = 64 << 20
)

// fetchMetrics returns the metrics of the daemon's HTTP server.
func (e *examination) fetchMetrics(ctx context.Context) ([]byte, error) {
	switch {
	case e.status == nil:
		return nil, errNoDaemon
	case e.status.HTTP == "":
		return nil, errors.New("HTTP is disabled")
	}
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.status.HTTP+"metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("GET %s: %s", req.URL, resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxMetrics+1))
	if err == nil && len(text) > maxMetrics {
		err = fmt.Errorf("GET %s: the answer is longer than %d bytes", req.URL, maxMetrics)
	}
	return text, err
}

// writeBundle writes the parts to a file that only its owner can read.
func writeBundle(name string, parts []bundle.Part) error {
	file, err := privatedir.Output(name, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(bundle.Write(file, parts, time.Now()), file.Close())
}

// listBundle prints the contents of a bundle.
func listBundle(out io.Writer, name string, parts []bundle.Part) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, p := range parts {
		if p.Missing != nil {
			fmt.Fprintf(w, "%s\tmissing\t%s: %v\n", p.Name, p.Description, p.Missing)
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", p.Name, config.Size(len(p.Content)), p.Description)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out,
		"%s: it contains addresses, names of processes and beginnings of messages; read it before you publish it\n", name)
	return err
}
