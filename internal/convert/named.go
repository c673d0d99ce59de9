package convert

// Named checks the name and the namespace of an object of Kubernetes. An empty namespace is that of
// objects without one.
func Named(namespace, name, kind string) Notes {
	var notes Notes
	r := reporter{&notes}
	checkName(name, kind, r)
	checkNamespace(namespace, r)
	return notes
}
