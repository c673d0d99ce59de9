package manifest

import "github.com/berth-project/berth/cluster"

// ChangedState makes a new State of the objects of a bundle after the assignments (see Set). It
// leaves the bundle as it is.
func ChangedState(b *Bundle, assignments []string) (*cluster.State, error) {
	c := &Bundle{}
	c.Merge(b)
	for _, a := range assignments {
		if err := c.Set(a); err != nil {
			return nil, err
		}
	}
	return c.State()
}
