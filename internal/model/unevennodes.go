package model

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/berth-project/berth/internal/estimate/backend"
)

const (
	// maxUnevenForms is the largest number of forms of one product that use different numbers
	// of devices on their nodes.
	maxUnevenForms = 4
	// maxUnevenParts is the largest number of stages, or of devices of a model that is divided
	// by layers, of such a form. There are 231 ways to divide 16.
	maxUnevenParts = 16
)

// unevenForms returns forms over several nodes that use different numbers of devices on them,
// such as 8 on one node and 4 on another. The devices of a pipeline stage are on one node. A
// server such as vLLM with Ray can use devices so.
func (v *severalNodes) unevenForms() []Form {
	var out []Form
	for _, product := range v.hardware.productsThatCombine() {
		found := v.unevenOnProduct(product)
		slices.SortStableFunc(found, func(a, b Form) int { return cmp.Compare(a.Nodes, b.Nodes) })
		out = append(out, found[:min(len(found), maxUnevenForms)]...)
	}
	return out
}

// unevenOnProduct returns the forms on devices of one product, those with the widest tensor
// parallelism first.
func (v *severalNodes) unevenOnProduct(product string) []Form {
	s := v.spec.Serving
	tensors, from, to := v.parallel.tensorSizes(v.hardware.maxDevices()), 2, maxPartialNodes
	if s.Tensor > 0 {
		tensors = []int{s.Tensor}
	}
	if s.Pipeline > 0 {
		from, to = s.Pipeline, min(s.Pipeline, maxUnevenParts)
	}
	var out []Form
	for _, tensor := range slices.Backward(tensors) {
		for stages := from; stages <= to; stages++ {
			if n := v.spec.Place.Devices; n > 0 && n != tensor*stages || v.parallel.problem(tensor, stages) != "" {
				continue
			}
			f := Form{Tensor: tensor, Pipeline: stages}
			c, err := v.size.claim(&f, v.hardware.accelerator(product))
			if err != nil {
				continue
			}
			if has, _ := v.hardware.largestOfProduct(product, tensor, c.Share); has < c.Enough {
				continue
			}
			found := len(out)
			for _, parts := range unevenParts(stages, v.hardware.maxDevices()/tensor) {
				if v.hardware.haveNodes(product, tensor, parts) {
					out = append(out, v.withUnevenTasks(f, product, parts, c))
				}
			}
			if len(out) > found {
				break // more stages are slower
			}
		}
	}
	return out
}

// haveNodes reports whether different nodes have as many devices of the product as each part,
// largest first, takes.
func (h *hardware) haveNodes(product string, devices int, parts []int) bool {
	for i, n := range parts {
		if h.nodesWith(product, n*devices) < i+1 {
			return false
		}
	}
	return true
}

// withUnevenTasks returns the form with its name and tasks. parts is the number of stages on
// each node.
func (v *severalNodes) withUnevenTasks(f Form, product string, parts []int, c backend.Claim) Form {
	f.Nodes, f.Devices = len(parts), parts[0]*f.Tensor
	for i, n := range parts {
		shape := v.spec.shapeOn(v.hardware, product, n*f.Tensor, c)
		role := "worker"
		if i == 0 {
			role = "leader"
		}
		f.tasks = append(f.tasks, roleTasks{role, 1, &shape})
	}
	f.Name = fmt.Sprintf("%d nodes with %s × %s (tp %d, pp %d)", f.Nodes, joinCounts(parts, f.Tensor), product, f.Tensor, f.Pipeline)
	return f
}

// joinCounts returns the number of devices on each node, with this many for each of the parts.
func joinCounts(parts []int, each int) string {
	out := make([]string, len(parts))
	for i, n := range parts {
		out[i] = strconv.Itoa(n * each)
	}
	return strings.Join(out, " + ")
}

// unevenParts returns the ways to divide n stages over several nodes with at most the given
// number on each, such that nodes have different numbers. Each lists the largest number first.
// Those with the fewest nodes come first.
func unevenParts(n, most int) [][]int {
	var out [][]int
	var divide func(parts []int, left, most int)
	divide = func(parts []int, left, most int) {
		if left == 0 {
			if len(parts) > 1 && parts[0] != parts[len(parts)-1] {
				out = append(out, slices.Clone(parts))
			}
			return
		}
		for next := min(left, most); next > 0; next-- {
			divide(append(parts, next), left-next, next)
		}
	}
	divide(nil, n, most)
	slices.SortStableFunc(out, func(a, b []int) int { return cmp.Compare(len(a), len(b)) })
	return out
}
