package engine

// hookCounts says how many hooks a session had, for the types of hooks of which a profile
// usually has several. The next session allocates its lists with these lengths: a list that
// grows hook by hook is allocated and copied several times.
type hookCounts struct {
	preFilters, shapeFilters, taskFilters, groupFilters   int
	shapeScores, taskScores, deviceScores, instanceScores int
	evictionPurposes, handlers                            int
}

// countHooks returns how many hooks are registered.
func countHooks(h *Hooks) hookCounts {
	return hookCounts{
		preFilters: len(h.preFilters), shapeFilters: len(h.shapeFilters), taskFilters: len(h.taskFilters), groupFilters: len(h.groupFilters),
		shapeScores: len(h.shapeScores), taskScores: len(h.taskScores), deviceScores: len(h.deviceScores), instanceScores: len(h.instanceScores),
		evictionPurposes: len(h.evictionPurposes), handlers: len(h.handlers),
	}
}

// allocate gives h empty lists with room for as many hooks.
func (c hookCounts) allocate(h *Hooks) {
	h.preFilters = make([]hook[PreFilter], 0, c.preFilters)
	h.shapeFilters = make([]hook[ShapeFilter], 0, c.shapeFilters)
	h.taskFilters = make([]hook[TaskFilter], 0, c.taskFilters)
	h.groupFilters = make([]hook[GroupFilter], 0, c.groupFilters)
	h.shapeScores = make([]hook[ShapeScore], 0, c.shapeScores)
	h.taskScores = make([]hook[TaskScore], 0, c.taskScores)
	h.deviceScores = make([]hook[DeviceScore], 0, c.deviceScores)
	h.instanceScores = make([]hook[InstanceScore], 0, c.instanceScores)
	h.evictionPurposes = make([]EvictionPurpose, 0, c.evictionPurposes)
	h.handlers = make([]hook[EventHandler], 0, c.handlers)
}
