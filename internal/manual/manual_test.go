package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestWrite(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1000000")
	run := func(*cobra.Command, []string) {}
	root := &cobra.Command{Use: "thing", Short: "Control things"}
	root.PersistentFlags().Bool("json", false, "print MAX_WORDS of <n>")
	sub := &cobra.Command{Use: "list", Short: "List things", Long: "Codes:\n  0  ok\n  1  no_t",
		Example: "  thing list", Run: run}
	sub.Flags().String("into", "here", "write to this `file`")
	root.AddCommand(sub)
	folder := t.TempDir()
	if err := Write(root, "1.0", folder); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"man/thing.1": {`"Jan 1970" "zrlmpid 1.0" "zrlmpid manual"`,
			"Control things.\n\nCommands:\n  list         List things\n", `\fB--json\fP`, `print MAX_WORDS of <n>`,
			"thing-list(1)"},
		"man/thing-list.1": {"Codes:\n  0  ok\n  1  no_t\n", `\fB--into\fP="here"`, "write to this \\fBfile",
			`\fB--json\fP`, "print MAX_WORDS of <n>", "  thing list"},
		"completions/thing":      {"__start_thing"},
		"completions/_thing":     {"#compdef thing"},
		"completions/thing.fish": {"complete -c thing"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
			continue
		}
		plain := strings.ReplaceAll(string(text), `\-`, "-")
		for _, words := range want {
			if !strings.Contains(plain, words) {
				t.Errorf("%s has no %q:\n%s", name, words, plain)
			}
		}
		if strings.Contains(plain, "Auto generated") {
			t.Errorf("%s names cobra", name)
		}
	}
}
