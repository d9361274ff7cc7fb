// Package version returns the version of the project that a program was built from.
package version

import "runtime/debug"

// version is set at link time by releases:
// -ldflags "-X github.com/zrlmpi/zrlmpid/internal/version.version=v1.2.3".
var version = ""

// String returns the version of this program: the release, or the version recorded by the Go tool.
func String() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	v := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && (v == "" || v == "(devel)") {
			return "devel-" + s.Value[:min(len(s.Value), 12)]
		}
	}
	if v == "" {
		return "(devel)"
	}
	return v
}
