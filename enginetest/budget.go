package enginetest

import "github.com/berth-project/berth/cluster"

// BudgetBuilder makes a disruption budget.
type BudgetBuilder struct{ b cluster.Budget }

// Budget begins a budget.
func Budget(name string) *BudgetBuilder { return &BudgetBuilder{cluster.Budget{Name: name}} }

// Namespace is where the jobs are that it is about.
func (b *BudgetBuilder) Namespace(name string) *BudgetBuilder { b.b.Namespace = name; return b }

// Label demands a label of the jobs that it is about.
func (b *BudgetBuilder) Label(key, value string) *BudgetBuilder {
	b.b.Selector = append(b.b.Selector, cluster.Requirement{Key: key, Operator: cluster.In, Values: []string{value}})
	return b
}

// MinAvailable is how many tasks must be left running.
func (b *BudgetBuilder) MinAvailable(n int) *BudgetBuilder { b.b.Bound = n; return b }

// MaxUnavailable is how many tasks may be missing.
func (b *BudgetBuilder) MaxUnavailable(n int) *BudgetBuilder {
	b.b.Bound, b.b.Unavailable = n, true
	return b
}

// Percent makes the bound one of a hundred tasks.
func (b *BudgetBuilder) Percent() *BudgetBuilder { b.b.Percent = true; return b }

func (b *BudgetBuilder) addTo(s *cluster.State) error {
	budget := b.b
	return s.Apply(cluster.BudgetPut{Budget: budget})
}
