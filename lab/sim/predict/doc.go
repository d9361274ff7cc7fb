// Package predict applies the model of package network. It fits the model to the measurements of "zrlbench tune" and
// compares the two, predicts the time of collective calls by the number of ranks, and makes the table of algorithms for
// a cluster described in YAML. It opens no files.
package predict
