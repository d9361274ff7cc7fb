// Package check tests what operators install: the systemd unit, the image, and the packages, as far as that is possible
// on a machine without systemd and Docker. It contains only tests. They require root, as they use separate root folders
// and networks. Without root they are skipped, or fail in CI.
package check
