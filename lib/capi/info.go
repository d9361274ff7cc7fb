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
	"Info_create":       func(a *args) { a.newInfo(0, nil) },
	"Info_dup":          (*args).infoDup,
	"Info_free":         (*args).infoFree,
	"Info_set":          (*args).infoSet,
	"Info_delete":       (*args).infoDelete,
	"Info_get":          (*args).infoGet,
	"Info_get_string":   (*args).infoGetString,
	"Info_get_valuelen": (*args).infoGetLen,
	"Info_get_nkeys":    (*args).infoKeys,
	"Info_get_nthkey":   (*args).infoKey,
	"Info_create_env":   func(a *args) { a.newInfo(2, nil) },

	"Comm_set_info":      func(a *args) { a.communicator(0) }, // no hints are supported
	"Comm_get_info":      func(a *args) { a.communicator(0); a.newInfo(1, nil) },
	"Comm_dup_with_info": func(a *args) { a.list[1] = a.list[2]; a.commDup() },
})

func (l *Library) defineInfos() {
	if v, ok := l.abi.constants["INFO_ENV"]; ok {
		l.infos.define(l.abi.handle(kindInfo, v), &info{})
	}
}

func (a *args) newInfo(i int, pairs [][2]string) {
	made, _ := newObject(a, a.lib.infos, i)
	made.pairs = pairs
}

func (a *args) info() *info { return findOrFail(a.lib.infos, a.handle(0, kindInfo), mpi.ErrArg) }

func (n *info) find(key string) int {
	return slices.IndexFunc(n.pairs, func(p [2]string) bool { return p[0] == key })
}

// keyArg reads a key and removes the spaces around it.
func (a *args) keyArg(i int) string {
	key := strings.TrimSpace(a.cString(i))
	if most := int(a.lib.abi.constants["MAX_INFO_KEY"]); key == "" || len(key) >= most {
		panic(failf(errInfoKey, "the key %q has %d characters: must have 1 to %d", key, len(key), most-1))
	}
	return key
}

func (a *args) infoDup() {
	n := a.info()
	n.mu.Lock()
	pairs := slices.Clone(n.pairs)
	n.mu.Unlock()
	a.newInfo(1, pairs)
}

func (a *args) infoFree() {
	h := a.handleIn(0)
	findOrFail(a.lib.infos, h, mpi.ErrArg)
	removeObject(a, a.lib.infos, 0, h)
}

// infoSet implements MPI_Info_set(info, key, value). It strips the spaces around both.
func (a *args) infoSet() {
	n := a.info()
	key := a.keyArg(1)
	value := strings.TrimSpace(a.cString(2))
	if most := int(a.lib.abi.constants["MAX_INFO_VAL"]); len(value) >= most {
		panic(failf(errInfoValue, "the value of %q has %d characters: must have at most %d", key, len(value), most-1))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.find(key); i >= 0 {
		n.pairs[i][1] = value
	} else {
		n.pairs = append(n.pairs, [2]string{key, value})
	}
}

func (a *args) infoDelete() {
	n := a.info()
	key := a.keyArg(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.find(key)
	if i < 0 {
		panic(failf(errInfoNoKey, "there is no key %q", key))
	}
	n.pairs = slices.Delete(n.pairs, i, i+1)
}

// lookupValue returns the value of the key in argument 1.
func (a *args) lookupValue() (value string, found bool) {
	n := a.info()
	key := a.keyArg(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := n.find(key); i >= 0 {
		return n.pairs[i][1], true
	}
	return "", false
}

// infoGet implements MPI_Info_get(info, key, valuelen, value, flag). valuelen does not include the terminating
// 0.
func (a *args) infoGet() {
	value, found := a.lookupValue()
	if found {
		a.setCString(3, value, a.int(2)+1)
	}
	a.setFlag(4, found)
}

// infoGetString implements MPI_Info_get_string(info, key, buflen, value, flag). buflen includes the terminating
// 0, and is set to the length of the value.
func (a *args) infoGetString() {
	value, found := a.lookupValue()
	if found {
		p := a.checkedPointer(2)
		if room := int(*(*int32)(p)); room > 0 {
			a.setCString(3, value, room)
		}
		a.setInt(2, len(value)+1)
	}
	a.setFlag(4, found)
}

func (a *args) infoGetLen() {
	value, found := a.lookupValue()
	if found {
		a.setInt(2, len(value))
	}
	a.setFlag(3, found)
}

func (a *args) infoKeys() {
	n := a.info()
	n.mu.Lock()
	defer n.mu.Unlock()
	a.setInt(1, len(n.pairs))
}

// infoKey implements MPI_Info_get_nthkey(info, n, key).
func (a *args) infoKey() {
	n := a.info()
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := a.int(1); i < 0 || i >= len(n.pairs) {
		panic(failf(mpi.ErrArg, "there is no key %d: there are %d", i, len(n.pairs)))
	}
	a.setCString(2, n.pairs[a.int(1)][0], int(a.lib.abi.constants["MAX_INFO_KEY"]))
}
