package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"

	"github.com/prometheus/common/expfmt"
	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/web"
	"github.com/zrlmpi/zrlmpid/metrics"
)

func (a *app) metricsCommand() *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use: "metrics", Short: "Print or serve the metrics of this user's jobs", Args: argCount(0, 0),
		Long: `Print the metrics of the ranks of this user's jobs on this host, in the text format of
Prometheus. With --http, serve them at /metrics until interrupted; each scrape covers the
jobs that are running. The metrics have the names that a daemon uses for its ranks, without
histograms, and with the label mpi_job. A daemon serves its own metrics. The state of a job
is served at /jobs/NAME/status.json, and also at /status.json if there is only one job, for
"zrlctl why --daemons http://HOST:PORT/jobs/NAME" on other hosts.`,
		Example: "  zrlctl metrics --http 127.0.0.1:9628",
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			if listen != "" {
				return serveMetrics(cmd.Context(), listen, cmd.ErrOrStderr())
			}
			return printMetrics(cmd.Context(), cmd.OutOrStdout())
		}),
	}
	cmd.Flags().StringVar(&listen, "http", "",
		"serve the metrics at this address, as in 127.0.0.1:9628, instead of printing them")
	return cmd
}

func printMetrics(ctx context.Context, out io.Writer) error {
	list, err := jobMetrics(ctx)
	if err != nil {
		return err
	}
	families, err := metrics.NewJobRegistry(func() []metrics.Job { return list }).Gather()
	if err != nil {
		return err
	}
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(out, f); err != nil {
			return err
		}
	}
	return nil
}

// serveMetrics serves metrics until ctx is done.
func serveMetrics(ctx context.Context, listen string, stderr io.Writer) error {
	server, err := web.Listen(web.Options{Listen: listen, Ready: func() error { return nil },
		Log: slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		return err
	}
	errs := log.New(stderr, "zrlctl: ", 0)
	registry := metrics.NewJobRegistry(func() []metrics.Job {
		list, err := jobMetrics(ctx)
		if err != nil {
			errs.Print(err)
		}
		return list
	})
	server.Handle("GET /metrics", metrics.Handler(registry, errs))
	server.Handle("GET /status.json", http.HandlerFunc(serveJobStatus))
	server.Handle("GET /jobs/{job}/status.json", http.HandlerFunc(serveJobStatus))
	fmt.Fprintf(stderr, "zrlctl: metrics at %smetrics\n", server.URL())
	return server.Serve(ctx)
}

// jobMetrics returns the current metrics of the jobs on this host.
func jobMetrics(ctx context.Context) ([]metrics.Job, error) {
	found, err := control.JobMetrics(ctx)
	list := make([]metrics.Job, len(found))
	for i, j := range found {
		list[i].Name = j.Name
		for _, r := range j.Reports {
			list[i].Ranks = append(list[i].Ranks,
				metrics.JobRank{Started: r.Started, State: r.RankInfo, ClusterSize: len(r.Cluster), RankCounters: r.RankCounters,
					Peers: r.Peers,
					Times: r.Times})
		}
	}
	return list, err
}
