package control

import "runtime/debug"

// version is set at link time by releases:
// -ldflags "-X github.com/zrlmpi/zrlmpid/daemon/control.version=v1.2.3".
var version = ""

// Version returns the version of this program: the release's, else what the Go
// tool recorded when it built it.
func Version() string {
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
