package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
)

func (a *app) reloadCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use: "reload", Short: "Reload the configuration of the daemon", Args: argCount(0, 0),
		Long: `Make the daemon read its configuration again, from the same source and with the same
flags and environment as at its start, and print the changes. SIGHUP does the same.

Messages in progress complete under the previous configuration. Keys that may change are
marked [reload] in zrlmpid.reference.yaml. If another key has changed, or the configuration
is invalid, the daemon rejects it as a whole and keeps the previous one, and the exit code
is 1. --config selects the daemon by the control socket in FILE.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			client := a.client()
			if file != "" {
				cfg, err := config.Load(file)
				if err != nil {
					return err
				}
				if cfg.ControlSocket() == "" {
					return fmt.Errorf("%s: control.socket is empty, so the result of a reload is only in the log: "+
						"send SIGHUP to zrlmpid", file)
				}
				client = control.NewClient(cfg.ControlSocket())
			}
			defer client.Close()
			result, err := client.Reload(cmd.Context())
			if err != nil {
				return err
			}
			var text strings.Builder
			for _, c := range result.Changes {
				fmt.Fprintln(&text, c.Text)
			}
			return a.print(cmd.OutOrStdout(), result, "%s", cmp.Or(text.String(), result.Config+": no changes\n"))
		}),
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration `FILE` of the daemon, instead of --socket")
	return cmd
}
