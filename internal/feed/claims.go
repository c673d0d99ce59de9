package feed

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/berth-project/berth/cluster"
	"github.com/berth-project/berth/internal/convert"
	"github.com/berth-project/berth/internal/dra"
	"github.com/berth-project/berth/internal/field"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
)

const kindClaim = "ResourceClaim"

// claim is what is kept of a ResourceClaim.
type claim struct {
	name     types.NamespacedName
	requests []request
	// results are the devices that are allocated, without those with admin access; nil if the
	// claim is not allocated.
	results  []dra.ID
	reserved map[types.UID]bool // the pods that may use the devices
}

// request is a request of a claim: a list of alternatives, of which the first that is available
// is taken.
type request struct {
	name         string
	alternatives []alternative
}

// alternative is a number of devices that a query selects.
type alternative struct {
	query *dra.Query
	class *dra.Query // without the selectors of the request
	count int
	all   bool // all devices of the node that match
}

// PutResourceClaim reports a ResourceClaim as it is now.
func (d *dynamic) PutResourceClaim(o *resourcev1.ResourceClaim) ([]cluster.Change, []Note) {
	if isNew, _ := d.feed.versions.admit(kindClaim, &o.ObjectMeta); !isNew {
		return nil, nil
	}
	c := d.readClaim(o) // before the old one is forgotten, so that they share queries
	d.forgetClaim(d.claims[c.name])
	d.claims[c.name] = c
	for _, id := range c.results {
		addTo(d.allocated, dra.Pool{Driver: id.Driver, Name: id.Pool}, c)
	}
	for _, q := range c.queries() {
		addTo(d.asking, q, c)
	}
	return d.resettle(map[*claim]bool{c: true})
}

// DeleteResourceClaim reports that the claim was removed. An empty UID means any.
func (d *dynamic) DeleteResourceClaim(name types.NamespacedName, uid types.UID) ([]cluster.Change, []Note) {
	if !d.feed.versions.remove(kindClaim, name, uid) {
		return nil, nil
	}
	c := d.claims[name]
	d.forgetClaim(c)
	delete(d.claims, name)
	return d.resettle(map[*claim]bool{c: true})
}

func addTo[K comparable](m map[K]map[*claim]bool, key K, c *claim) {
	if m[key] == nil {
		m[key] = map[*claim]bool{}
	}
	m[key][c] = true
}

func removeFrom[K comparable](m map[K]map[*claim]bool, key K, c *claim) {
	if delete(m[key], c); len(m[key]) == 0 {
		delete(m, key)
	}
}

// forgetClaim removes the claim, which may be nil, from all indexes.
func (d *dynamic) forgetClaim(c *claim) {
	if c == nil {
		return
	}
	for _, id := range c.results {
		removeFrom(d.allocated, dra.Pool{Driver: id.Driver, Name: id.Pool}, c)
	}
	for _, q := range c.queries() {
		removeFrom(d.asking, q, c)
		d.inventory.Release(q)
	}
}

// queries returns the queries of all requests.
func (c *claim) queries() []*dra.Query {
	var out []*dra.Query
	for _, r := range c.requests {
		for _, a := range r.alternatives {
			out = append(out, a.query, a.class)
		}
	}
	return out
}

// readClaim returns what is kept of the claim. Requests with admin access take no device.
func (d *dynamic) readClaim(o *resourcev1.ResourceClaim) *claim {
	c := &claim{name: nameOf(&o.ObjectMeta), reserved: map[types.UID]bool{}}
	for i := range o.Spec.Devices.Requests {
		r := &o.Spec.Devices.Requests[i]
		var list []alternative
		if e := r.Exactly; e != nil && (e.AdminAccess == nil || !*e.AdminAccess) {
			list = append(list, d.alternative(e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count))
		}
		for k := range r.FirstAvailable {
			s := &r.FirstAvailable[k]
			list = append(list, d.alternative(s.DeviceClassName, s.Selectors, s.AllocationMode, s.Count))
		}
		if list != nil {
			c.requests = append(c.requests, request{r.Name, list})
		}
	}
	if a := o.Status.Allocation; a != nil {
		for i := range a.Devices.Results {
			r := &a.Devices.Results[i]
			if id, counts := resultID(r); counts {
				c.results = append(c.results, id)
			}
		}
	}
	for i := range o.Status.ReservedFor {
		c.reserved[o.Status.ReservedFor[i].UID] = true
	}
	return c
}

func (d *dynamic) alternative(class string, selectors []resourcev1.DeviceSelector, mode resourcev1.DeviceAllocationMode, count int64) alternative {
	return alternative{d.inventory.Query(class, selectors), d.inventory.Query(class, nil), int(min(max(1, count), cluster.MaxDevices)), mode == resourcev1.DeviceAllocationModeAll}
}

