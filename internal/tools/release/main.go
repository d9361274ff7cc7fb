// Command release makes the packages for one architecture; `make deb` runs it. If SOURCE_DATE_EPOCH is set, all files
// in the packages have that modification time.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/tools/release/pack"
)

func main() {
	var o pack.Options
	flag.StringVar(&o.Config, "config", ".goreleaser.yaml", "goreleaser's configuration, a `file`")
	flag.StringVar(&o.Arch, "arch", runtime.GOARCH, "the architecture, as GOARCH")
	flag.StringVar(&o.Version, "version", "0.0.0", "the version of the packages")
	flag.StringVar(&o.Binaries, "binaries", "bin", "the `folder` of the binaries")
	flag.StringVar(&o.Into, "into", "bin/packages", "the `folder` for the packages")
	flag.Parse()
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			fmt.Fprintf(os.Stderr, "release: SOURCE_DATE_EPOCH %q: not a number of seconds\n", text)
			os.Exit(1)
		}
		o.Time = time.Unix(seconds, 0).UTC()
	}
	// A version must begin with a digit. If the repository has no tag, git describe returns only a commit.
	if o.Version != "" && (o.Version[0] < '0' || o.Version[0] > '9' || !strings.Contains(o.Version, ".")) {
		o.Version = "0.0.0~" + o.Version
	}
	made, err := pack.Make(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
	for _, file := range made {
		if _, err := fmt.Println(file); err != nil {
			fmt.Fprintln(os.Stderr, "release:", err)
			os.Exit(1)
		}
	}
}
