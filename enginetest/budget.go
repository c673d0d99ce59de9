package enginetest

import "github.com/berth-project/berth/cluster"

// BudgetBuilder builds a disruption budget. Each method changes the builder and returns it.
type BudgetBuilder struct{ b cluster.Budget }

// Budget starts a disruption budget with the name. It covers all jobs without a namespace,
// and requires nothing until MinAvailable or MaxUnavailable is called.
func Budget(name string) *BudgetBuilder { return &BudgetBuilder{cluster.Budget{Name: name}} }

// Namespace sets the namespace of the jobs that the budget covers.
func (b *BudgetBuilder) Namespace(name string) *BudgetBuilder { b.b.Namespace = name; return b }

// Label adds a label that the jobs must have that the budget covers.
func (b *BudgetBuilder) Label(key, value string) *BudgetBuilder {
	b.b.Selector = append(b.b.Selector, cluster.Requirement{Key: key, Operator: cluster.In, Values: []string{value}})
	return b
}

// MinAvailable sets how many tasks of the covered jobs must run together.
func (b *BudgetBuilder) MinAvailable(n int) *BudgetBuilder { b.b.Bound = n; return b }

// MaxUnavailable sets how many tasks of the covered jobs may be missing together.
func (b *BudgetBuilder) MaxUnavailable(n int) *BudgetBuilder {
	b.b.Bound, b.b.Unavailable = n, true
	return b
}

// Percent makes the number of MinAvailable or MaxUnavailable a percentage of all tasks of
// the covered jobs, rounded up.
func (b *BudgetBuilder) Percent() *BudgetBuilder { b.b.Percent = true; return b }

func (b *BudgetBuilder) addTo(s *cluster.State) error {
	budget := b.b
	return s.Apply(cluster.BudgetPut{Budget: budget})
}