// resultID returns the device that is allocated, and false if it counts for nothing: the claim
// may only inspect it, or several claims share it, or it is no device of Berth.
func resultID(r *resourcev1.DeviceRequestAllocationResult) (dra.ID, bool) {
	id := dra.ID{Driver: r.Driver, Pool: r.Pool, Device: r.Device}
	return id, dra.Resource(r.Driver) != "" && r.ShareID == nil && (r.AdminAccess == nil || !*r.AdminAccess)
}

// claimsOf returns the names of the claims of the pod that are known: those that it names, and
// those that were made for it. extended is set if the last of them was made for resources that
// its containers request.
func claimsOf(o *corev1.Pod) (list []types.NamespacedName, extended bool) {
	name := func(s string) types.NamespacedName {
		return types.NamespacedName{Namespace: nameOf(&o.ObjectMeta).Namespace, Name: s}
	}
	for i := range o.Spec.ResourceClaims {
		c := &o.Spec.ResourceClaims[i]
		if c.ResourceClaimName != nil {
			list = append(list, name(*c.ResourceClaimName))
			continue
		}
		for k := range o.Status.ResourceClaimStatuses {
			if s := &o.Status.ResourceClaimStatuses[k]; s.Name == c.Name && s.ResourceClaimName != nil {
				list = append(list, name(*s.ResourceClaimName))
			}
		}
	}
	slices.SortFunc(list, func(a, b types.NamespacedName) int { return strings.Compare(a.Name, b.Name) })
	list = slices.Compact(list)
	if s := o.Status.ExtendedResourceClaimStatus; s != nil && s.ResourceClaimName != "" {
		return append(list, name(s.ResourceClaimName)), true
	}
	return list, false
}

// linkClaims notes which claims the pod uses.
func (d *dynamic) linkClaims(p *pod) {
	for _, name := range p.claims {
		if d.users[name] == nil {
			d.users[name] = map[types.NamespacedName]*pod{}
		}
		d.users[name][p.name] = p
	}
}

// unlinkClaims undoes linkClaims.
func (d *dynamic) unlinkClaims(p *pod) {
	for _, name := range p.claims {
		if d.users[name][p.name] == p {
			if delete(d.users[name], p.name); len(d.users[name]) == 0 {
				delete(d.users, name)
			}
		}
	}
}

// holder returns the pod that the devices of the claim count for. If several pods use the claim,
// it is the oldest of those that the claim is reserved for or, if there is none, of all.
func (d *dynamic) holder(c *claim) *pod {
	var out *pod
	better := func(p *pod) bool {
		if out == nil {
			return true
		}
		if a, b := c.reserved[types.UID(p.uid)], c.reserved[types.UID(out.uid)]; a != b {
			return a
		}
		return cmp.Or(cmp.Compare(p.created, out.created), strings.Compare(p.name.Name, out.name.Name)) < 0
	}
	for _, p := range d.users[c.name] { // the order has no effect on the result
		if p.mayCount && better(p) {
			out = p
		}
	}
	return out
}

// resettle reports what changes for the pods that use the claims.
func (d *dynamic) resettle(affected map[*claim]bool) ([]cluster.Change, []Note) {
	users := map[types.NamespacedName]*pod{}
	for c := range affected {
		maps.Copy(users, d.users[c.name])
	}
	return d.resettlePods(users)
}

// resettlePods reports what changes for the pods, in the order of their names.
func (d *dynamic) resettlePods(users map[types.NamespacedName]*pod) ([]cluster.Change, []Note) {
	var out []cluster.Change
	var notes []Note
	for _, name := range slices.SortedFunc(maps.Keys(users), compareNames) {
		p := users[name]
		had := p.problem
		if p.job != nil {
			p.job.drop(p) // before its remarks change, which the job counts
		}
		d.claimDevices(p)
		out = append(out, d.feed.place(p)...)
		if p.problem != "" && p.problem != had && !p.foreign {
			notes = append(notes, Note{kindPod, p.name.Namespace, p.name.Name, p.claimNote()})
		}
	}
	return out, notes
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// claimNote returns the note about what the pod claims and cannot be counted.
func (p *pod) claimNote() convert.Note {
	return convert.Note{Severity: convert.Invalid, Path: field.Path{"spec", "resourceClaims"}, Message: p.problem}
}

// sharers returns the other pods that use a claim of one of the pods, either of which may be nil.
func (d *dynamic) sharers(was, now *pod) map[types.NamespacedName]*pod {
	var out map[types.NamespacedName]*pod
	var own types.NamespacedName
	for _, p := range [...]*pod{was, now} {
		if p == nil || len(p.claims) == 0 {
			continue
		}
		if out == nil {
			out = map[types.NamespacedName]*pod{}
		}
		own = p.name
		for _, name := range p.claims {
			maps.Copy(out, d.users[name])
		}
	}
	delete(out, own)
	return out
}
