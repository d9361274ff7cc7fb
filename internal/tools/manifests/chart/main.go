// Command chart packages the Helm chart of zrlmpid.
package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/tools/manifests"
)

func main() {
	folder := flag.String("chart", "", "`folder` of the chart")
	into := flag.String("into", "", "`folder` for the package")
	version := flag.String("version", "", "version of the chart, and tag of the image")
	flag.Parse()
	seconds, _ := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64) // by default 0
	path, err := manifests.PackChart(*folder, *into, *version, time.Unix(seconds, 0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "chart:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}
