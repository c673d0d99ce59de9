package cluster

import (
	"maps"
	"slices"
	"strings"
)

// Sets are the names of all sets of replicas, in order.
func (s *State) Sets() []string { return slices.Sorted(maps.Keys(s.sets)) }

// Set are the jobs of the set, by ID. Those that were retired are no part of it.
func (s *State) Set(name string) []*Job { return s.sets[name] }

// Home is the group that the set's replicas belong on: the one that was chosen
// for them, or else the one that some of them were placed for, or are on. Nil:
// none yet.
func (s *State) Home(name string) *Key {
	for _, j := range s.sets[name] {
		if j.Set.Group != nil {
			return j.Set.Group
		}
	}
	for _, j := range s.sets[name] {
		if j.Chosen < 0 || j.Alternatives[j.Chosen].Whole == nil || j.Alternatives[j.Chosen].Whole.Apart {
			continue
		}
		if only := j.Alternatives[j.Chosen].Whole.Only; only != nil {
			return only // whatever became of its nodes
		}
		for _, t := range j.Tasks() {
			if t.Node != nil && t.At().Group() != nil {
				return &t.At().Group().Key
			}
		}
	}
	return nil
}

// Retire takes the job out of its set for good: it is not pending any more, and
// what runs of it is for the caller to evict.
func (s *State) Retire(j *Job) {
	s.dismiss(j)
	j.Retired, s.retired[j.ID] = true, j
	s.settle(j)
}

// Retired are the jobs that were retired and are still there, by ID.
func (s *State) Retired() []*Job { return byID(s.retired) }

// Unretire undoes Retire.
func (s *State) Unretire(j *Job) {
	if !j.Retired {
		return
	}
	j.Retired = false
	delete(s.retired, j.ID)
	s.enlist(j)
	s.settle(j)
}

func (s *State) enlist(j *Job) {
	if j.Retired {
		s.retired[j.ID] = j
	}
	if j.Set.Name == "" || j.Retired {
		return
	}
	list := s.sets[j.Set.Name]
	i, _ := slices.BinarySearchFunc(list, j.ID, jobByID)
	s.sets[j.Set.Name] = slices.Insert(list, i, j)
}

func (s *State) dismiss(j *Job) {
	list := s.sets[j.Set.Name]
	if i, found := slices.BinarySearchFunc(list, j.ID, jobByID); found {
		if list = slices.Delete(list, i, i+1); len(list) == 0 {
			delete(s.sets, j.Set.Name)
		} else {
			s.sets[j.Set.Name] = list
		}
	}
}

func jobByID(j *Job, id string) int { return strings.Compare(j.ID, id) }
