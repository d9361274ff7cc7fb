// Package check tests the deliverables for operators: the systemd unit, the image, and the packages, as far as a
// machine without systemd and Docker allows. It contains only tests. They require root, for separate root folders and
// networks. Without root they are skipped, or fail in CI.
package check
