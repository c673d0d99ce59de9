package cluster

import (
	"maps"
	"slices"
	"strings"
)

// replicas are the jobs of one set and what is known of them together.
type replicas struct {
	name    string
	jobs    []*Job // by ID
	whole   []*Job // of these, by ID, those placed on whole nodes where all of them belong together
	retired int    // that were of it and are still there
	desired int
	scaled  int  // what the set itself was said to have; -1: what its jobs say counts
	group   *Key // that was chosen for all of them; nil: none yet
}

// Sets are the names of all sets of replicas, in order.
func (s *State) Sets() []string {
	var out []string
	for name, set := range s.sets {
		if len(set.jobs) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// Set are the jobs of the set, by ID. Those that were retired are no part of it.
func (s *State) Set(name string) []*Job {
	if set := s.sets[name]; set != nil {
		return set.jobs
	}
	return nil
}

// Desired is how many jobs the set should have: where they differ about it, the
// most that one of them says.
func (s *State) Desired(name string) int {
	if set := s.sets[name]; set != nil {
		return set.desired
	}
	return 0
}

// Excess are the names of the sets that have more jobs than they should, in order.
func (s *State) Excess() []string { return slices.Sorted(maps.Keys(s.excess)) }

// rescale sets how many jobs the set should have, whatever its jobs say; -1: what
// they say.
func (s *State) rescale(set *replicas, desired int) {
	name, was := set.name, set.scaled
	if was == desired {
		return
	}
	set.scaled = desired
	s.compare(name)
	if s.journal.recording() {
		s.journal.cold(func() {
			s.sets[name].scaled = was
			s.compare(name)
		})
	}
}

func (s *State) addSet(name string) *replicas {
	set := &replicas{name: name, scaled: -1}
	s.sets[name] = set
	return set
}

// compare keeps in step what the set should have with what it has.
func (s *State) compare(name string) {
	set := s.sets[name]
	set.desired = 0
	for _, j := range set.jobs {
		set.desired = max(set.desired, j.Set.Desired)
	}
	if set.scaled >= 0 {
		set.desired = set.scaled
	}
	s.weigh(name)
}

func (s *State) weigh(name string) {
	if set := s.sets[name]; len(set.jobs) > set.desired {
		s.excess[name] = true
	} else {
		delete(s.excess, name)
	}
}

// Home is the group that the set's replicas belong on: the one that was chosen
// for them, or else the one that some of them were placed for, or are on. Nil:
// none yet.
func (s *State) Home(name string) *Key {
	set := s.sets[name]
	if set == nil {
		return nil
	}
	if set.group != nil {
		return set.group
	}
	for _, j := range set.jobs {
		if j.Set.Group != nil {
			return j.Set.Group
		}
	}
	for _, j := range set.whole {
		if home := j.home(); home != nil {
			return home
		}
	}
	return nil
}

// home is the group that the job was placed for, or is on, if it is on whole nodes.
func (j *Job) home() *Key {
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

func (s *State) keep(j *Job) {
	if set := s.sets[j.Set.Name]; set != nil && set.group == nil && j.together() {
		s.keepGroup(set, j.home())
	}
}

func (s *State) keepGroup(set *replicas, group *Key) {
	if was := set.group; was != group {
		s.journal.note(rare{set: set, group: was})
		set.group = group
	}
}

// together reports whether the job is placed on whole nodes where all of its set belong.
func (j *Job) together() bool {
	if j.Chosen < 0 || j.Set.Name == "" {
		return false
	}
	w := j.Alternatives[j.Chosen].Whole
	return w != nil && !w.Apart
}

// gather keeps the list of those on whole nodes in step with the job.
func (s *State) gather(j *Job) {
	set := s.sets[j.Set.Name]
	if set == nil || !s.knows(j) {
		return
	}
	i, listed := slices.BinarySearchFunc(set.whole, j.ID, jobByID)
	switch belongs := j.together() && !j.Retired; {
	case belongs && !listed:
		set.whole = slices.Insert(set.whole, i, j)
	case !belongs && listed:
		set.whole = slices.Delete(set.whole, i, i+1)
	}
}

func (s *State) retire(j *Job) {
	to := j.status()
	to.retired = true
	s.update(j, to)
}

func (s *State) setRetired(j *Job, retired bool) {
	j.Retired = retired
	set := s.sets[j.Set.Name]
	if retired {
		s.retired[j.ID] = j
		if set != nil {
			set.retired++
		}
		s.dismiss(j)
	} else {
		delete(s.retired, j.ID)
		if set != nil {
			set.retired--
		}
		s.enlist(j)
	}
	s.settle(j)
}

// Retired are the jobs that were retired and are still there, by ID.
func (s *State) Retired() []*Job { return byID(s.retired) }

func (s *State) enlist(j *Job) {
	if j.Retired {
		s.retired[j.ID] = j
	}
	if j.Set.Name == "" {
		return
	}
	set := s.sets[j.Set.Name]
	if set == nil {
		set = s.addSet(j.Set.Name)
	}
	if j.Retired {
		set.retired++
		return
	}
	i, _ := slices.BinarySearchFunc(set.jobs, j.ID, jobByID)
	set.jobs = slices.Insert(set.jobs, i, j)
	if set.scaled < 0 {
		set.desired = max(set.desired, j.Set.Desired)
	}
	s.weigh(j.Set.Name)
	s.gather(j)
}

// dismiss takes the job out of its set's list. A set without jobs is forgotten.
func (s *State) dismiss(j *Job) {
	set := s.sets[j.Set.Name]
	if set == nil {
		return
	}
	if i, found := slices.BinarySearchFunc(set.jobs, j.ID, jobByID); found {
		set.jobs = slices.Delete(set.jobs, i, i+1)
	}
	if i, found := slices.BinarySearchFunc(set.whole, j.ID, jobByID); found {
		set.whole = slices.Delete(set.whole, i, i+1)
	}
	if len(set.jobs)+set.retired == 0 && set.scaled < 0 && set.group == nil {
		delete(s.sets, j.Set.Name)
		delete(s.excess, j.Set.Name)
		return
	}
	if j.Set.Desired == set.desired && !slices.ContainsFunc(set.jobs, func(o *Job) bool { return o.Set.Desired == set.desired }) {
		s.compare(j.Set.Name)
		return
	}
	s.weigh(j.Set.Name)
}

func jobByID(j *Job, id string) int { return strings.Compare(j.ID, id) }
