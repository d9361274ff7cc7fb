// Command release makes the packages of one architecture: what `make deb` runs.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

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
	// Before the first tag, git describe has only the commit: a version begins with a digit.
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
