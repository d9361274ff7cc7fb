//go:build manual

package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/manual"
)

// With the build tag manual, the program is another one: it writes the manual pages
// and completions of zrlctl into the folder that it is given. So the generators are no
// part of what users run. `make man` calls it.
func init() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -tags manual ./cmd/zrlctl FOLDER")
		os.Exit(exitUsage)
	}
	if err := writeManual(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "zrlctl's manual:", err)
		os.Exit(exitFailure)
	}
	os.Exit(exitOK)
}

func writeManual(folder string) error {
	// Defaults are shown as they are for a user without these variables.
	for _, name := range []string{"XDG_RUNTIME_DIR", "ZRLMPID_CONTROL_SOCKET"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	date, err := manual.Date()
	if err != nil {
		return err
	}
	root, _ := newRoot()
	for _, dir := range []string{"man", "completions"} {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			return err
		}
	}
	if err := writePages(root, filepath.Join(folder, "man"), date); err != nil {
		return err
	}
	completions := filepath.Join(folder, "completions")
	if err := root.GenBashCompletionFileV2(filepath.Join(completions, "zrlctl"), true); err != nil {
		return err
	}
	if err := root.GenZshCompletionFile(filepath.Join(completions, "_zrlctl")); err != nil {
		return err
	}
	return root.GenFishCompletionFile(filepath.Join(completions, "zrlctl.fish"), true)
}

// writePages writes the page of cmd, and those of the commands below it.
func writePages(cmd *cobra.Command, folder string, date time.Time) error {
	page := manual.Page(pageName(cmd), "1", "zrlmpid "+control.Version(), date, markdown(cmd))
	if err := os.WriteFile(filepath.Join(folder, pageName(cmd)+".1"), page, 0o644); err != nil {
		return err
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := writePages(sub, folder, date); err != nil {
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
	section("NAME", pageName(cmd)+" - "+manual.Escape(strings.ToLower(cmd.Short[:1])+cmd.Short[1:]))
	synopsis := "**" + manual.Escape(cmd.CommandPath()) + "** [*flags*]"
	if _, arguments, ok := strings.Cut(cmd.Use, " "); ok {
		synopsis += " " + manual.Escape(arguments)
	} else if cmd.HasAvailableSubCommands() {
		synopsis += " *command*"
	}
	section("SYNOPSIS", synopsis)
	section("DESCRIPTION", manual.Help(cmp.Or(cmd.Long, cmd.Short+".")))
	var commands string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			commands += fmt.Sprintf("**%s**(1)\n: %s\n\n", pageName(sub), manual.Escape(sub.Short))
		}
	}
	section("COMMANDS", commands)
	section("OPTIONS", manual.Options(cmd.NonInheritedFlags(), "--")+manual.Options(cmd.InheritedFlags(), "--"))
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
