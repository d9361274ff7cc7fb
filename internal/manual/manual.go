// Package manual writes the manual pages and completions of programs that use cobra. It is for `make man` only: no
// program for users may import it.
package manual

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

// Write writes the manual pages of a program and its commands into folder/man, and its completions for bash, zsh and
// fish into folder/completions. It modifies the texts of root. The date of the pages comes from SOURCE_DATE_EPOCH.
func Write(root *cobra.Command, version, folder string) error {
	pages, completions := filepath.Join(folder, "man"), filepath.Join(folder, "completions")
	if err := errors.Join(os.MkdirAll(pages, 0o755), os.MkdirAll(completions, 0o755)); err != nil {
		return err
	}
	prepare(root)
	program := root.Name()
	return errors.Join(
		doc.GenManTree(root, &doc.GenManHeader{Source: "zrlmpid " + version, Manual: "zrlmpid manual"}, pages),
		root.GenBashCompletionFileV2(filepath.Join(completions, program), true),
		root.GenZshCompletionFile(filepath.Join(completions, "_"+program)),
		root.GenFishCompletionFile(filepath.Join(completions, program+".fish"), true),
	)
}

// escaper escapes special characters of Markdown.
var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, "[", `\[`)

// prepare converts the texts of cmd and its subcommands from terminal format to Markdown. It keeps the line breaks of
// descriptions, which may contain tables, and appends a list of the subcommands.
func prepare(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	description := cmp.Or(cmd.Long, cmd.Short+".")
	if cmd.HasAvailableSubCommands() {
		description += "\n\nCommands:"
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			description += fmt.Sprintf("\n  %-*s  %s", cmd.NamePadding(), sub.Name(), sub.Short)
		}
		prepare(sub)
	}
	cmd.Long = "```\n" + description + "\n```"
	cmd.Short = escaper.Replace(cmd.Short)
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) { f.Usage = escaper.Replace(f.Usage) })
}
