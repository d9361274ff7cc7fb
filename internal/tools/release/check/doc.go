// Package check tests what operators install: the unit of systemd, the image, and the
// packages, as far as one machine without systemd and Docker can. It has tests only.
// They need root, for folders of their own as root folders and for networks of their
// own; without it they are skipped, but never in CI.
package check
