// Command release makes all files of a release; `make release` runs it in the root of the repository. Unless the
// release is a snapshot, it also signs and publishes them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/tools/release/dist"
)

func main() {
	var options dist.Options
	var platforms string
	flag.StringVar(&options.Version, "version", "", "the `version` that internal/tools/version.sh prints")
	flag.StringVar(&platforms, "platforms", strings.Join(dist.Platforms, " "), "the `GOOS/GOARCH`s of the programs")
	flag.StringVar(&options.Into, "into", "bin/release", "the `folder` for the files; its contents are removed first")
	flag.BoolVar(&options.Snapshot, "snapshot", false, "make a snapshot of any commit, and do not publish it")
	flag.StringVar(&options.GPGKey, "gpg-key", os.Getenv("GPG_KEY"),
		"the OpenPGP `key` in gpg's keyring that signs the apt repository (GPG_KEY)")
	flag.StringVar(&options.MinisignKey, "minisign-key", os.Getenv("MINISIGN_KEY"),
		"the `file` of minisign's secret key that signs SHA256SUMS (MINISIGN_KEY)")
	flag.Parse()
	options.Platforms = strings.Fields(platforms)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := dist.Make(ctx, options); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
