package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/lab/chart"
	"github.com/zrlmpi/zrlmpid/lab/sim/network"
	"github.com/zrlmpi/zrlmpid/lab/sim/predict"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

type scaleFlags struct {
	collectives, bytes              []string
	ranks                           []int
	cluster, measured, compare, svg string
}

func (a *app) paperScaleCommand() *cobra.Command {
	var flags scaleFlags
	cmd := &cobra.Command{
		Use: "scale", Short: "Predict collective calls by the number of ranks", Args: cobra.NoArgs,
		Long: `Predict the duration of collective calls, by algorithm and number of ranks. The model executes the
algorithms of the engine, and times their steps by LogGOPS: latency, overhead of a message and a
byte, gap of an interface, and the length from which messages wait for their receive. By default
each rank has a separate host with 10 Gb/s; --cluster describes another cluster, with as many ranks
on each host, and hosts on each switch, for all numbers of ranks.

Algorithms whose ranks have steps in proportion to the logarithm of the ranks are predicted for
up to 65536 ranks, the others for up to 4096. The length of segments follows from the link.

--compare fits the model to a table that zrlbench tune has measured, to calls of up to 4 ranks, and
prints the error of the model: how often its fastest algorithm was measured within 1.25 times the
fastest one, and the ratios of predicted to measured times.`,
		Example: `  zrlbench paper scale --collectives allreduce --ranks 16,256,4096,65536 --bytes 8,1MiB
  zrlbench paper scale --cluster cluster.yaml --svg plots
  zrlbench paper scale --compare table.yaml`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if flags.compare != "" {
				for _, name := range []string{"collectives", "ranks", "bytes", "cluster", "measured", "svg"} {
					if cmd.Flags().Changed(name) {
						return usagef("--%s: --compare takes what was measured; leave it out", name)
					}
				}
				return a.paperCompare(cmd.Context(), cmd.OutOrStdout(), flags.compare)
			}
			return a.paperScale(cmd.Context(), cmd.OutOrStdout(), &flags)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&flags.collectives, "collectives", []string{"bcast", "allreduce", "alltoall"},
		"collectives, of "+fmt.Sprint(choice.CollectiveNames()))
	fl.IntSliceVar(&flags.ranks, "ranks", []int{2, 8, 32, 128, 512},
		fmt.Sprintf("numbers of ranks, 2 to %d", network.MaxRanks))
	fl.StringSliceVar(&flags.bytes, "bytes", []string{"8", "4KiB", "1MiB"}, "lengths of a vector, or of one rank's block")
	fl.StringVar(&flags.cluster, "cluster", "", "`file` that describes a cluster, as for zrlbench paper choose")
	fl.StringVar(&flags.measured, "measured", "", "`file` of zrlbench tune, to which the model is fitted")
	fl.StringVar(&flags.compare, "compare", "", "compare the model with this `file` of zrlbench tune")
	svgFlag(cmd, &flags.svg)
	return cmd
}

// maxLength is the maximum length, in bytes, that a user may request for a vector or a block.
const maxLength = 1 << 30

// request converts the flags into a prediction request.
func (f *scaleFlags) request(ctx context.Context) (req predict.Request, err error) {
	for _, name := range f.collectives {
		of, err := collectives.ParseName(name)
		if err != nil {
			return req, usagef("--collectives: %w", err)
		}
		req.Collectives = append(req.Collectives, of)
	}
	for _, text := range f.bytes {
		var n bytesize.Size
		if err := n.UnmarshalText([]byte(text)); err != nil || n > maxLength || n%4 != 0 {
			return req, usagef("--bytes %q: must be a multiple of 4 up to 1GiB, as in 64KiB", text)
		}
		req.Bytes = append(req.Bytes, int(n))
	}
	for _, n := range f.ranks {
		if n < 2 || n > network.MaxRanks {
			return req, usagef("--ranks: %d ranks: must be 2 to %d", n, network.MaxRanks)
		}
	}
	if len(f.ranks) == 0 {
		return req, usagef("--ranks: give at least one number")
	}
	req.Ranks = f.ranks
	req.Cluster = predict.DefaultDescription(slices.Max(f.ranks))
	if f.cluster != "" {
		if req.Cluster, err = readFile(f.cluster, predict.Load); err != nil {
			return req, err
		}
	}
	req.Fits, err = readFits(ctx, f.measured)
	return req, err
}

// readFile reads a file by means of the function load, which also receives the file's name for its error messages.
// Errors of load are returned as usage errors.
func readFile[T any](name string, load func(io.Reader, string) (T, error)) (T, error) {
	var none T
	file, err := os.Open(name)
	if err != nil {
		return none, err
	}
	defer file.Close()
	v, err := load(file, name)
	if err != nil {
		return none, usagef("%w", err)
	}
	return v, nil
}

