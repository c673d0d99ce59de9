package engine

// SetFewShapes makes rankings have an entry for each node, or one for equal nodes, until they were used
// spanLength times.
func (e *Engine) SetFewShapes(few bool) {
	e.index.variety = newVariety()
	e.index.variety.few = few
	e.index.variety.shapes = -spanLength
}
