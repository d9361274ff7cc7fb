package manual_test

import (
	"testing"

	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/internal/manual"
)

func TestOptions(t *testing.T) {
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	flags.StringP("into", "i", "", "write to this `file`")
	flags.Bool("json", false, "print JSON")
	flags.IntSlice("words", []int{1}, "sizes of MAX_WORDS")
	flags.Duration("wait", 0, "wait so long")
	flags.String("old", "", "nothing")
	if err := flags.MarkHidden("old"); err != nil {
		t.Fatal(err)
	}
	want := "**-i**, **--into** *file*\n: write to this file\n\n" +
		"**--json**\n: print JSON\n\n" +
		"**--wait** *duration*\n: wait so long\n\n" +
		"**--words** *ints*\n: sizes of MAX\\_WORDS (default: 1)\n\n"
	if got := manual.Options(flags); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
