package cluster

import "slices"

// ordered lists the values of a map in order.
func ordered[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, compare)
	return out
}

// insert adds x to a list that is in order, unless it is there.
func insert[T any](list []T, x T, compare func(a, b T) int) []T {
	if i, found := slices.BinarySearchFunc(list, x, compare); !found {
		return slices.Insert(list, i, x)
	}
	return list
}

// remove takes x out of a list that is in order, if it is there.
func remove[T any](list []T, x T, compare func(a, b T) int) []T {
	if i, found := slices.BinarySearchFunc(list, x, compare); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}
