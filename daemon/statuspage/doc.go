// Package statuspage shows in a browser what a daemon is doing: who waits for what
// from whom and since when, what is broken, and how ranks and peers are, as it
// changes.
//
// The page is for people who stare at a hang. It works without a script, and live with
// the one that it brings along; it loads nothing from elsewhere, and nothing that is in
// a status becomes markup. It must never change what the daemon does, ask it more often
// than about once a second however many look, or grow with the cluster: what is worth
// showing is sent, the rest is counted, and of that only what has changed.
package statuspage
