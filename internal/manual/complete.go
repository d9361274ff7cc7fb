package manual

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// The completions are those of programs on Go's package flag, which has no commands. A
// flag whose value is called file or socket is completed with the names of files.

func wantsFile(f *pflag.Flag) bool {
	value, _ := pflag.UnquoteUsage(f)
	return value == "file" || value == "socket"
}

func wantsValue(f *pflag.Flag) bool { return f.NoOptDefVal == "" }

// Bash returns the completion of a program's flags for bash.
func Bash(program string, flags *pflag.FlagSet) string {
	var all, files, values []string
	flags.VisitAll(func(f *pflag.Flag) {
		all = append(all, "--"+f.Name)
		switch {
		case wantsFile(f):
			files = append(files, "-"+f.Name, "--"+f.Name)
		case wantsValue(f):
			values = append(values, "-"+f.Name, "--"+f.Name)
		}
	})
	return fmt.Sprintf(`# bash completion for %[1]s

_%[1]s() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
    COMPREPLY=()
    case $before in
    %[2]s)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    %[3]s) ;;
    *) mapfile -t COMPREPLY < <(compgen -W '%[4]s' -- "$word") ;;
    esac
}
complete -F _%[1]s %[1]s
`, program, strings.Join(files, " | "), strings.Join(values, " | "), strings.Join(all, " "))
}

// Zsh returns the completion of a program's flags for zsh.
func Zsh(program string, flags *pflag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n\n_arguments -S", program)
	quote := strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`)
	flags.VisitAll(func(f *pflag.Flag) {
		value, usage := pflag.UnquoteUsage(f)
		fmt.Fprintf(&b, " \\\n  '--%s[%s]", f.Name, quote.Replace(usage))
		switch {
		case wantsFile(f):
			fmt.Fprintf(&b, ":%s:_files", value)
		case wantsValue(f):
			fmt.Fprintf(&b, ":%s: ", value)
		}
		b.WriteByte('\'')
	})
	return b.String() + "\n"
}

// Fish returns the completion of a program's flags for fish.
func Fish(program string, flags *pflag.FlagSet) string {
	var b strings.Builder
	quote := strings.NewReplacer(`\`, `\\`, "'", `\'`)
	fmt.Fprintf(&b, "# fish completion for %s\n\ncomplete -c %[1]s -f\n", program)
	flags.VisitAll(func(f *pflag.Flag) {
		_, usage := pflag.UnquoteUsage(f)
		kind := ""
		switch {
		case wantsFile(f):
			kind = " -r -F"
		case wantsValue(f):
			kind = " -x"
		}
		fmt.Fprintf(&b, "complete -c %s -l %s%s -d '%s'\n", program, f.Name, kind, quote.Replace(usage))
	})
	return b.String()
}
