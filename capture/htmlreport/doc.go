// Package htmlreport writes an analysis of a recording as one HTML page: the findings, a ladder diagram of the
// exchanges, the times of their phases, and tables of pairs and messages.
//
// The page is for people who were sent a file: it works without a network and without a server. It must never load
// anything from elsewhere, never interpret text from a recording or a file name as markup or code, and never need an
// element per message: a recording has hundreds of thousands of them.
package htmlreport
