package cluster

import (
	"maps"
	"slices"
	"strings"
)

// replicas is one Set: its jobs, and what State knows about them together.
type replicas struct {
	name         string
	jobs         []*Job    // by ID
	onWholeNodes []*Job    // by ID: the jobs for which keepsToSetGroup is true
	retired      int       // number of its jobs that were retired and are still in State
	desired      int       // how many jobs it should have
	scaled       int       // the number of SetScaled; -1 means that the jobs say how many there should be
	group        *GroupKey // the node group that was chosen for all jobs; nil if none is chosen yet
}

// sets is the table of the Sets.
type sets struct {
	journal *journal
	byName  map[string]*replicas
	excess  map[string]bool // names of the Sets with more jobs than they should have
}

// scale is rescale for a Set that may not be known yet.
func (ss *sets) scale(name string, desired int) {
	if ss.byName[name] == nil && ss.journal.recording() {
		ss.journal.recordUndo(func() { delete(ss.byName, name) })
	}
	ss.rescale(ss.findOrAdd(name), desired)
}

// rescale sets how many jobs the Set should have, whatever its jobs say. With -1 the
// number is again the one that its jobs say.
func (ss *sets) rescale(set *replicas, desired int) {
	name, was := set.name, set.scaled
	if was == desired {
		return
	}
	set.scaled = desired
	ss.updateDesired(set)
	if ss.journal.recording() {
		ss.journal.recordUndo(func() {
			set := ss.byName[name]
			set.scaled = was
			ss.updateDesired(set)
		})
	}
}

// findOrAdd returns the Set with the name, and adds it if it is not known.
func (ss *sets) findOrAdd(name string) *replicas {
	set := ss.byName[name]
	if set == nil {
		set = &replicas{name: name, scaled: -1}
		ss.byName[name] = set
	}
	return set
}

// updateDesired computes again how many jobs the Set should have: the scaled number, or
// else the largest number that one of its jobs says.
func (ss *sets) updateDesired(set *replicas) {
	set.desired = 0
	for _, j := range set.jobs {
		set.desired = max(set.desired, j.Set.Desired)
	}
	if set.scaled >= 0 {
		set.desired = set.scaled
	}
	ss.listExcess(set)
}

// listExcess updates the list of the Sets that have too many jobs.
func (ss *sets) listExcess(set *replicas) {
	keepIf(len(set.jobs) > set.desired, ss.excess, set.name, true)
}

// homeGroup returns the node group that a job on whole nodes was placed for, or else the
// group that it is on. It returns nil if it has neither.
func (j *Job) homeGroup() *GroupKey {
	if only := j.Alternatives[j.Chosen].Whole.Only; only != nil {
		return only // even if its nodes belong to another group by now
	}
	for _, t := range j.Tasks() {
		if t.Node != nil && t.At().Group() != nil {
			return &t.At().Group().Key
		}
	}
	return nil
}

// keepGroup chooses the group that the job is on for its Set, unless a group is chosen
// already.
func (ss *sets) keepGroup(j *Job) {
	if set := ss.byName[j.Set.Name]; set != nil && set.group == nil && j.keepsToSetGroup() {
		ss.setGroup(set, j.homeGroup())
	}
}

func (ss *sets) setGroup(set *replicas, group *GroupKey) {
	if was := set.group; was != group {
		ss.journal.recordOther(otherChange{set: set, group: was})
		set.group = group
	}
}

// forgetGroup is called before the job leaves its Set. If it is the last job of the Set,
// the chosen group is cleared. The journal keeps it for an undo.
func (ss *sets) forgetGroup(j *Job) {
	if set := ss.byName[j.Set.Name]; set != nil && len(set.jobs)+set.retired == 1 {
		ss.setGroup(set, nil)
	}
}

// keepsToSetGroup reports whether the job is placed on whole nodes, and all jobs of its
// Set must be in one node group.
func (j *Job) keepsToSetGroup() bool {
	if j.Chosen < 0 || j.Set.Name == "" {
		return false
	}
	w := j.Alternatives[j.Chosen].Whole
	return w != nil && !w.Apart
}

// listOnWholeNodes updates the list replicas.onWholeNodes for the job.
func (ss *sets) listOnWholeNodes(j *Job) {
	set := ss.byName[j.Set.Name]
	if set == nil {
		return
	}
	if j.keepsToSetGroup() && !j.Retired {
		set.onWholeNodes = insert(set.onWholeNodes, j, (*Job).compare)
	} else {
		set.onWholeNodes = remove(set.onWholeNodes, j, (*Job).compare)
	}
}

// list adds the job to its Set.
func (ss *sets) list(j *Job) {
	if j.Set.Name == "" {
		return
	}
	set := ss.findOrAdd(j.Set.Name)
	if j.Retired {
		set.retired++
		return
	}
	set.jobs = insert(set.jobs, j, (*Job).compare)
	if set.scaled < 0 {
		set.desired = max(set.desired, j.Set.Desired)
	}
	ss.listExcess(set)
	ss.listOnWholeNodes(j)
}

// unlist removes the job from its Set. A Set without jobs is removed, unless it has a
// scaled number or a chosen group.
func (ss *sets) unlist(j *Job) {
	set := ss.byName[j.Set.Name]
	if set == nil {
		return
	}
	if j.Retired {
		set.retired--
	}
	set.jobs = remove(set.jobs, j, (*Job).compare)
	set.onWholeNodes = remove(set.onWholeNodes, j, (*Job).compare)
	if len(set.jobs)+set.retired == 0 && set.scaled < 0 && set.group == nil {
		delete(ss.byName, j.Set.Name)
		delete(ss.excess, j.Set.Name)
		return
	}
	if j.Set.Desired == set.desired && !slices.ContainsFunc(set.jobs, func(o *Job) bool { return o.Set.Desired == set.desired }) {
		ss.updateDesired(set)
		return
	}
	ss.listExcess(set)
}

// compare orders jobs by ID.
func (j *Job) compare(o *Job) int { return strings.Compare(j.ID, o.ID) }

// clone copies the Sets. same returns the copies of a list of jobs.
func (ss *sets) clone(l *journal, same func([]*Job) []*Job) sets {
	c := sets{l, make(map[string]*replicas, len(ss.byName)), maps.Clone(ss.excess)}
	for name, set := range ss.byName {
		copied := *set
		copied.jobs, copied.onWholeNodes = same(set.jobs), same(set.onWholeNodes)
		c.byName[name] = &copied
	}
	return c
}
