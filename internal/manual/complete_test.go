package manual_test

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/internal/manual"
)

func TestCompletions(t *testing.T) {
	flags := pflag.NewFlagSet("thing", pflag.ContinueOnError)
	flags.String("config", "", "the user's `file`")
	flags.String("level", "", "how much [to say]: a `word`")
	flags.Bool("version", false, "print it")
	for name, tt := range map[string]struct {
		got  string
		want []string
	}{
		"bash": {manual.Bash("thing", flags), []string{"    -config | --config)", "    -level | --level) ;;", "'--config --level --version'", "complete -F _thing thing"}},
		"zsh":  {manual.Zsh("thing", flags), []string{"#compdef thing", `'--config[the user'\''s file]:file:_files'`, `'--level[how much \[to say\]\: a word]:word: '`, "'--version[print it]'"}},
		"fish": {manual.Fish("thing", flags), []string{`-l config -r -F -d 'the user\'s file'`, "-l level -x -d", "-l version -d 'print it'"}},
	} {
		for _, want := range tt.want {
			if !strings.Contains(tt.got, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, tt.got)
			}
		}
	}
}
