// Package predict uses the model of package network: it fits the model to what "zrlbench tune" has
// measured and compares both, predicts the time of collective calls by the number of ranks, and
// makes the table of algorithms of a cluster that is described in YAML. It opens no file.
package predict
