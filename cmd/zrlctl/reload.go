package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Reload the configuration of the daemon", Args: arguments(0, 0),
		Long: `Make the daemon read its configuration again, from the same source and with the same
flags and environment as at its start, and print the changes. SIGHUP does the same.

Messages in progress complete under the previous configuration. Keys that may change are
marked [reload] in zrlmpid.reference.yaml. If another key has changed, or the
configuration is invalid, it is refused as a whole, the previous one stays in effect, and
the exit code is 1.`,
		RunE: operation(func(cmd *cobra.Command, _ []string) error {
			client := a.client()
			defer client.Close()
			r, err := client.Reload(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return writeJSON(cmd.OutOrStdout(), r)
			}
			w := cmd.OutOrStdout()
			if len(r.Changes) == 0 {
				_, err := fmt.Fprintf(w, "%s: no changes\n", r.Config)
				return err
			}
			for _, c := range r.Changes {
				if _, err := fmt.Fprintln(w, c.Text); err != nil {
					return err
				}
			}
			return nil
		}),
	}
}
