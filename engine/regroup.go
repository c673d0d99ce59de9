package engine

// variety counts how many shapes are requested. If they are few, finding the peers of the nodes that
// changed takes longer than judging these nodes for each of the shapes. Rankings then have an entry for
// each node.
type variety struct {
	span   uint64 // the number of the span
	uses   int    // of rankings in this span
	shapes int    // that were requested in this span
	few    bool
}

// A span is spanLength uses of rankings. If at most fewShapes are requested in one, they are few in
// the next, until another one is requested.
const (
	spanLength = 4096
	fewShapes  = 2
)

func newVariety() variety { return variety{span: 1, few: true} }

// note counts a use of the ranking.
func (v *variety) note(r *ranking) {
	if r.span != v.span {
		r.span = v.span
		v.shapes++
		v.few = v.few && v.shapes <= fewShapes
	}
	if v.uses++; v.uses >= spanLength {
		*v = variety{span: v.span + 1, few: v.shapes <= fewShapes}
	}
}

// regroup makes the ranking, which is up to date, use the other division. It judges no node.
func (x *index) regroup(r *ranking) {
	was := *r
	to := &x.equal
	if was.division == to {
		to = &x.single
	}
	to.follow(x.view)
	recent := x.view.Recent()
	r.division, r.generation, r.version, r.reranks = to, to.generation, to.now(), recent.Reranks()
	r.tree, r.codes, r.sizes, r.unsettled = tree{}, nil, nil, unsettled{}
	r.statics = statics{values: was.statics.values}
	r.kept.forget()
	r.nearest.outdated = true
	r.counts, r.feasible, r.tallies = r.counts[:0], 0, nil
	x.grow(r)
	ranks := recent.Ranks()
	for i := range r.keys {
		size := to.size(i)
		if size == 0 {
			continue
		}
		slot := to.first(i)
		from := was.division.of(slot)
		r.keys[i], r.codes[i] = was.keys[from], was.codes[from]
		r.add(r.codes[i], size)
		spec := to.spec(i)
		r.statics.copy(spec, &was.statics, was.division.spec(from))
		if r.statics.answers[spec] == staticallyRejected && !to.byNode() {
			r.statics.keepRejection(spec, r.keys[i], r.codes[i])
		}
		if was.unsettled.has(from) {
			r.unsettled.add(i)
		}
		if r.sizes != nil {
			r.ranks[i], r.sizes[i] = ranks[slot], int32(size)
		}
	}
	r.build()
}

// copy takes the answer for another spec of other statics, which have the same values.
func (s *statics) copy(spec int, other *statics, from int) {
	a := other.answers[from]
	if s.answers[spec] = a; a == scoredOtherwise {
		if s.points == nil {
			s.points = make([]int64, len(s.answers))
		}
		s.points[spec] = other.points[from]
	}
}
