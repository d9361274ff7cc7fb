package manual

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Commands writes the manual pages of a program and of its commands into the folder
// man below the folder given, and its completions for bash, zsh and fish into the
// folder completions. Version is that of the program.
func Commands(root *cobra.Command, version, folder string) error {
	date, err := Date()
	if err != nil {
		return err
	}
	pages, completions := filepath.Join(folder, "man"), filepath.Join(folder, "completions")
	for _, dir := range []string{pages, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := writePages(root, pages, version, date); err != nil {
		return err
	}
	program := root.Name()
	if err := root.GenBashCompletionFileV2(filepath.Join(completions, program), true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(filepath.Join(completions, "_"+program)); err != nil {
		return err
	}
	return root.GenFishCompletionFile(filepath.Join(completions, program+".fish"), true)
}

// writePages writes the page of cmd, and those of the commands below it.
func writePages(cmd *cobra.Command, folder, version string, date time.Time) error {
	page := Page(pageName(cmd), "1", "zrlmpid "+version, date, markdown(cmd))
	if err := os.WriteFile(filepath.Join(folder, pageName(cmd)+".1"), page, 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writePages(sub, folder, version, date); err != nil {
			return err
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func markdown(cmd *cobra.Command) string {
	var b strings.Builder
	section := func(title, text string) {
		if text != "" {
			fmt.Fprintf(&b, "# %s\n%s\n\n", title, text)
		}
	}
	section("NAME", pageName(cmd)+" - "+Escape(strings.ToLower(cmd.Short[:1])+cmd.Short[1:]))
	synopsis := "**" + Escape(cmd.CommandPath()) + "** [*flags*]"
	if _, arguments, ok := strings.Cut(cmd.Use, " "); ok {
		synopsis += " " + Escape(arguments)
	} else if cmd.HasAvailableSubCommands() {
		synopsis += " *command*"
	}
	section("SYNOPSIS", synopsis)
	section("DESCRIPTION", Help(cmp.Or(cmd.Long, cmd.Short+".")))
	var commands string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			commands += fmt.Sprintf("**%s**(1)\n: %s\n\n", pageName(sub), Escape(sub.Short))
		}
	}
	section("COMMANDS", commands)
	section("OPTIONS", Options(cmd.NonInheritedFlags())+Options(cmd.InheritedFlags()))
	if cmd.Example != "" {
		section("EXAMPLES", "```\n"+cmd.Example+"\n```")
	}
	see := "**zrlmpid**(8)"
	if cmd.HasParent() {
		see = "**" + pageName(cmd.Parent()) + "**(1), " + see
	}
	section("SEE ALSO", see)
	return b.String()
}
