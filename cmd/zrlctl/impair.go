package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/cmd/zrlctl/relay"
	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/config/cluster"
	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// reportInterval is the interval of reports with -v.
const reportInterval = time.Second

type impairFlags struct {
	pool, transport, script string
	rules                   []string
	seed                    int
	printConfig             []int
	verbose                 bool
}

func (a *app) impairCommand() *cobra.Command {
	var flags impairFlags
	cmd := &cobra.Command{
		Use: "impair CONFIG|-", Short: "Lose, delay, duplicate and corrupt packets between ranks",
		Long: `Relay the packets between the ranks of a configuration, and impair them according to rules.

The relay gives every rank an address at which the other ranks reach it. Start the ranks
with rank maps that contain these addresses: --print-config writes the configuration for a
zrlmpid. The relay runs until it is interrupted, and then prints a report by direction and
type of packet. It also prints the report on SIGUSR1, and every second with -v. A line that
starts with "ready" is printed when all sockets are open.

The words of a rule are flags: together they form one rule. --rule adds further rules,
--script reads them from a file. All random decisions depend only on the seed: the same
packets of a direction meet the same faults again. Loss, duplication and reordering need
udp; a rule with a fault that its transport cannot have is an error.`,
		Example: `  zrlctl impair cluster.yaml --print-config 0 > host.yaml
  zrlctl impair cluster.yaml --loss 5% --duplicate 1% --reorder 2% --delay 1ms~5ms --seed 7
  zrlctl impair cluster.yaml --rule "from 2 to 0 packet ACK nth 3 loss 100%"
  zrlctl impair cluster.yaml --transport tcp --reset 0.1% --delay 1ms`,
		Args: argCount(1, 1),
		RunE: operation(func(cmd *cobra.Command, args []string) error { return a.impair(cmd, &flags, args[0]) }),
	}
	fl := cmd.Flags()
	fl.StringVar(&flags.pool, "via", "",
		"`addresses` of the relay in rank order, as in 10.0.1.1-10.0.1.4 (default "+relay.DefaultPool+
			" if all ranks are on loopback addresses)")
	fl.StringVar(&flags.transport, "transport", "",
		"udp or tcp (default: defaults.transport of the configuration, or udp)")
	fl.StringVar(&flags.script, "script", "", "`file` of rules")
	fl.StringArrayVar(&flags.rules, "rule", nil,
		"another `rule`, as in \"from 2 to 0 packet ACK nth 3 loss 100%\"; may be given several times")
	fl.IntVar(&flags.seed, "seed", 0, "seed (default: that of the script, or 0)")
	fl.IntSliceVar(&flags.printConfig, "print-config", nil,
		"print the configuration for a zrlmpid that runs these `ranks`, and exit")
	fl.BoolVarP(&flags.verbose, "verbose", "v", false, "print a report every second")
	for _, word := range impair.Words() {
		if word.Value == "" {
			fl.Bool(word.Name, false, word.Help)
			continue
		}
		help := word.Help
		if !word.Fault {
			help = "packets " + help
		}
		fl.Var(&ruleFlag{kind: word.Value}, word.Name, help)
	}
	return cmd
}

// ruleFlag is a flag that sets one word of an impairment rule. It accepts any value, because ParseRule validates the
// value later.
type ruleFlag struct{ text, kind string }

func (v *ruleFlag) String() string        { return v.text }
func (v *ruleFlag) Type() string          { return v.kind }
func (v *ruleFlag) Set(text string) error { v.text = text; return nil }

func (a *app) impair(cmd *cobra.Command, flags *impairFlags, file string) error {
	plan, err := flags.makePlan(file, cmd.InOrStdin())
	if err != nil {
		return &usageError{err}
	}
	out := cmd.OutOrStdout()
	if cmd.Flags().Changed("print-config") {
		return printConfig(out, plan, flags.printConfig)
	}
	script, err := flags.readScript(cmd.Flags())
	if err == nil {
		err = plan.Check(script)
	}
	if err != nil {
		return &usageError{err}
	}
	r, err := relay.Listen(plan, script)
	if err != nil {
		return err
	}
	defer r.Close()
	requested := make(chan os.Signal, 1)
	if len(reportSignals) > 0 {
		signal.Notify(requested, reportSignals...)
		defer signal.Stop(requested)
	}
	if err := a.printReady(out, plan, script); err != nil {
		return err
	}
	if err := a.reportUntilDone(cmd.Context(), out, r, requested, flags.verbose); err != nil {
		return err
	}
	return a.printRelayReport(out, r)
}

