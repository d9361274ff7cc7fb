// Package privatedir makes and opens directories that no other user can write to, and files in them. A daemon, a job or
// a tool uses it to create everything whose name another local user can predict.
//
// Make and Open resolve a path one component at a time, each relative to the descriptor of its parent, and reject a
// path that another user can redirect. Every directory on it must belong to root or to this process's user, and no
// other user may write to it, unless it has the sticky bit, like /tmp, or is unreachable for others. A symbolic link is
// followed only in a directory to which no other user may write. The last directory must belong to this process's user,
// and no other user may write to it. The directory checked is the directory used: files are opened relative to its
// descriptor, without following links.
//
// The owner of / counts as root: in a user namespace without a mapping for root, it is the overflow user.
//
// On systems other than Unix, ownership is not checked.
package privatedir
