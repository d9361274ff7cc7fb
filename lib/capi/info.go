package capi

import (
	"slices"
	"strings"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// info is a list of keys and values.
type info struct {
	mu    sync.Mutex
	pairs [][2]string
}

var _ = add(map[string]implementation{
	"Info_create":       func(a *args) error { return a.newInfo(0, nil) },
	"Info_dup":          (*args).infoDup,
	"Info_free":         (*args).infoFree,
	"Info_set":          (*args).infoSet,
	"Info_delete":       (*args).infoDelete,
	"Info_get":          (*args).infoGet,
	"Info_get_string":   (*args).infoGetString,
	"Info_get_valuelen": (*args).infoGetLen,
	"Info_get_nkeys":    (*args).infoKeys,
	"Info_get_nthkey":   (*args).infoKey,
	"Info_create_env":   func(a *args) error { return a.newInfo(2, nil) },

	"Comm_set_info":      func(a *args) error { _, err := a.communicator(0); return err }, // hints, of which none are known
	"Comm_get_info":      (*args).commGetInfo,
	"Comm_dup_with_info": func(a *args) error { a.list[1] = a.list[2]; return a.commDup() },
})

func (l *Library) nameInfos() {
	if v, ok := l.abi.constants["INFO_ENV"]; ok {
		l.infos.name(l.abi.handle(kindInfo, v), &info{})
	}
}

func (a *args) newInfo(i int, pairs [][2]string) error {
	made, _, err := give(a, a.l.infos, i)
	if err != nil {
		return err
	}
	made.pairs = pairs
	return nil
}

func (a *args) info() (*info, error) {
	h := a.handle(0, kindInfo)
	if n := a.l.infos.get(h); n != nil {
		return n, nil
	}
	return nil, errorf(mpi.ErrArg, "%#x is no info, or has been freed", h)
}

func (n *info) find(key string) int {
	return slices.IndexFunc(n.pairs, func(p [2]string) bool { return p[0] == key })
}

// key reads a key, without spaces around it.
func (a *args) key(i int) (string, error) {
	key, err := a.text(i)
	if err != nil {
		return "", err
	}
	key = strings.TrimSpace(key)
	if most := int(a.l.abi.constants["MAX_INFO_KEY"]); key == "" || len(key) >= most {
		return "", errorf(errInfoKey, "the key %q has %d characters, and may have 1 to %d", key, len(key), most-1)
	}
	return key, nil
}

func (a *args) infoDup() error {
	n, err := a.info()
	if err != nil {
		return err
	}
	n.mu.Lock()
	pairs := slices.Clone(n.pairs)
	n.mu.Unlock()
	return a.newInfo(1, pairs)
}

func (a *args) infoFree() error {
	p, err := a.where(0)
	if err != nil {
		return err
	}
	h := a.l.handleAt(p, 0)
	if a.l.infos.get(h) == nil {
		return errorf(mpi.ErrArg, "%#x is no info, or has been freed", h)
	}
	a.l.infos.remove(h)
	a.l.setHandleAt(p, 0, a.l.abi.null[kindInfo])
	return nil
}

func (a *args) infoSet() error {
	n, err := a.info()
	if err != nil {
		return err
	}
	key, err := a.key(1)
	if err != nil {
		return err
	}
	value, err := a.text(2)
	if err != nil {
		return err
	}
	value = strings.TrimSpace(value)
	if most := int(a.l.abi.constants["MAX_INFO_VAL"]); len(value) >= most {
		return errorf(errInfoValue, "the value of %q has %d characters, and may have %d", key, len(value), most-1)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.find(key); i >= 0 {
		n.pairs[i][1] = value
	} else {
		n.pairs = append(n.pairs, [2]string{key, value})
	}
	return nil
}

func (a *args) infoDelete() error {
	n, err := a.info()
	if err != nil {
		return err
	}
	key, err := a.key(1)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.find(key)
	if i < 0 {
		return errorf(errInfoNoKey, "there is no key %q", key)
	}
	n.pairs = slices.Delete(n.pairs, i, i+1)
	return nil
}

// value searches for the key of argument 1.
func (a *args) value() (value string, found bool, err error) {
	n, err := a.info()
	if err != nil {
		return "", false, err
	}
	key, err := a.key(1)
	if err != nil {
		return "", false, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.find(key); i >= 0 {
		return n.pairs[i][1], true, nil
	}
	return "", false, nil
}

// infoGet: info, key, length without the 0, value, flag.
func (a *args) infoGet() error {
	value, found, err := a.value()
	if err != nil {
		return err
	}
	if found {
		if _, err := a.setText(3, value, a.int(2)+1); err != nil {
			return err
		}
	}
	return a.setFlag(4, found)
}

// infoGetString: info, key, length with the 0, which becomes that of the value, value, flag.
func (a *args) infoGetString() error {
	value, found, err := a.value()
	if err != nil {
		return err
	}
	if found {
		p, err := a.where(2)
		if err != nil {
			return err
		}
		if room := int(*(*int32)(p)); room > 0 {
			if _, err := a.setText(3, value, room); err != nil {
				return err
			}
		}
		if err := a.setInt(2, len(value)+1); err != nil {
			return err
		}
	}
	return a.setFlag(4, found)
}

func (a *args) infoGetLen() error {
	value, found, err := a.value()
	if err != nil {
		return err
	}
	if found {
		if err := a.setInt(2, len(value)); err != nil {
			return err
		}
	}
	return a.setFlag(3, found)
}

func (a *args) infoKeys() error {
	n, err := a.info()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.setInt(1, len(n.pairs))
}

func (a *args) infoKey() error {
	n, err := a.info()
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := a.int(1); i < 0 || i >= len(n.pairs) {
		return errorf(mpi.ErrArg, "there is no key %d: there are %d", i, len(n.pairs))
	}
	_, err = a.setText(2, n.pairs[a.int(1)][0], int(a.l.abi.constants["MAX_INFO_KEY"]))
	return err
}

func (a *args) commGetInfo() error {
	if _, err := a.communicator(0); err != nil {
		return err
	}
	return a.newInfo(1, nil)
}
