package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// access is the set of users allowed to use the daemon's sockets, in addition to root and the daemon's own user.
type access struct {
	ranks map[int]attach.Access
	// control lists the users allowed to do more than read the status; nil allows everyone who can connect.
	control *attach.Access
}

// newAccess resolves the user and group names in cfg to IDs. group is the ID of the daemon's group. The error joins one
// *config.Error for each name that cannot be resolved.
func newAccess(cfg *config.Config, group int) (*access, error) {
	a := &access{ranks: make(map[int]attach.Access)}
	var errs []error
	for _, rank := range cfg.LocalRanks() {
		switch {
		case rank.Allow != nil:
			of, err := resolveAccess(rank.Allow,
				func(key, problem string) error { return cfg.RankError(rank.Rank, "allow."+key, problem) })
			a.ranks[rank.Rank] = of
			errs = append(errs, err)
		case cfg.Control.Mode&0o020 != 0: // the group may write to the sockets
			a.ranks[rank.Rank] = attach.Access{GIDs: []int{group}}
		}
	}
	if cfg.Control.Allow != nil {
		of, err := resolveAccess(cfg.Control.Allow, func(key, problem string) error {
			return cfg.KeyError("control.allow."+key, problem)
		})
		a.control = &of
		errs = append(errs, err)
	}
	return a, errors.Join(errs...)
}

// resolveAccess resolves the users and groups in list to IDs. For a name that cannot be resolved, it builds the error
// with the callback failed, which takes the key within the allow section.
func resolveAccess(list *config.AccessList, failed func(key, problem string) error) (of attach.Access, err error) {
	var errs []error
	numbers := func(names []string, key string, find func(string) (string, error)) (ids []int) {
		for i, name := range names {
			id := name
			if _, err := strconv.ParseUint(name, 10, 32); err != nil {
				if id, err = find(name); err != nil {
					errs = append(errs, failed(fmt.Sprintf("%s[%d]", key, i),
						fmt.Sprintf("%v: create it, or give its number if only a directory service knows it", err)))
					continue
				}
			}
			n, err := strconv.Atoi(id)
			errs = append(errs, err) // err is nil: the number comes from the system or has been checked
			ids = append(ids, n)
		}
		return ids
	}
	of.UIDs = numbers(list.Users, "users", func(name string) (string, error) {
		u, err := user.Lookup(name)
		if err != nil {
			return "", err
		}
		return u.Uid, nil
	})
	of.GIDs = numbers(list.Groups, "groups", func(name string) (string, error) {
		g, err := user.LookupGroup(name)
		if err != nil {
			return "", err
		}
		return g.Gid, nil
	})
	return of, errors.Join(errs...)
}

// attachMode returns the permission bits of the attach socket. If any rank has an allow section, every user may
// connect, and the server checks access per rank. Otherwise, the bits equal the mode of the control socket.
func attachMode(cfg *config.Config) fs.FileMode {
	for _, r := range cfg.LocalRanks() {
		if r.Allow != nil {
			return 0o666
		}
	}
	return fs.FileMode(cfg.Control.Mode)
}

// denials counts the requests rejected for lack of permission.
type denials struct{ attach, control atomic.Uint64 }

// counts returns the number of denials by socket, for the metrics.
func (d *denials) counts() map[string]uint64 {
	return map[string]uint64{"attach": d.attach.Load(), "control": d.control.Load()}
}

// onProgramEvent counts and logs an event from an attached program.
func (d *Daemon) onProgramEvent(e attach.Event) {
	if refused, ok := errors.AsType[*wire.RefusedError](e.Err); ok && e.Kind == attach.EventRefused &&
		refused.Reason == wire.Permission {
		d.denials.attach.Add(1)
	}
	d.observer.ProgramEvent(e)
}

// Authorize implements control.Backend.
func (d *Daemon) Authorize(request string, caller wire.Credentials, unknown error) error {
	allowed := d.access.Load().control
	if allowed == nil || unknown == nil && allowed.Allows(caller, os.Geteuid()) {
		return nil
	}
	d.denials.control.Add(1)
	err := control.Errorf(control.Permission, "user %d (group %d) may only read the status of this daemon, not make "+
		"the request %s: add the user or one of its groups to control.allow in the daemon's configuration",
		caller.UID, caller.GID, request)
	if unknown != nil {
		err = control.Errorf(control.Permission, "request %s refused, because control.allow is set: %v", request,
			unknown)
	}
	d.observer.requestRefused(err)
	return err
}