// makePlan reads the configuration and assigns each rank an address at which the relay receives for it.
func (f *impairFlags) makePlan(file string, stdin io.Reader) (*relay.Plan, error) {
	var cfg *config.Config
	var err error
	if file == "-" {
		cfg, err = config.Parse(stdin, "standard input")
	} else {
		cfg, err = config.Load(file)
	}
	if err != nil {
		return nil, err
	}
	var pool cluster.Pool
	if f.pool != "" {
		if pool, err = cluster.ParsePool(f.pool); err != nil {
			return nil, fmt.Errorf("--via: %w", err)
		}
	}
	return relay.NewPlan(cfg, pool, f.transport)
}

// readScript returns the rules from the script file, from --rule and from the other flags, in this order.
func (f *impairFlags) readScript(fl *pflag.FlagSet) (script impair.Script, err error) {
	if f.script != "" {
		file, err := os.Open(f.script)
		if err != nil {
			return script, err
		}
		defer file.Close()
		if script, err = impair.Parse(file, f.script); err != nil {
			return script, err
		}
	}
	if fl.Changed("seed") {
		script.Seed = f.seed
	}
	lines := f.rules
	var own []string
	for _, word := range impair.Words() {
		value := fl.Lookup(word.Name).Value.String()
		if !fl.Changed(word.Name) || word.Value == "" && value == "false" {
			continue
		}
		own = append(own, word.Name)
		if word.Value != "" {
			own = append(own, value)
		}
	}
	if len(own) > 0 {
		lines = append(lines, strings.Join(own, " "))
	}
	for _, line := range lines {
		rule, err := impair.ParseRule(line)
		if err != nil {
			return script, fmt.Errorf("rule %q: %w", line, err)
		}
		script.Rules = append(script.Rules, rule)
	}
	return script, nil
}

func printConfig(out io.Writer, plan *relay.Plan, ranks []int) error {
	cfg, err := plan.ConfigFor(ranks)
	if err != nil {
		return &usageError{err}
	}
	text, err := cfg.YAML()
	if err == nil {
		_, err = out.Write(text)
	}
	return err
}

// relayedRank describes a rank by its real address and the address that the relay uses for it.
type relayedRank struct {
	Rank         int    `json:"rank"`
	Address      string `json:"address"`
	RelayAddress string `json:"seen"`
}

// printReady prints the addresses of the ranks and the rules.
func (a *app) printReady(out io.Writer, plan *relay.Plan, script impair.Script) error {
	ranks, rules := make([]relayedRank, plan.Size()), make([]string, len(script.Rules))
	for rank := range ranks {
		own, seen := plan.Addrs(rank)
		ranks[rank] = relayedRank{rank, own.String(), seen.String()}
	}
	for i, r := range script.Rules {
		rules[i] = r.String()
	}
	if a.json {
		return json.NewEncoder(out).Encode(struct {
			Ready     bool          `json:"ready"`
			Transport string        `json:"transport"`
			Seed      int           `json:"seed"`
			Rules     []string      `json:"rules"`
			Ranks     []relayedRank `json:"ranks"`
		}{true, plan.Medium.String(), script.Seed, rules, ranks})
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RANK\tADDRESS\tSEEN BY OTHERS AT")
	for _, r := range ranks {
		fmt.Fprintf(w, "%d\t%s\t%s\n", r.Rank, r.Address, r.RelayAddress)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, rule := range rules {
		fmt.Fprintf(out, "rule: %s\n", rule)
	}
	_, err := fmt.Fprintf(out, "ready: %s, seed %d\n", plan.Medium, script.Seed)
	return err
}

// reportUntilDone prints a report whenever the user requests one and, if verbose is set, every second, until ctx is
// done.
func (a *app) reportUntilDone(ctx context.Context, out io.Writer, r *relay.Relay, requested <-chan os.Signal,
	verbose bool) error {
	var every <-chan time.Time
	if verbose {
		ticker := time.NewTicker(reportInterval)
		defer ticker.Stop()
		every = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-requested:
		case <-every:
		}
		if err := a.printRelayReport(out, r); err != nil {
			return err
		}
	}
}

func (a *app) printRelayReport(out io.Writer, r *relay.Relay) error {
	report := r.Report()
	if a.json {
		return json.NewEncoder(out).Encode(report)
	}
	return report.Print(out)
}
