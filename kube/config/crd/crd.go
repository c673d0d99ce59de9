// Package crd has the CustomResourceDefinitions of Berth as YAML, as `kubectl apply` reads
// them.
package crd

import _ "embed" // for the files

// Queues is the definition of the objects of kind Queue.
//
//go:embed queues.berth.dev.yaml
var Queues []byte

// Models is the definition of the objects of kind Model.
//
//go:embed models.berth.dev.yaml
var Models []byte
