package enginetest

import "github.com/berth-project/berth/cluster"

// BudgetBuilder builds a disruption budget.
type BudgetBuilder struct{ b cluster.Budget }

// Budget starts a budget with the name.
func Budget(name string) *BudgetBuilder { return &BudgetBuilder{cluster.Budget{Name: name}} }

// Namespace sets the namespace of the jobs that the budget covers.
func (b *BudgetBuilder) Namespace(name string) *BudgetBuilder { b.b.Namespace = name; return b }

// Label requires a label of the jobs that the budget covers.
func (b *BudgetBuilder) Label(key, value string) *BudgetBuilder {
	b.b.Selector = append(b.b.Selector, cluster.Requirement{Key: key, Operator: cluster.In, Values: []string{value}})
	return b
}

// MinAvailable sets how many tasks must keep running.
func (b *BudgetBuilder) MinAvailable(n int) *BudgetBuilder { b.b.Bound = n; return b }

// MaxUnavailable sets how many tasks may be missing.
func (b *BudgetBuilder) MaxUnavailable(n int) *BudgetBuilder {
	b.b.Bound, b.b.Unavailable = n, true
	return b
}

// Percent makes the bound a percentage of all tasks.
func (b *BudgetBuilder) Percent() *BudgetBuilder { b.b.Percent = true; return b }

func (b *BudgetBuilder) addTo(s *cluster.State) error {
	budget := b.b
	return s.Apply(cluster.BudgetPut{Budget: budget})
}
