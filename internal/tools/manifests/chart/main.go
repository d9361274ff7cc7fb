// Command chart packages the Helm chart of zrlmpid as "helm package" does.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

func main() {
	folder := flag.String("chart", "", "`folder` of the chart")
	into := flag.String("into", "", "`folder` for the package")
	version := flag.String("version", "", "version of the chart and tag of the image")
	flag.Parse()
	if err := pack(*folder, *into, *version); err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
}

func pack(folder, into, version string) error {
	packed, err := loader.LoadDir(folder)
	if err != nil {
		return err
	}
	version = strings.ReplaceAll(strings.TrimPrefix(version, "v"), "~", "-")
	if _, err := semver.StrictNewVersion(version); err != nil { // for example, a commit
		version = "0.0.0-" + cmp.Or(version, "unknown")
	}
	packed.Metadata.Version, packed.Metadata.AppVersion = version, version
	if err := packed.Validate(); err != nil {
		return err
	}
	path, err := chartutil.Save(packed, into)
	if err == nil {
		fmt.Println(path)
	}
	return err
}
