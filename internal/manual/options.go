package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Options returns a list of flags as Markdown.
func Options(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		b.WriteString(option(f))
	})
	return b.String()
}

func option(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	term := "**--" + f.Name + "**"
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
