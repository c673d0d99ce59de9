// Package selector evaluates the selectors of DeviceClasses and ResourceClaims, which are
// expressions in CEL.
package selector

import (
	"context"

	"github.com/berth-project/berth/internal/dra"
	"k8s.io/dynamic-resource-allocation/cel"
)

// maxExpressions is how many compiled expressions are kept.
const maxExpressions = 256

// New returns a function that evaluates selectors as kube-scheduler does.
func New() dra.Matcher {
	cache := cel.NewCache(maxExpressions, cel.Features{EnableConsumableCapacity: true})
	return func(expression string, d *dra.Device) (accepts bool, cost uint64) {
		compiled := cache.GetOrCompile(expression)
		if compiled.Error != nil {
			return false, 0 // the allocator reports the error
		}
		accepts, details, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver: d.ID.Driver, AllowMultipleAllocations: d.Source.AllowMultipleAllocations, Attributes: d.Source.Attributes, Capacity: d.Source.Capacity,
		})
		if details != nil && details.ActualCost() != nil {
			cost = *details.ActualCost()
		}
		return err == nil && accepts, cost
	}
}
