package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Have the daemon read its configuration again", Args: cobra.NoArgs,
		Long: `Have the daemon read its configuration again, from where it came from, with the
flags and the environment that it was started with, and print what has changed.
SIGHUP does the same.

Messages that are under way are not touched: they end by the rules that they began
with. What may change is marked [reload] in zrlmpid.reference.yaml. If anything else
is different, or something is wrong, all of it is refused, and the daemon goes on as
before; then the exit code is 1.`,
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
				_, err := fmt.Fprintf(w, "%s: nothing has changed\n", r.Config)
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
