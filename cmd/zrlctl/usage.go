package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// syntaxError reports invalid syntax of the command line. The command's usage is printed after it.
type syntaxError struct{ error }

func syntaxErrorf(format string, args ...any) error { return &syntaxError{fmt.Errorf(format, args...)} }

// usageLine returns the usage of a command on one line.
func usageLine(cmd *cobra.Command) string {
	line := "usage: " + cmd.UseLine()
	if cmd.HasAvailableSubCommands() {
		line += " COMMAND"
	}
	return line + fmt.Sprintf("; %s --help describes it", cmd.CommandPath())
}

// argCount returns a function that checks how many arguments a command receives. There must be at least least arguments
// and, unless most is negative, at most most.
func argCount(least, most int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return syntaxErrorf("%s: %s is missing", cmd.Name(), argumentName(cmd, len(args)))
		case most >= 0 && len(args) > most:
			return syntaxErrorf("%s: unexpected argument %q", cmd.Name(), args[most])
		}
		return nil
	}
}

// argumentName returns the name of argument n in a command's usage.
func argumentName(cmd *cobra.Command, n int) string {
	var names []string
	for word := range strings.FieldsSeq(cmd.Use) {
		name := strings.TrimLeft(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
		if name = word[:len(word)-len(name)]; len(name) > 1 {
			names = append(names, name)
		}
	}
	if n < len(names) {
		return names[n]
	}
	return "an argument"
}

// requireOneFlag returns an error unless exactly one of the named flags was given.
func requireOneFlag(cmd *cobra.Command, names ...string) error {
	var given []string
	for _, name := range names {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	switch len(given) {
	case 0:
		return syntaxErrorf("%s: give one of --%s", cmd.Name(), strings.Join(names, ", --"))
	case 1:
		return nil
	}
	return syntaxErrorf("%s: give only one of %s", cmd.Name(), strings.Join(given, ", "))
}

// requireFlags returns an error unless all named flags were given.
func requireFlags(cmd *cobra.Command, names ...string) error {
	for _, name := range names {
		if !cmd.Flags().Changed(name) {
			return syntaxErrorf("%s: --%s is missing", cmd.Name(), name)
		}
	}
	return nil
}

// unknownCommand checks the arguments of a command that has subcommands.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return syntaxErrorf("there is no command %q%s", args[0], strictyaml.SuggestName(args[0], names))
}

// flagError converts an error from package pflag to an error written for the user.
func flagError(cmd *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name := e.GetSpecifiedName()
		if e.GetSpecifiedShortnames() != "" {
			return syntaxErrorf("%s: there is no flag -%s", cmd.Name(), name)
		}
		return syntaxErrorf("%s: there is no flag --%s%s", cmd.Name(), name,
			strictyaml.SuggestName("--"+name, flagNames(cmd)))
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		f := e.GetFlag()
		return syntaxErrorf("%s: --%s needs a value: %s", cmd.Name(), f.Name, f.Usage)
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := e.GetFlag()
		return usageErrorf("--%s %q: %s", f.Name, e.GetValue(), valueHint(f, e.Unwrap()))
	}
	return &syntaxError{err}
}

// valueHint describes the valid values of a flag.
func valueHint(f *pflag.Flag, err error) string {
	switch kind := f.Value.Type(); kind {
	case "int", "int64":
		return "must be a whole number"
	case "uint", "uint64":
		return "must be a whole number, 0 or more"
	case "intSlice", "int64Slice", "uintSlice":
		return "must be whole numbers, as in 1,2"
	case "duration":
		return "must be a time with its unit, as in 500ms, 10s or 2m"
	case "bool":
		return "must be true or false"
	}
	return err.Error()
}

// flagNames returns the names of a command's flags, with dashes.
func flagNames(cmd *cobra.Command) []string {
	names := []string{"--help"}
	add := func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	slices.Sort(names)
	return slices.Compact(names)
}
