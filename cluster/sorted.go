package cluster

import "slices"

// ordered returns the values of a map, sorted by compare.
func ordered[K comparable, V any](m map[K]V, compare func(a, b V) int) []V {
	out := make([]V, 0, len(m))
	for _, v := range m {
		out = append(out, v)
	}
	slices.SortFunc(out, compare)
	return out
}

// insert adds x to a sorted list, unless the list contains it.
func insert[T any](list []T, x T, compare func(a, b T) int) []T {
	if i, found := slices.BinarySearchFunc(list, x, compare); !found {
		return slices.Insert(list, i, x)
	}
	return list
}

// remove removes x from a sorted list, if the list contains it.
func remove[T any](list []T, x T, compare func(a, b T) int) []T {
	if i, found := slices.BinarySearchFunc(list, x, compare); found {
		return slices.Delete(list, i, i+1)
	}
	return list
}
