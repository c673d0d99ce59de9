package cluster

import (
	"maps"
	"slices"
	"strings"
)

// replicas are the jobs of one set and what is known of them together.
type replicas struct {
	name         string
	jobs         []*Job // by ID
	onWholeNodes []*Job // of these, by ID, those placed on whole nodes where all of them belong together
	retired      int    // that were of it and are still there
	desired      int
	scaled       int  // what the set itself was said to have; -1: what its jobs say counts
	group        *Key // that was chosen for all of them; nil: none yet
}

// sets are the sets of replicas.
type sets struct {
	journal *journal
	byName  map[string]*replicas
	excess  map[string]bool // of these, those with more jobs than they should have
}

// scale is rescale for a set that may not be known yet.
func (ss *sets) scale(name string, desired int) {
	if ss.byName[name] == nil && ss.journal.recording() {
		ss.journal.cold(func() { delete(ss.byName, name) })
	}
	ss.rescale(ss.findOrAdd(name), desired)
}

// rescale sets how many jobs the set should have, whatever its jobs say; -1: what
// they say.
func (ss *sets) rescale(set *replicas, desired int) {
	name, was := set.name, set.scaled
	if was == desired {
		return
	}
	set.scaled = desired
	ss.updateDesired(set)
	if ss.journal.recording() {
		ss.journal.cold(func() {
			set := ss.byName[name]
			set.scaled = was
			ss.updateDesired(set)
		})
	}
}

// ensure finds the set, or adds it.
func (ss *sets) findOrAdd(name string) *replicas {
	set := ss.byName[name]
	if set == nil {
		set = &replicas{name: name, scaled: -1}
		ss.byName[name] = set
	}
	return set
}

// compare keeps in step what the set should have with what it has.
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

func (ss *sets) listExcess(set *replicas) {
	keepIf(len(set.jobs) > set.desired, ss.excess, set.name, true)
}

// home is the group that the job was placed for, or is on, if it is on whole nodes.
func (j *Job) homeGroup() *Key {
	if only := j.Alternatives[j.Chosen].Whole.Only; only != nil {
		return only // whatever became of its nodes
	}
	for _, t := range j.Tasks() {
		if t.Node != nil && t.At().Group() != nil {
			return &t.At().Group().Key
		}
	}
	return nil
}

func (ss *sets) keep(j *Job) {
	if set := ss.byName[j.Set.Name]; set != nil && set.group == nil && j.keepsToSetGroup() {
		ss.keepGroup(set, j.homeGroup())
	}
}

func (ss *sets) keepGroup(set *replicas, group *Key) {
	if was := set.group; was != group {
		ss.journal.note(rare{set: set, group: was})
		set.group = group
	}
}

// forgetGroup forgets the group of the job's set if the job, which leaves, is the
// last of it. An undo finds it in the journal.
func (ss *sets) forgetGroup(j *Job) {
	if set := ss.byName[j.Set.Name]; set != nil && len(set.jobs)+set.retired == 1 {
		ss.keepGroup(set, nil)
	}
}

// together reports whether the job is placed on whole nodes where all of its set belong.
func (j *Job) keepsToSetGroup() bool {
	if j.Chosen < 0 || j.Set.Name == "" {
		return false
	}
	w := j.Alternatives[j.Chosen].Whole
	return w != nil && !w.Apart
}

// gather keeps the list of those on whole nodes in step with the job.
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

// enlist adds the job to its set.
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

// unlist takes the job out of its set. A set without jobs is forgotten.
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

// clone copies the sets; same are the copies of jobs.
func (ss *sets) clone(l *journal, same func([]*Job) []*Job) sets {
	c := sets{l, make(map[string]*replicas, len(ss.byName)), maps.Clone(ss.excess)}
	for name, set := range ss.byName {
		copied := *set
		copied.jobs, copied.onWholeNodes = same(set.jobs), same(set.onWholeNodes)
		c.byName[name] = &copied
	}
	return c
}
