// Package dratest evaluates a few forms of selectors, for tests of packages that cannot import the
// library of CEL. Package selector of module kube evaluates all, and a test there compares both.
package dratest

import (
	"regexp"

	"github.com/berth-project/berth/internal/dra"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	driver    = regexp.MustCompile(`^device\.driver == '([^']*)'$`)
	attribute = regexp.MustCompile(`^device\.attributes\['([^']*)'\]\.(\w+) == '([^']*)'$`)
	capacity  = regexp.MustCompile(`^device\.capacity\['([^']*)'\]\.(\w+)\.compareTo\(quantity\('([^']*)'\)\) >= 0$`)
)

// Match evaluates the expression. It accepts no device if the expression has another form.
func Match(expression string, d *dra.Device) (accepts bool, cost uint64) {
	if m := driver.FindStringSubmatch(expression); m != nil {
		return d.ID.Driver == m[1], 1
	}
	if m := attribute.FindStringSubmatch(expression); m != nil {
		a := d.Source.Attributes[resourcev1.QualifiedName(m[2])]
		return d.ID.Driver == m[1] && a.StringValue != nil && *a.StringValue == m[3], 1
	}
	if m := capacity.FindStringSubmatch(expression); m != nil {
		c, has := d.Source.Capacity[resourcev1.QualifiedName(m[2])]
		want, err := resource.ParseQuantity(m[3])
		return d.ID.Driver == m[1] && has && err == nil && c.Value.Cmp(want) >= 0, 1
	}
	return expression == "true", 1
}
