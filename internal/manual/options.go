package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Options returns a list of flags as Markdown. Dashes stand before long names: "--", or
// "-" for programs on Go's package flag.
func Options(flags *pflag.FlagSet, dashes string) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		b.WriteString(option(f, dashes))
	})
	return b.String()
}

func option(f *pflag.Flag, dashes string) string {
	value, usage := pflag.UnquoteUsage(f)
	term := "**" + dashes + f.Name + "**"
	if f.Shorthand != "" {
		term = "**-" + f.Shorthand + "**, " + term
	}
	if value != "" {
		term += " *" + Escape(value) + "*"
	}
	definition := Escape(usage)
	switch f.DefValue {
	case "", "false", "0", "0s", "[]", "<nil>":
	default:
		definition += fmt.Sprintf(" (default: %s)", Escape(strings.Trim(f.DefValue, "[]")))
	}
	return term + "\n: " + definition + "\n\n"
}
