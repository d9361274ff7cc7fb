// Package privatedir makes and opens directories that no other user can write to, and files in them. Everything that a
// daemon, a job or a tool creates under a name that another local user can predict is created through it.
//
// Make, Open and Existing resolve a path one component at a time, each relative to the descriptor of its parent, and
// refuse a path that another user can redirect: every directory on it belongs to root or to this process's user, and no
// other user may write to it, unless it has the sticky bit, as /tmp, or cannot be reached by others. A symbolic link is
// followed only in a directory to which no other user may write. The last directory belongs to this process's user, and
// no other user may write to it. What was checked is what is used: files are opened relative to that directory, without
// following links.
//
// The owner of / counts as root: in a user namespace without a mapping for root, that is the overflow user.
//
// On systems other than Unix, ownership is not checked.
package privatedir