// readFits reads a table of measurements from a file, and fits the model to it. If name is empty, it returns no fits.
func readFits(ctx context.Context, name string) ([]*predict.Fit, error) {
	if name == "" {
		return nil, nil
	}
	table, err := readFile(name, collectives.Load)
	if err != nil {
		return nil, err
	}
	fits, err := predict.Fits(ctx, table.Document())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return fits, nil
}

func (a *app) paperScale(ctx context.Context, out io.Writer, flags *scaleFlags) error {
	request, err := flags.request(ctx)
	if err != nil {
		return err
	}
	points, err := predict.Scale(ctx, request)
	if err != nil {
		return err
	}
	if err := drawAll(flags.svg, scaleCharts(points)); err != nil {
		return err
	}
	if a.json {
		return writeJSON(out, points)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "COLLECTIVE\tBYTES\tALGORITHM")
	for _, n := range request.Ranks {
		fmt.Fprintf(w, "\t%d RANKS (µs)", n)
	}
	fmt.Fprintln(w)
	for _, row := range scaleRows(points) {
		p := row[0]
		fmt.Fprintf(w, "%s\t%v\t%s", choice.CollectiveName(coll.Collective(p.Collective)), bytesize.Size(p.Bytes),
			p.By.Algorithm)
		for _, n := range request.Ranks {
			text := "-"
			if i := slices.IndexFunc(row, func(p predict.Point) bool { return p.Ranks == n }); i >= 0 {
				text = formatMicros(row[i].Nanoseconds)
			}
			fmt.Fprint(w, "\t"+text)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}

// formatMicros formats a time in microseconds, with three significant digits or to the nanosecond.
func formatMicros(ns float64) string {
	return strconv.FormatFloat(ns/1000, 'f', max(0, min(3, 3-len(strconv.Itoa(int(ns/1000))))), 64)
}

// scaleRows groups consecutive points with the same algorithm and length into rows of a table.
func scaleRows(points []predict.Point) (rows [][]predict.Point) {
	for i, point := range points {
		if i > 0 {
			if b := points[i-1]; b.Collective == point.Collective && b.Bytes == point.Bytes &&
				b.By.Algorithm == point.By.Algorithm {
				rows[len(rows)-1] = append(rows[len(rows)-1], point)
				continue
			}
		}
		rows = append(rows, []predict.Point{point})
	}
	return rows
}

// lengthText formats a number of bytes with its unit.
func lengthText(n int) string {
	if text := bytesize.Size(n).String(); text[len(text)-1] == 'B' {
		return text
	}
	return strconv.Itoa(n) + " B"
}

// scaleCharts returns a chart for each collective and length.
func scaleCharts(points []predict.Point) (charts []chartFile) {
	for _, row := range scaleRows(points) {
		point := row[0]
		of, n := choice.CollectiveName(coll.Collective(point.Collective)), bytesize.Size(point.Bytes)
		name := fmt.Sprintf("scale-%s-%v.svg", of, n)
		if len(charts) == 0 || charts[len(charts)-1].name != name {
			charts = append(charts, chartFile{name, chart.Chart{
				Title: of + " of " + lengthText(point.Bytes) + ", predicted",
				X:     chart.Axis{Name: "ranks", Unit: chart.Counts},
				Y:     chart.Axis{Name: "time", Unit: chart.Microseconds},
			}})
		}
		c := &charts[len(charts)-1].chart
		addLine(c, point.By.Algorithm)
		for _, p := range row {
			addPoint(c, len(c.Series)-1, float64(p.Ranks), p.Nanoseconds/1000)
		}
	}
	return charts
}

func (a *app) paperCompare(ctx context.Context, out io.Writer, name string) error {
	fits, err := readFits(ctx, name)
	if err != nil {
		return err
	}
	report := predict.Compare(fits)
	if a.json {
		return writeJSON(out, report)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLASS\tRANKS\tFITTED\tCALLS\tBEST WITHIN 1.25\tWORST\tPREDICTED / MEASURED: P10\tP50\tP90")
	row := func(class, ranks, fitted string, o predict.Comparison) {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d (%.1f %%)\t%.2f\t%.2f\t%.2f\t%.2f\n", class, ranks, fitted, o.Cases,
			o.NearBest, 100*float64(o.NearBest)/float64(o.Cases), o.Worst, o.Low, o.Median, o.High)
	}
	for _, o := range report.Comparisons {
		fitted := "no"
		if o.Fitted {
			fitted = "yes"
		}
		row(string(o.Class), strconv.Itoa(o.Ranks), fitted, o)
	}
	row("all", "-", "-", report.Total)
	fmt.Fprintln(w, "\nCLASS\tDEVIATION (%)\tCALL (ns)\tCOPY (ns/B)\tREDUCE (ns/B)\tPUBLISH (ns)\tVISIBLE "+
		"(ns)\tSWITCH (ns)\tL (ns)\to (ns)\tO (ns/B)")
	for _, p := range report.Parameters {
		fmt.Fprintf(w, "%s\t%.1f\t%.0f\t%.3f\t%.3f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.3f\n", p.Class, 100*p.Deviation,
			p.Host.Call, p.Host.Copy, p.Host.Reduce, p.Host.Publish, p.Host.Visible, p.Host.Switch, p.Link.Latency,
			p.Link.Overhead, p.Link.OverheadByte)
	}
	return w.Flush()
}

func (a *app) paperChooseCommand() *cobra.Command {
	var measured, file string
	cmd := &cobra.Command{
		Use: "choose CLUSTER", Short: "Choose algorithms for a cluster that is described in a file",
		Args: cobra.ExactArgs(1),
		Long: `Choose the algorithm and the length of segments for each collective on a cluster, by the model of
zrlbench paper scale. The file describes the cluster:

  ranks: 64                            # up to 1024
  hosts: 16                            # default: one for each rank
  cores: 4                             # of a host; default: one for each of its ranks
  switches: 2                          # default: 1
  link: {latency: 10us, gbps: 10}      # of a host; these are the defaults
  uplink: {latency: 1us, gbps: 100}    # of a switch, in addition; these are the defaults
  overhead: 2.5us                      # processor time of a message at each end
  engine: software                     # or fpga: all ranks but 0 are FPGAs (cloudfpga)

Print the calls for which the choice differs from the built-in table, and the total time. --output
writes the table for the configuration (collectives.table) or ZRLMPI_COLLECTIVES_TABLE, the same
one for all ranks. FPGAs read no table; for these, print the value for collectives.upstream. By the
prediction, no call is slower than with the built-in table. Processor times come from the
built-in table's formulas, or are fitted to a table that zrlbench tune has measured (--measured).`,
		Example: `  zrlbench paper choose cluster.yaml --output table.yaml
  zrlbench paper choose cluster.yaml --measured measured.yaml --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.paperChoose(cmd.Context(), cmd.OutOrStdout(), args[0], measured, file)
		},
	}
	cmd.Flags().StringVar(&measured, "measured", "", "`file` of zrlbench tune, to which the model is fitted")
	cmd.Flags().StringVarP(&file, "output", "o", "", "write the table to this `file`")
	return cmd
}

func (a *app) paperChoose(ctx context.Context, out io.Writer, name, measured, file string) error {
	description, err := readFile(name, predict.Load)
	if err != nil {
		return err
	}
	if description.Ranks > predict.MaxChosenRanks {
		return usagef("%s: ranks: %d is outside 2 to %d", name, description.Ranks, predict.MaxChosenRanks)
	}
	if description.HasFPGAs() {
		if measured != "" || file != "" {
			return usagef("%s: %w; leave out --measured and --output", name, predict.ErrFPGA)
		}
		return a.paperUpstream(ctx, out, description)
	}
	fits, err := readFits(ctx, measured)
	if err != nil {
		return err
	}
	table, all, err := predict.Choose(ctx, description, fits)
	if err != nil {
		return err
	}
	if file != "" {
		if err := saveTable(table, file); err != nil {
			return err
		}
	}
	if a.json {
		return writeJSON(out, all)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CLASS\tRANKS\tCOLLECTIVE\tBYTES\tCHOICE\tTIME (µs)\tBUILT-IN\tTIME (µs)")
	var sum, builtIn float64
	for _, c := range all {
		sum, builtIn = sum+c.Nanoseconds, builtIn+c.BuiltInNanoseconds
		if c.Nanoseconds < c.BuiltInNanoseconds {
			fmt.Fprintf(w, "%s\t%d\t%s\t%v\t%v\t%s\t%v\t%s\n", c.Class, c.Ranks,
				choice.CollectiveName(coll.Collective(c.Collective)), bytesize.Size(c.Bytes), c.By, formatMicros(c.Nanoseconds),
				c.BuiltIn, formatMicros(c.BuiltInNanoseconds))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d calls take %.3f ms, by the built-in table %.3f ms\n", len(all), sum/1e6, builtIn/1e6)
	return err
}

// paperUpstream implements paper choose for FPGAs.
func (a *app) paperUpstream(ctx context.Context, out io.Writer, d *predict.Description) error {
	by, all, err := predict.ChooseUpstream(ctx, d)
	if err != nil {
		return err
	}
	if a.json {
		return writeJSON(out, struct {
			Upstream string             `json:"upstream"`
			Calls    []predict.Upstream `json:"calls"`
		}{by, all})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "COLLECTIVE\tBYTES\tFLAT (µs)\tTREE (µs)")
	for _, u := range all {
		fmt.Fprintf(w, "%s\t%v\t%s\t%s\n", choice.CollectiveName(coll.Collective(u.Collective)), bytesize.Size(u.Bytes),
			formatMicros(u.Flat), formatMicros(u.Tree))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "collectives.upstream: %s\n", by)
	return err
}
