package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/lab/goodput"
	"github.com/zrlmpi/zrlmpid/lab/results"
)

func (a *app) showCommand() *cobra.Command {
	var out benchOutput
	var into string
	var targets bool
	cmd := &cobra.Command{
		Use: "show [FILE|MACHINE] [WORKLOAD…]", Short: "Print the tables of an earlier measurement",
		Long: `Print the tables of a measurement: of a file that zrlbench --save wrote, or of an archived
run. Without arguments, list the archived runs.

MACHINE is a name from that list, or a part of one, as in "model-17"; of several runs on one
machine, the newest is shown. With workloads, print the tables of these only.

With --into, put a table of selected figures into a document instead, between the lines
<!-- bench: summary --> and <!-- end of bench: summary -->. With --svg as well, draw the
plots that the document shows.

Exit codes: 0 success, 1 a file cannot be read or written, 2 wrong command line, such as a
machine or workload that does not exist.`,
		Example: `  zrlbench show
  zrlbench show family-25-model-17 pingpong
  zrlbench show bench.json --targets
  zrlbench show bench.json --into docs/performance.md --svg docs/img`,
		RunE: func(cmd *cobra.Command, args []string) error {
			stdout := cmd.OutOrStdout()
			if len(args) == 0 {
				return a.listRuns(stdout)
			}
			report, err := loadRun(args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 {
				if report, err = report.Select(args[1:]...); err != nil {
					return err
				}
			}
			switch {
			case into != "":
				return writeSummary(report, into, out.svg)
			case targets && a.json:
				return writeJSON(stdout, report.WithTargets().Targets)
			case targets:
				return report.PrintTargets(func(line string) error { _, err := fmt.Fprintln(stdout, line); return err })
			}
			return a.writeBench(report, &out, stdout)
		},
	}
	out.addFlags(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&targets, "targets", false, "compare with the targets of the project instead of printing tables")
	fl.StringVar(&into, "into", "", "put a table of selected figures into this Markdown `document`")
	return cmd
}

// loadRun loads a measurement from a file or, if the file does not exist, an archived run.
func loadRun(name string) (*bench.Report, error) {
	_, err := os.Stat(name)
	if err == nil || filepath.Ext(name) == ".json" || strings.ContainsRune(name, filepath.Separator) {
		return bench.Load(name)
	}
	if name, err = results.Find(name); err != nil {
		return nil, err
	}
	text, err := results.Read(name)
	if err != nil {
		return nil, err
	}
	return bench.Parse(name, text)
}

// archivedRun describes one run in the list of archived runs.
type archivedRun struct {
	Name      string        `json:"name"`
	Machine   bench.Machine `json:"machine"`
	Workloads []string      `json:"workloads,omitempty"`
	Tables    int           `json:"tables,omitempty"`
	// Targets is the number of targets for which the run measured a figure, and Met the number of these that it met.
	Targets int `json:"targets"`
	Met     int `json:"targets_met"`
}

func (a *app) listRuns(stdout io.Writer) error {
	all := []archivedRun{}
	for _, name := range results.Names() {
		report, err := loadRun(name)
		if err != nil {
			return err
		}
		run := archivedRun{Name: name, Machine: report.Machine, Targets: len(report.Targets), Tables: len(report.Tables)}
		for _, res := range report.Results {
			run.Workloads = append(run.Workloads, res.Workload)
		}
		for _, v := range report.Targets {
			if v.Met {
				run.Met++
			}
		}
		all = append(all, run)
	}
	if a.json {
		return writeJSON(stdout, all)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tZRLMPID\tWORKLOADS\tOTHER TABLES\tTARGETS MET")
	for _, run := range all {
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d of %d\n",
			run.Name, run.Machine.Version, len(run.Workloads), run.Tables, run.Met, run.Targets)
	}
	return w.Flush()
}

// writeSummary updates the summary in a document. Unless plots is empty, it also draws the plots that the document
// shows into the folder plots.
func writeSummary(report *bench.Report, document, plots string) error {
	// The document is updated first. If it has no place for the summary, the command fails before any plot has changed.
	if err := report.Update(document); err != nil || plots == "" {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	return report.Draw(plots, func(name string) bool { return strings.Contains(string(text), "/"+name+".svg)") })
}

// archiveFolder is the folder of the repository that contains the archived measurements.
const archiveFolder = "lab/results"

func (a *app) archiveCommand() *cobra.Command {
	var folder string
	var replace bool
	cmd := &cobra.Command{
		Use: "archive FILE", Short: "Add a measurement to the archived runs", Args: cobra.ExactArgs(1),
		Long: `Add a measurement that zrlbench --save or zrlbench goodput --save wrote to the archived
runs, and print the name of the new file: the date and the machine. The file has the
medians, not the single rounds, and lists which targets were met.

Run it in the root of the repository. "zrlbench show" of the next build lists the run.

Exit codes: 0 success, 1 a file cannot be read or written, 2 wrong command line.`,
		Example: `  zrlbench archive bin/bench/bench.json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			report, name, err := loadArchive(args[0])
			if err != nil {
				return err
			}
			file := filepath.Join(folder, name+".json")
			if _, err := os.Stat(file); !replace && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("archive %s: %s exists already; replace it with --replace", args[0], file)
			}
			if err := report.Save(file); err != nil {
				return err
			}
			if a.json {
				return writeJSON(cmd.OutOrStdout(), map[string]string{"file": file})
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), file)
			return err
		},
	}
	cmd.Flags().StringVar(&folder, "folder", archiveFolder, "`folder` of the archived runs")
	cmd.Flags().BoolVar(&replace, "replace", false, "replace the run of the same machine and date")
	return cmd
}

// loadArchive returns the archived form of a measurement, and its name.
func loadArchive(file string) (*bench.Report, string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, "", err
	}
	var kind struct{ Cells json.RawMessage }
	if json.Unmarshal(text, &kind) == nil && kind.Cells != nil {
		g, err := goodput.Load(file)
		if err != nil {
			return nil, "", err
		}
		r := g.Archive()
		return r, r.Name() + "-goodput", nil
	}
	r, err := bench.Parse(file, text)
	if err != nil {
		return nil, "", err
	}
	r = r.Archive()
	return r, r.Name(), nil
}
