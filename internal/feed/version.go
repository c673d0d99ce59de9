package feed

import (
	"strconv"

	"github.com/berth-project/berth/internal/recent"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// maxBuried is how many UIDs of deleted objects are remembered. Versions of a deleted
// object that arrive late do so soon after the deletion.
const maxBuried = 4096

// objectKey identifies an object at one time.
type objectKey struct {
	kind string
	name types.NamespacedName
}

// version is the version of an object that was delivered last.
type version struct {
	uid      types.UID
	revision uint64
}

// versions tells which deliveries are new.
type versions struct {
	known  map[objectKey]version
	buried *recent.Set[types.UID] // objects that were deleted or replaced
}

func newVersions() versions {
	return versions{known: map[objectKey]version{}, buried: recent.New[types.UID](maxBuried)}
}

// Revision returns the resourceVersion as a number, and 0 if it is none. The API server
// takes resourceVersions of all kinds from one counter of etcd, and Kubernetes 1.35 made it
// part of its API that they can be compared as numbers within one kind. A number of 0 is
// never stale: with another storage, each delivery counts as new.
func Revision(m *metav1.ObjectMeta) uint64 {
	n, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// admit reports whether the version of the object is newer than the one that is known, and
// then remembers it. replaced is set if the known one has another UID.
func (v *versions) admit(kind string, m *metav1.ObjectMeta) (isNew, replaced bool) {
	if m.UID != "" && v.buried.Has(m.UID) {
		return false, false
	}
	key, now := objectKey{kind, nameOf(m)}, version{m.UID, Revision(m)}
	was, known := v.known[key]
	if known && now.revision != 0 && now.revision <= was.revision {
		return false, false
	}
	v.known[key] = now
	if replaced = known && was.uid != now.uid; replaced {
		v.bury(was.uid)
	}
	return true, replaced
}

// remove reports whether the object is known, and then forgets it. An empty UID means any.
func (v *versions) remove(kind string, name types.NamespacedName, uid types.UID) bool {
	key := objectKey{kind, name}
	was, known := v.known[key]
	if !known || uid != "" && was.uid != "" && was.uid != uid {
		return false
	}
	delete(v.known, key)
	v.bury(was.uid)
	return true
}

// bury remembers that no later version of the object counts.
func (v *versions) bury(uid types.UID) {
	if uid != "" {
		v.buried.Add(uid)
	}
}
